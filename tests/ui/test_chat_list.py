"""The list of chats: new, search, rename, delete, and what other tabs do."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app import UnknownChat
from tests.ui.conftest import NewProfile, Profile, Served, answer, chat_of, say


def titled(page: Page, served: Served, title: str) -> str:
    """A chat with an answered message; its id."""
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    stream = say(page, served, title)
    stream.write("done")
    stream.finish()
    expect(answer(page)).to_have_text("done")
    expect(page.locator("#send")).to_be_visible()
    return chat_of(page)


def test_search_by_title(page: Page, served: Served) -> None:
    apples, pears = titled(page, served, "About apples"), titled(page, served, "About pears")
    page.fill("#search", "PEAR")
    expect(page.locator(".chat")).to_have_count(1)
    page.fill("#search", "plum")
    expect(page.locator(".chats .none")).to_have_text("No chat has “plum” in its title.")
    page.fill("#search", "apple")
    page.press("#search", "Enter")
    expect(page.locator(f"[data-chat='{apples}']")).to_have_class("chat is-current")
    page.press("#search", "Escape")
    expect(page.locator(f"[data-chat='{pears}']")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_search_in_a_hidden_list(served: Served, new_profile: NewProfile, width: int) -> None:
    page = new_profile(served, viewport={"width": width, "height": 860}).open()
    for _ in range(2):
        if width > 767:
            page.keyboard.press("Control+b")
        expect(page.locator("#rail-part")).not_to_be_in_viewport()
        page.locator("#draft").focus()
        page.keyboard.press("Control+k")
        page.keyboard.type("pear")
        expect(page.locator("#search")).to_have_value("pear")
        expect(page.locator("#search")).to_be_in_viewport(ratio=1)
        expect(page.locator("#draft")).to_have_value("")
        page.keyboard.press("Escape")
        expect(page.locator("#draft")).to_be_focused()


@pytest.mark.parametrize(
    "options",
    [
        {"viewport": {"width": 390, "height": 844}},
        {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
        {"viewport": {"width": 1024, "height": 768}, "is_mobile": True, "has_touch": True},
    ],
    ids=["narrow", "phone", "tablet"],
)
def test_every_chat_can_be_renamed_and_deleted_without_hovering(
    served: Served, new_profile: NewProfile, options: dict[str, Any]
) -> None:
    page = new_profile(served, **options).open()
    chat = titled(page, served, "A title that is long enough to be cut off, and then some")
    titled(page, served, "The open one")
    if options["viewport"]["width"] < 768:
        page.get_by_role("button", name="Show or hide the chats").click()
    row = page.locator(f"[data-chat='{chat}']")
    expect(row).not_to_have_class("chat is-current")
    for name in ("Rename", "Delete"):
        expect(row.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)
    row.get_by_role("button", name="Rename").click()
    row.get_by_role("textbox").fill("Renamed")
    row.get_by_role("textbox").press("Enter")
    expect(row.locator(".title")).to_have_text("Renamed")
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_rename(page: Page, served: Served) -> None:
    chat = titled(page, served, "Old name")
    row = page.locator(f"[data-chat='{chat}']")
    for key, title in [("Escape", "Old name"), ("Enter", "New <b>name</b>")]:
        row.hover()
        row.get_by_role("button", name="Rename").click()
        box = row.get_by_role("textbox", name="Title of the chat")
        expect(box).to_be_focused()
        box.fill("New <b>name</b>")
        box.press(key)
        expect(row.locator(".title")).to_have_text(title)
    expect(page.get_by_role("heading", level=1)).to_have_text("New <b>name</b>")
    expect(page).to_have_title("New <b>name</b> · Octavo")
    assert served.services.chats.view(chat).title == "New <b>name</b>"


def test_delete_asks_first(page: Page, served: Served) -> None:
    kept, gone = titled(page, served, "Kept"), titled(page, served, "Gone")
    row = page.locator(f"[data-chat='{gone}']")
    dialog = page.get_by_role("dialog", name="Delete this chat?")
    row.hover()
    row.get_by_role("button", name="Delete").click()
    expect(dialog).to_contain_text("“Gone”")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    row.hover()
    row.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    assert gone not in page.url
    with pytest.raises(UnknownChat):
        served.services.chats.view(gone)
    page.locator(f"[data-chat='{kept}'] .open").click()
    expect(answer(page)).to_have_text("done")


def test_a_chat_deleted_while_it_answers_in_another_tab(profile: Profile, served: Served) -> None:
    first, second = profile.open(), profile.open()
    stream = say(first, served, "Doomed")
    stream.write("some text")
    expect(answer(first)).to_have_text("some text")
    row = second.locator(".chat", has_text="Doomed")
    row.hover()
    row.get_by_role("button", name="Delete").click()
    second.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(first.get_by_role("heading", name="A blank page.")).to_be_visible()
    assert stream.cancelled.wait(10)


def test_an_unknown_chat_in_the_address_is_a_blank_page(profile: Profile, served: Served) -> None:
    page = profile.open("?chat=there-is-none")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    assert "there-is-none" not in page.url


def test_back_and_forward(page: Page, served: Served) -> None:
    first, second = titled(page, served, "First"), titled(page, served, "Second")
    page.locator(f"[data-chat='{first}'] .open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("First")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Second")
    page.go_forward()
    expect(page.get_by_role("heading", level=1)).to_have_text("First")
    assert chat_of(page) == first != second
