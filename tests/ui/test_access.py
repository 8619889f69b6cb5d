"""Whoever uses no mouse, sees little or has a small screen: axe-core's rules on every page and all that is
laid over it, in both themes and both languages; the keyboard alone, 390 pixels, 200 % zoom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.ui.conftest import NewProfile, Served, usable
from tests.ui.pictures import memory_picture
from tests.ui.screenshots import PAGES
from tests.ui.talks import fill

CALM = {"reduced_motion": "reduce"}  # what fades in has not its own colours yet
SERIOUS = ("serious", "critical")
ALONE = ["blank", "chat", "formula", "models", "memory", "settings"]  # nothing is laid over them
BY_ADDRESS = {
    query: [name for name, shot in PAGES.items() if shot.query == query]
    for query in dict.fromkeys(shot.query for shot in PAGES.values())
}
LOOKS = [("light", "en"), ("dark", "zh-CN"), ("dark", "en"), ("light", "zh-CN")]
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# stands beyond the right edge, and nothing around it scrolls there
BEYOND = """[...document.querySelectorAll("#spread *")].filter(e => {
    const { right, width } = e.getBoundingClientRect();
    if (!width || right <= innerWidth + 1 || !e.checkVisibility({ visibilityProperty: true })) return false;
    for (let up = e.parentElement; up; up = up.parentElement)
        if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX) && up.clientWidth < up.scrollWidth
            && up.getBoundingClientRect().right <= innerWidth + 1) return false;
    return true;
}).map(e => e.outerHTML.slice(0, 120))"""
# what one can do something with, and where Tab has not come yet
REACHED = """() => {
    const kinds = "button, a[href], input, textarea, select, summary, [tabindex]";
    const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.disabled;
    const other = (e) => e.closest("[inert]") || (e.type === "radio" && !e.checked);
    const awaited = (e) => e.tabIndex >= 0 && !other(e) && !e.dataset.reached;
    return [...document.querySelectorAll(`#spread :is(${kinds})`)]
        .filter(e => seen(e) && awaited(e)).map(e => e.outerHTML.slice(0, 160));
}"""


@pytest.fixture(scope="module")
def places(shared: Served) -> Iterator[dict[str, str]]:
    """Chats as people have them, and a memory in which they lie."""
    yield fill(shared)
    shared.model.plan, shared.model.shown, shared.model.answer = (
        None,
        memory_picture([]),
        lambda request: None,
    )
    shared.services.library.store.own.forget("quire")
    for chat in shared.services.chats.list_chats():
        shared.services.chats.delete(chat.id)


def visits(profile: Any, names: list[str], places: dict[str, str]) -> Iterator[tuple[str, Page]]:
    """What is seen at one address, one after the other: what was laid over the page is closed by Escape."""
    page: Page = profile.open(PAGES[names[0]].query.format(**places))
    for name in names:
        page.keyboard.press("Escape")
        PAGES[name].prepare(page)
        expect(page.locator(PAGES[name].seen).first).to_be_visible()
        yield name, page


@pytest.mark.parametrize("address", BY_ADDRESS)
@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_axe_finds_nothing_serious(
    shared: Served, new_profile: NewProfile, places: dict[str, str], theme: str, language: str, address: str
) -> None:
    profile, found = new_profile(shared, color_scheme=theme, locale=language, **CALM), []
    names = BY_ADDRESS[address]
    if (theme, language) not in LOOKS[:2]:  # colours go with the theme, words with the language
        names = [name for name in names if name in ALONE]
    for name, page in visits(profile, names, places) if names else ():
        for each in Axe().run(page, options=RULES).response["violations"]:
            nodes = [
                f"{node['html'][:140]}  {node.get('failureSummary', '')[-160:]}" for node in each["nodes"]
            ]
            found += [f"{name}, {each['id']}: {node}" for node in nodes[:4] if each["impact"] in SERIOUS]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("address", BY_ADDRESS)
@pytest.mark.parametrize("screen", ["phone", "zoomed"])
def test_nothing_stands_beyond_the_edge(
    shared: Served, new_profile: NewProfile, places: dict[str, str], screen: str, address: str
) -> None:
    sizes = {"phone": (390, 844, 1), "zoomed": (640, 430, 2)}  # 1280 x 860 at 200 %
    width, height, scale = sizes[screen]
    size = {"width": width, "height": height}
    profile = new_profile(shared, viewport=size, device_scale_factor=scale, **CALM)
    for name, page in visits(profile, BY_ADDRESS[address], places):
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        assert page.evaluate(BEYOND) == [], name


@pytest.mark.parametrize("name", [*ALONE, "compared", "versions", "growing", "failed", "attached"])
def test_tab_reaches_everything_and_is_seen(
    shared: Served, new_profile: NewProfile, places: dict[str, str], name: str
) -> None:
    ((_, page),) = visits(new_profile(shared), [name], places)
    page.evaluate(
        "document.addEventListener('focusin', ({ target }) => { target.dataset.reached = 1; }, true)"
    )
    page.evaluate("document.activeElement.blur()")
    for _ in range(24):
        for _ in range(15):
            page.keyboard.press("Tab")
        if not page.evaluate(REACHED):
            break
    assert page.evaluate(REACHED) == []
    for _ in range(3):  # it may have gone on to the browser's own buttons: from there it comes back
        page.keyboard.press("Tab")
        if page.evaluate("!!document.activeElement && document.activeElement !== document.body"):
            return
    pytest.fail("Nothing has the cursor.")


LETTER = "Dear **reader**,\n\n```python\nfolds = 3\n```\n\nsee [the page](#top)"
CURSOR = """() => {
    const now = document.activeElement, row = now.closest("[data-chat]");
    const name = now.id || now.dataset.tool || now.ariaLabel || (row ? "" : now.textContent.slice(0, 40));
    const other = row && row.dataset.chat !== octavo.state.chat;
    return [now.localName, name, other ? `Another ${row.dataset.chat}` : row ? "This" : ""].join(" ");
}"""


def test_what_has_the_cursor_keeps_it_while_an_answer_grows(
    shared: Served, new_profile: NewProfile, places: dict[str, str]
) -> None:
    shelf, chats = shared.services.shelf, shared.services.chats
    shelf.make_folder("Post")
    chat = chats.send("", "Write to me")
    stream = shared.model.next_stream()
    stream.write(LETTER)
    chats.send(chat, "And once more")
    page = new_profile(shared, **CALM).open(f"?chat={chat}")
    expect(page.locator("#now .prose a")).to_be_visible()
    stops: list[str] = []
    lost = []
    page.locator("#new-chat").focus()
    while (before := page.evaluate(CURSOR)) not in stops:
        stops.append(before)
        if "Another" not in before:  # of the list's rows this chat's is enough
            stream.write(f" {len(stops)},")
            chats.rename(chat, f"Letter {len(stops)}")
            page.evaluate("octavo.browse({})")
            expect(page.locator("#now .bot-row .prose")).to_contain_text(f" {len(stops)},")
            page.evaluate("new Promise(requestAnimationFrame)")
            after = page.evaluate(CURSOR)
            lost += [f"{before} -> {after}"] if after != before else []
        page.keyboard.press("Tab")
    stream.finish()
    shared.model.next_stream().finish()  # what waited in the line: no other test's to answer
    chats.delete(chat)
    assert lost == [], "\n".join(lost)
    assert len(stops) > 30, stops


def test_a_narrow_page_is_left_by_its_list(
    shared: Served, new_profile: NewProfile, places: dict[str, str]
) -> None:
    page = new_profile(shared, viewport={"width": 390, "height": 844}).open("?leaf=memory")
    page.locator("#memory-part").get_by_role("button", name="Show or hide the chats").click()
    expect(page.locator("#new-chat")).to_be_in_viewport()
    page.keyboard.press("Escape")
    expect(page.locator("#rail-part")).not_to_be_in_viewport()
    page.locator("#memory-part").get_by_role("button", name="Show or hide the chats").click()
    page.locator("#new-chat").click()
    usable(page)
    expect(page.locator("#draft")).to_be_in_viewport()
