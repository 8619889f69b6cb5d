"""What is being written in place of a message is not lost: by a reload, or with its chat in another tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import Profile, Served, chat_of, hold, usable
from tests.ui.test_desk import FULL
from tests.ui.test_talk_versions import pick, talk


def rewrite(page: Page, row: str, text: str) -> None:
    """Begin to put a message in other words."""
    page.locator(f"#talk {row}").hover()
    if row == ".user-row":
        page.locator(f"#talk {row} [data-tool=pen]").click()
    else:
        page.locator(f"#talk {row} [data-tool=again]").wait_for()  # nothing grows any more
        pick(page, row, "pen")
    page.locator("#talk .rewrite textarea").fill(text)


@pytest.mark.parametrize("row", [".user-row", ".bot-row"])
def test_a_reload_finds_it(page: Page, served: Served, row: str) -> None:
    talk(page, served, ("One?", "1"))
    rewrite(page, row, "other <i>words</i>")
    page.reload()
    usable(page)
    box = page.locator(f"#talk {row} .rewrite textarea")
    expect(box).to_have_value("other <i>words</i>")
    box.press("Escape")
    expect(box).to_have_count(0)
    page.reload()
    usable(page)
    expect(page.locator("#talk .figures")).to_be_visible()
    expect(box).to_have_count(0)
    assert page.evaluate("Object.keys(sessionStorage).filter(key => key.includes('rewrite'))") == []


def test_where_its_chat_is_deleted_one_goes_on_writing(profile: Profile, served: Served) -> None:
    page = profile.open()
    page.fill("#draft", "on the blank page")
    chat = served.services.chats.send("", "One?")
    served.model.next_stream().finish()
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(page.locator("#talk .said")).to_have_text("One?")
    expect(page.locator("#draft")).to_have_value("")
    rewrite(page, ".user-row", "half a thought")
    served.services.shelf.discard(chat)  # as another tab does
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    expect(page.locator("#draft")).to_have_value("on the blank page\n\nhalf a thought")
    expect(page.locator("#toast")).to_contain_text("What you were writing there stands in the box below.")


def test_of_a_private_chat_nothing_stays(page: Page, served: Served) -> None:
    page.evaluate("""octavo.act("new_private").then(({ chat }) => octavo.show(chat))""")
    expect(page.locator("#head-part .secret")).to_be_visible()
    talk(page, served, ("One?", "1"))
    rewrite(page, ".user-row", "a secret")
    kept = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"
    assert "a secret" not in page.evaluate(kept) and "One?" not in page.evaluate(kept)
    served.services.shelf.discard(chat_of(page))
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    expect(page.locator("#draft")).to_have_value("")
    assert "a secret" not in page.evaluate(kept)


def test_it_is_saved_once_and_nobody_is_called_back(page: Page, served: Served) -> None:
    other = served.services.chats.send("", "Other?")
    served.model.next_stream().finish()
    talk(page, served, ("One?", "1"))
    chat, box = chat_of(page), page.locator("#talk .rewrite textarea")
    rewrite(page, ".bot-row", "in other words")
    for is_saved in (False, True):
        on_its_way = hold(page, "edit")
        for keys in ("Control+Enter", "Control+Enter", "Escape"):
            box.press(keys)
        expect(box).not_to_be_editable()
        if not is_saved:
            on_its_way[0].fulfill(json={"error": "There is no room."})
            expect(page.locator("#desk-part .notice")).to_contain_text("There is no room.")
            expect(box).to_be_editable()
            expect(box).to_have_value("in other words")
    page.evaluate("chat => octavo.show(chat)", other)
    expect(page.locator("#talk .said")).to_have_text("Other?")
    on_its_way[0].continue_()
    page.wait_for_function("octavo.rewrite.open() === undefined")
    assert chat_of(page) == other
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(page.locator("#talk .bot-row .prose")).to_have_text("in other words")
    expect(page.get_by_role("group", name="Versions")).to_have_text("2 / 2")


def test_what_the_browser_has_no_room_for_stays_with_the_page(page: Page, served: Served) -> None:
    talk(page, served, ("One?", "1"))
    chat, box = chat_of(page), page.locator("#talk .rewrite textarea")
    rewrite(page, ".user-row", "older words")
    page.evaluate(f"() => {{ {FULL} }}")
    box.fill("newer words")
    expect(page.locator("#toast")).to_contain_text("This browser keeps no drafts now")
    assert page.evaluate("sessionStorage.getItem('octavo.rewrite')") is None
    page.evaluate("octavo.show('')")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(box).to_have_value("newer words")
