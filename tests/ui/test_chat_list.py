"""The list of chats: new, rename, pin, archive, folders, delete and undo, and what other tabs do."""

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


def menu(page: Page, chat: str, choice: str) -> None:
    """Choose something out of a chat's menu."""
    row = page.locator(f"[data-chat='{chat}']")
    row.hover()
    row.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name=choice, exact=True).click()


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
    expect(row.get_by_role("button", name="More")).to_be_in_viewport(ratio=1)
    menu(page, chat, "Rename")
    row.get_by_role("textbox").fill("Renamed")
    row.get_by_role("textbox").press("Enter")
    expect(row.locator(".title")).to_have_text("Renamed")
    menu(page, chat, "Delete")
    expect(row).to_have_count(0)
    expect(page.locator("#toast").get_by_role("button", name="Undo")).to_be_in_viewport(ratio=1)


def test_rename(page: Page, served: Served) -> None:
    chat = titled(page, served, "Old name")
    row = page.locator(f"[data-chat='{chat}']")
    for key, title in [("Escape", "Old name"), ("Enter", "New <b>name</b>")]:
        menu(page, chat, "Rename")
        box = row.get_by_role("textbox", name="Title of the chat")
        expect(box).to_be_focused()
        box.fill("New <b>name</b>")
        box.press(key)
        expect(row.locator(".title")).to_have_text(title)
    expect(page.get_by_role("heading", level=1)).to_have_text("New <b>name</b>")
    expect(page).to_have_title("New <b>name</b> · Octavo")
    assert served.services.chats.view(chat).title == "New <b>name</b>"


def test_delete_and_undo_by_keyboard_alone(page: Page, served: Served) -> None:
    kept, gone = titled(page, served, "Kept"), titled(page, served, "Gone")
    row = page.locator(f"[data-chat='{gone}']")
    row.locator(".open").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(row).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="“Gone” is deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    assert gone not in page.url
    with pytest.raises(UnknownChat):
        served.services.chats.view(gone)
    page.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    expect(row).to_have_class("chat is-current")
    expect(answer(page)).to_have_text("done")
    page.locator(f"[data-chat='{kept}'] .open").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Kept")


def test_pin_and_archive(page: Page, served: Served) -> None:
    first, second = titled(page, served, "First"), titled(page, served, "Second")
    shown = page.locator(".chats [data-chat]")
    expect(shown).to_have_text(["Second", "First"])
    menu(page, first, "Pin")
    expect(shown).to_have_text(["First", "Second"])
    expect(page.locator(".chats h2").first).to_have_text("Pinned")
    menu(page, first, "Unpin")
    expect(shown).to_have_text(["Second", "First"])
    menu(page, second, "Archive")
    expect(shown).to_have_text(["First"])
    expect(page.get_by_role("heading", level=1)).to_have_text("Second")  # it stays on screen
    page.get_by_role("button", name="Archived 1").click()
    expect(page.get_by_role("heading", name="Archived")).to_be_visible()
    menu(page, second, "Back to the list")
    expect(page.locator(".chats .none")).to_have_text("No chat is here yet.")
    page.get_by_role("button", name="All chats").click()
    expect(shown).to_have_text(["Second", "First"])


def test_a_new_folder_stays_beside_the_chats(page: Page, served: Served) -> None:
    chat = titled(page, served, "Soup")
    page.locator("#list-menu").click()
    page.get_by_role("menuitem", name="New folder…").click()
    expect(page.get_by_role("dialog", name="New folder", exact=True)).to_be_visible()
    page.get_by_role("textbox", name="Name of the folder").fill("Empty")
    page.keyboard.press("Enter")
    expect(page.locator(".chats .place", has_text="Empty")).to_be_visible()
    expect(page.locator(f"[data-chat='{chat}']")).to_be_visible()
    expect(page.get_by_role("menu")).to_have_count(0)  # Enter presses nothing behind the question
    folder = page.locator(".chats .place", has_text="Empty").get_attribute("data-place")
    served.services.shelf.delete_folder(folder or "")


