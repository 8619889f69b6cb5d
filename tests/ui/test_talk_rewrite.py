"""What is being written in place of a message is not lost: by a reload, or with its chat in another tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import Profile, Served, chat_of, usable
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
    served.services.shelf.discard(chat_of(page))
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    expect(page.locator("#draft")).to_have_value("")
    kept = "JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"
    page.wait_for_function(f"!{kept}.includes('a secret')")
