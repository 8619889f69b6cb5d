"""The page of memory in a real browser: the map, what chats take, what is given back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from app import load_settings
from tests.ui.conftest import Profile, Served, answer, say
from tests.ui.pictures import PLAN, memory_picture

TITLES = ("Explain how a book is bound", "Plan a week in Kyoto", "<img src=x onerror=alert(1)>")
PIXEL = """([x, y]) => {
    const canvas = document.querySelector("#memory-part .map"), scale = devicePixelRatio;
    return [...canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data];
}"""


@pytest.fixture
def chats(served: Served) -> Iterator[list[str]]:
    """Three chats, and a memory in which they lie."""
    served.model.answer = lambda request: "Folded and sewn."
    ids = [served.services.chats.send("", title) for title in TITLES]
    for _ in ids:
        served.model.next_stream()
    served.model.plan, served.model.shown = PLAN, memory_picture(ids)
    yield ids
    served.model.plan, served.model.shown = None, memory_picture([], 1)
    served.services.runtime.adopt(served.services.settings)


@pytest.fixture
def memory(profile: Profile, chats: list[str]) -> Page:
    """The page, opened as a person does."""
    page = profile.open()
    page.get_by_role("button", name="Memory", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Memory")
    expect(page.locator("#memory-part .map")).to_be_visible()
    return page


def test_the_map_says_whose_a_block_is(memory: Page) -> None:
    drawn = memory.locator("#memory-part .map")
    expect(drawn).to_have_attribute("aria-label", re.compile(r"^4,096 blocks of 368.6 kB: [\d,]+ in use, "))
    said = memory.locator("#memory-part .said")
    drawn.hover(position={"x": 3, "y": 3})
    expect(said).to_have_text("Block 1 · in use · “Explain how a book is bound” · shared by 3")
    drawn.focus()
    memory.keyboard.press("ArrowRight")
    memory.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Block 3 ·")
    used, free = memory.evaluate(PIXEL, [4, 20]), memory.evaluate(PIXEL, [4, 250])
    assert used[3] == free[3] == 255 and used != free


def test_a_row_for_each_chat(memory: Page, chats: list[str], served: Served) -> None:
    rows = memory.locator("#memory-part .takes tbody tr")
    expect(rows).to_have_count(3)
    expect(memory.locator("#memory-part .takes")).to_contain_text("<img src=x onerror=alert(1)>")
    first = rows.filter(has_text="Explain how a book is bound")
    expect(first).to_contain_text("answering")
    expect(rows.filter(has_text="Plan a week in Kyoto")).to_contain_text("idle")
    served.model.shown = memory_picture([*chats[:1], "api:1", "gone"])
    for name in ("API requests", "A chat that was deleted"):
        expect(rows.filter(has_text=name)).to_have_count(1)
    first.get_by_role("button").click()
    expect(answer(memory)).to_have_text("Folded and sewn.")


def test_free_now_says_what_was_given_back(memory: Page, served: Served) -> None:
    served.model.cached_bytes = 225_600_000
    memory.get_by_role("button", name="Free now").click()
    expect(memory.locator("#memory-part .told")).to_have_text("225.6 MB were given back.")
    memory.get_by_role("button", name="Free now").click()
    expect(memory.locator("#memory-part .told")).to_have_text("There was nothing to give back.")


def test_where_blocks_live_and_the_disk_can_be_cleared(memory: Page, served: Served) -> None:
    rows = memory.locator("#memory-part .tiers tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("The pool")
    expect(rows.nth(0)).to_contain_text("1.51 GB")
    for said in ("Disk", "6,348", "2.34 GB", "20 GB", "1,204"):
        expect(rows.nth(1)).to_contain_text(said)
    memory.get_by_role("button", name="Clear the disk").click()
    expect(memory.locator("#memory-part .told")).to_have_text("The disk has no blocks any more.")
    assert served.model.cleared == 1
    served.model.shown = replace(served.model.shown, tiers=())
    expect(rows.nth(1)).to_contain_text("0 kB")
    expect(memory.get_by_role("button", name="Clear the disk")).to_be_disabled()


def test_keep_free_counts_at_once_and_stays(memory: Page, served: Served) -> None:
    box = memory.get_by_label("Keep free, in GB")
    box.fill("2.5")
    box.press("Enter")
    expect(memory.locator("#memory-part .told")).to_be_hidden()
    home = served.services.settings.home
    memory.get_by_role("button", name="Set", exact=True).focus()
    expect(box).to_have_value("2.5")
    memory.wait_for_function("document.querySelector('#keep-free').value === '2.5'")
    assert served.model.kept_free[-1] == 2_500_000_000 and load_settings(home).keep_free == 2.5
    for wrong, said in (
        ("much", "“much” is not a number of GB."),
        ("-1", "keep_free is -1.0; it must be GB"),
    ):
        box.fill(wrong)
        box.press("Enter")
        expect(memory.locator("#memory-part .told")).to_contain_text(said)
    box.fill("0")
    box.press("Enter")
    expect(memory.locator("#memory-part .told")).to_be_hidden()
    assert load_settings(home).keep_free == 0


def test_let_go_and_load_again(memory: Page, served: Served) -> None:
    memory.get_by_role("button", name="Let go of the model").click()
    expect(memory.locator("#memory-part .absent")).to_contain_text("loaded with the next message")
    expect(memory.locator("#memory-part .map")).to_be_hidden()
    memory.get_by_role("button", name="Load now").click()
    expect(memory.locator("#memory-part .map")).to_be_visible()
    memory.keyboard.press("Control+Shift+O")
    say(memory, served, "Still there?")
    expect(answer(memory)).to_have_text("Folded and sewn.")


def test_an_engine_that_stopped_is_said(memory: Page, served: Served) -> None:
    served.model.fault = "The engine stopped: a kernel gave NaN"
    try:
        expect(memory.locator("#memory-part .absent")).to_contain_text("a kernel gave NaN")
    finally:
        served.model.fault = ""
    expect(memory.locator("#memory-part .map")).to_be_visible()
