"""Ctrl+K: titles and messages found, opened and shown, by keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from app.chats.records import Reply, Turn
from tests.app.fakes import echo
from tests.ui.conftest import NewProfile, Profile, Served, chat_of, say


def stored(served: Served, title: str, *said: str) -> str:
    """A chat with these questions and answers; its id."""
    store = served.services.store
    chat, leaf = store.fresh("m", "", "").id, None
    for question, reply in zip(said[::2], said[1::2], strict=True):
        (leaf,) = store.tree.begin(chat, leaf, Turn(leaf, question), title=title, models=["m"])
        store.tree.save_reply(leaf, Reply(reply, (), "", "stop"))
    served.services.chats.note_change(chat)
    return chat


def test_a_message_far_up_in_another_branch_is_shown(profile: Profile, served: Served) -> None:
    turns = [
        part
        for n in range(60)
        for part in (f"question {n}", "我想学习中文写作" if n == 3 else "answer " * 40)
    ]
    chat = stored(served, "Long", *turns)
    store = served.services.store
    first = store.tree.open(chat).branch[0].id
    (other,) = store.tree.begin(chat, store.chat(chat).leaf, Turn(first), title="", models=["m"])
    store.tree.save_reply(other, Reply("another branch", (), "", "stop"))
    served.services.chats.note_change(chat)
    page = profile.open()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search titles and messages")
    expect(box).to_be_focused()
    page.keyboard.type("中文")
    hit = page.get_by_role("option")
    expect(hit).to_have_count(1)
    expect(hit.locator("mark")).to_have_text("中文")
    expect(hit).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    found = page.locator("#talk .message-row", has_text="我想学习中文写作")
    expect(found).to_be_in_viewport(ratio=0.5)
    expect(page.locator("#talk .message-row", has_text="question 59")).to_be_attached()
    assert chat_of(page) == chat


def test_up_down_and_away(page: Page, served: Served) -> None:
    for title in ("About apples", "About pears"):
        stored(served, title, "hm", "well")
    expect(page.locator(".chats [data-chat]")).to_have_count(2)
    page.locator("#draft").fill("a draft")
    page.keyboard.press("Control+k")
    page.keyboard.type("about")
    options = page.get_by_role("option")
    expect(options).to_have_count(2)
    expect(options.first).to_contain_text("About pears")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("About apples")
    page.keyboard.press("Control+k")
    page.keyboard.type("plum")
    expect(page.get_by_text("Nothing has the words “plum”.")).to_be_visible()
    for away in ("Escape", "Control+k"):
        page.keyboard.press(away)
        expect(page.locator("#search-all")).to_have_count(0)
        page.keyboard.press("Control+k")
        expect(page.get_by_role("option").first).to_contain_text("About pears")  # what was used last


@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_hidden_list(served: Served, new_profile: NewProfile, width: int) -> None:
    page = new_profile(served, viewport={"width": width, "height": 860}).open()
    if width > 767:
        page.keyboard.press("Control+b")
    expect(page.locator("#rail-part")).not_to_be_in_viewport()
    page.locator("#draft").focus()
    page.keyboard.press("Control+k")
    page.keyboard.type("pear")
    expect(page.locator("#search-box")).to_have_value("pear")
    expect(page.locator("#search-all")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(page.locator("#draft")).to_be_focused()
    expect(page.locator("#draft")).to_have_value("")


def test_what_is_found_is_text(page: Page, served: Served) -> None:
    evil = "<img src=x onerror='window.hit = 1'> walnut"
    stored(served, evil, evil, evil)
    page.keyboard.press("Control+k")
    page.keyboard.type("walnut")
    expect(page.get_by_role("option")).to_have_count(3)
    expect(page.get_by_role("option").nth(1)).to_contain_text("<img src=x")
    assert page.evaluate("window.hit") is None


def test_a_private_chat(page: Page, served: Served) -> None:
    served.model.answer = echo
    page.click("#list-menu")
    page.get_by_role("menuitem", name="New private chat").click()
    expect(page.locator("#head-part .secret")).to_be_visible()  # it is on screen, and with it its empty draft
    expect(page.locator("#head-part .secret")).to_have_text("Private")
    say(page, served, "the walnut secret")
    expect(page.locator("#talk .bot-row")).to_contain_text("You said")
    expect(page.get_by_role("heading", level=1)).to_have_text("the walnut secret")
    expect(page).to_have_title("Private · Octavo")  # browsers keep titles
    chat = chat_of(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("walnut")
    expect(page.get_by_text("Nothing has the words “walnut”.")).to_be_visible()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator("#talk .bot-row")).to_contain_text("You said")
    home = served.services.settings.home.path
    for file in home.glob("chats.db*"):
        assert b"walnut secret" not in file.read_bytes()
    row = page.locator(f"[data-chat='{chat}']")
    row.hover()
    row.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Close and forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Close and forget").click()
    expect(row).to_have_count(0)
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
