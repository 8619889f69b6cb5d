"""What is written, attached or waiting belongs to its chat: switching, deleting, other pages lose nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from tests.ui.conftest import Profile, Served, answer, chat_of, hold, say
from tests.ui.test_desk import attach, given


def test_a_file_that_arrives_late_is_with_the_chat_it_was_for(page: Page, served: Served) -> None:
    say(page, served, "One?").finish()
    expect(page.locator("#send")).to_be_visible()
    chat, chips = chat_of(page), page.locator("#desk-part .files li")
    held: list[Route] = []
    page.route("**/files?*", lambda route: held.append(route))
    with page.expect_request("**/files?*"):
        page.locator("input[type=file]").set_input_files([given("late.txt")])
    page.evaluate("octavo.show('')")
    expect(chips).to_have_count(0)
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(chips).to_have_text(["late.txtreading…"])
    page.evaluate("octavo.show('')")
    with page.expect_response("**/files?*"):
        held[0].continue_()
    key = f"octavo.draft.{chat}"
    page.wait_for_function("key => (localStorage.getItem(key) ?? '').includes('late.txt')", arg=key)
    expect(chips).to_have_count(0)
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(chips).to_contain_text(["late.txt"])


def test_a_message_that_waits_shows_its_files(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    attach(page, given("notes.md"))
    page.fill("#draft", "Two?")
    page.press("#draft", "Enter")
    waits = page.locator("#line .waits")
    expect(waits.locator(".given li")).to_have_text(["notes.md2 lines"])
    file = page.evaluate("octavo.state.view.line[0].files[0].id")
    assert (
        "waits"
        in page.evaluate("file => octavo.quietly('drop', { chat: octavo.state.chat, file })", file)["error"]
    )
    served.services.chats._store.file.transact(lambda db: db.execute("DELETE FROM attachments"))
    served.services.chats.note_change(chat_of(page))
    expect(waits).to_contain_text("A file that was attached is gone.")
    waits.get_by_role("button", name="Don’t send").click()
    expect(waits).to_have_count(0)
    stream.finish()


def test_escape_on_another_page_ends_no_answer(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    page.evaluate("octavo.turnPage('settings')")
    page.keyboard.press("Escape")
    page.evaluate("octavo.turnPage('chat')")
    assert not stream.cancelled.is_set()
    page.keyboard.press("Escape")
    assert stream.cancelled.wait(10)
    stream.finish()


def test_a_draft_comes_back_with_its_chat(profile: Profile, served: Served) -> None:
    page = profile.open()
    say(page, served, "One?").finish()
    expect(page.locator("#send")).to_be_visible()
    chat = chat_of(page)
    page.fill("#draft", "half a thought")
    served.services.shelf.discard(chat)
    other = profile.open()  # tidies what is left of chats that are gone
    with other.expect_response(lambda each: "gone" in (each.request.post_data or "")):
        other.evaluate("void octavo.tidyDrafts()")
    served.services.shelf.restore(chat)
    other.evaluate("chat => octavo.show(chat)", chat)
    expect(other.locator("#draft")).to_have_value("half a thought")
    served.services.chats.delete(chat)
    other.evaluate("octavo.tidyDrafts()")
    other.wait_for_function("key => !(key in localStorage)", arg=f"octavo.draft.{chat}")


def test_a_private_blank_page_says_what_private_means(page: Page, served: Served) -> None:
    page.evaluate("""octavo.act("new_private").then(({ chat }) => octavo.show(chat))""")
    hello = page.locator("#desk-part .hello")
    expect(hello).to_contain_text("never written to the disk")
    expect(page.locator("#first-run")).to_be_hidden()
    page.evaluate("octavo.show('')")
    expect(hello).not_to_contain_text("never written to the disk")


def test_what_is_sent_while_another_message_is_on_its_way_follows_it(page: Page, served: Served) -> None:
    on_its_way = hold(page, "send")
    page.fill("#draft", "One")
    for _ in range(2):  # it goes once all the same
        page.press("#draft", "Enter")
    page.fill("#draft", "Two")
    page.press("#draft", "Enter")
    on_its_way[0].continue_()
    for said in (["One"], ["One", "Two"]):
        expect(page.locator("#talk .said")).to_have_text(said)
        stream = served.model.next_stream()
        assert stream.request.messages[-1].content == said[-1]
        stream.finish()
    expect(page.locator("#draft")).to_have_value("")


@pytest.mark.parametrize("begun", [True, False])
def test_what_is_written_meanwhile_stays_with_its_chat(page: Page, served: Served, begun: bool) -> None:
    other = served.services.chats.send("", "Other?")
    served.model.next_stream().finish()
    if begun:
        say(page, served, "Mine?").finish()
        expect(page.locator("#stop")).to_be_hidden()
    on_its_way = hold(page, "send")
    page.fill("#draft", "One")
    page.press("#draft", "Enter")
    page.fill("#draft", "Two")
    page.evaluate("chat => octavo.show(chat)", other)
    expect(page.locator("#talk .said")).to_have_text("Other?")
    expect(page.locator("#draft")).to_have_value("")
    with page.expect_response(lambda each: '"send"' in (each.request.post_data or "")):
        on_its_way[0].continue_()
    served.model.next_stream().finish()
    (mine,) = (chat.id for chat in served.services.chats.list_chats() if chat.id != other)
    assert chat_of(page) == other
    page.evaluate("chat => octavo.show(chat)", mine)
    expect(page.locator("#talk .said").last).to_have_text("One")
    expect(page.locator("#draft")).to_have_value("Two")
    page.evaluate("octavo.show('')")
    expect(page.locator("#draft")).to_have_value("")