def test_a_folder_without_a_name_of_its_own_is_refused_beside_the_name(page: Page, served: Served) -> None:
    served.services.shelf.make_folder("Kitchen")
    page.locator("#list-menu").click()
    page.get_by_role("menuitem", name="New folder…").click()
    box = page.get_by_role("textbox", name="Name of the folder")
    oops = page.get_by_role("dialog").get_by_role("alert")
    for name, said in (("", "Write a name first"), (" kitchen", "There is a folder “kitchen” already.")):
        box.fill(name)
        page.keyboard.press("Enter")
        expect(oops).to_contain_text(said)
        expect(box).to_be_focused()
    box.fill("Cellar")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.locator(".chats .place", has_text="Cellar").get_by_role("button").click()
    page.locator("#folder-menu").click()
    page.get_by_role("menuitem", name="Name and prompt…").click()
    page.get_by_role("textbox", name="System prompt").fill("You are a cook.")
    box.fill("Kitchen")
    page.get_by_role("button", name="Save").click()
    expect(oops).to_have_text("There is a folder “Kitchen” already.")
    box.fill("Attic")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Attic")).to_be_visible()
    expect(page.locator(".notice:not(.fit)")).to_be_hidden()
    folders = served.services.shelf.look("", 0, "").folders
    assert [(each.name, each.system_prompt) for each in folders] == [
        ("Attic", "You are a cook."),
        ("Kitchen", ""),
    ]


def test_folders(page: Page, served: Served) -> None:
    chat = titled(page, served, "Soup")
    menu(page, chat, "Move to folder…")
    row, second = (
        page.locator(f"[data-chat='{chat}']").bounding_box(),
        page.get_by_role("menu").bounding_box(),
    )
    assert row and second and 0 <= second["y"] - row["y"] <= 2 * row["height"]  # where the first menu was
    page.get_by_role("menuitem", name="New folder…").click()
    page.get_by_role("textbox", name="Name of the folder").fill("Recipes <i>")
    page.keyboard.press("Enter")
    folder = page.locator(".chats .place", has_text="Recipes <i>")
    expect(folder).to_contain_text("1")
    expect(page.locator(f"[data-chat='{chat}']")).to_have_count(0)
    folder.get_by_role("button").click()
    expect(page.locator(f"[data-chat='{chat}']")).to_be_visible()
    page.locator("#folder-menu").click()
    page.get_by_role("menuitem", name="Name and prompt…").click()
    page.get_by_role("textbox", name="Name of the folder").fill("Kitchen")
    page.get_by_role("textbox", name="System prompt").fill("You are a cook.")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Kitchen")).to_be_visible()
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("New chat")
    stream = say(page, served, "Bread")
    assert stream.request.messages[0].content == "You are a cook."
    stream.finish()
    expect(page.locator(".chats [data-chat]")).to_have_text(["Bread", "Soup"])
    page.locator("#folder-menu").click()
    page.get_by_role("menuitem", name="Remove folder, keep its chats").click()
    expect(page.locator(".chats .place")).to_have_count(0)
    expect(page.locator(".chats [data-chat]")).to_have_text(["Bread", "Soup"])


def test_a_long_list_comes_as_one_scrolls(page: Page, served: Served) -> None:
    store = served.services.store
    rows = [{"id": f"n{number}", "title": f"Chat {number}"} for number in range(600)]
    common = {"model": "m", "system_prompt": "", "date": "", "updated": 1e9, "turn": 0, "leaf": 1}
    store.file.transact(lambda db: db["chats"].insert_all({**row, **common} for row in rows))
    served.services.chats.note_change("")
    listed = page.locator(".chats [data-chat]")
    expect(listed).to_have_count(100)
    for _ in range(5):
        count = listed.count()
        page.locator(".chats").evaluate("box => box.scrollTo(0, box.scrollHeight)")
        expect(listed).not_to_have_count(count)
    expect(page.locator("[data-chat='n599']")).to_be_attached()
    store.file.transact(lambda db: db.execute("DELETE FROM chats WHERE id LIKE 'n%'"))
    served.services.chats.note_change("")


def test_a_chat_deleted_while_it_answers_in_another_tab(profile: Profile, served: Served) -> None:
    first, second = profile.open(), profile.open()
    stream = say(first, served, "Doomed")
    stream.write("some text")
    expect(answer(first)).to_have_text("some text")
    menu(second, chat_of(first), "Delete")
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
