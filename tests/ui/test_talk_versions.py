"""A person turns in the tree of a chat: edits, versions, branches, answers side by side, other words."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from engine import FinishReason
from tests.ui.conftest import Served, answer, chat_of, say


def reply(page: Page, served: Served, text: str, reason: FinishReason = FinishReason.STOP) -> None:
    """Answer what was just asked."""
    stream = served.model.next_stream()
    stream.write(text)
    stream.finish(reason)
    expect(answer(page)).to_have_text(text)
    expect(page.locator("#send")).to_be_visible()


def talk(page: Page, served: Served, *turns: tuple[str, str]) -> None:
    for question, text in turns:
        stream = say(page, served, question)
        stream.write(text)
        stream.finish()
        expect(answer(page)).to_have_text(text)
        expect(page.locator("#talk .figures").last).to_contain_text("tokens/s")


def said(page: Page) -> list[str]:
    return [text.strip() for text in page.locator("#talk :is(.said, .bot-row .prose)").all_text_contents()]


def pick(page: Page, row: str, item: str) -> None:
    """Choose from a message's menu."""
    page.locator(f"#talk {row}").last.hover()
    page.locator(f"#talk {row} [data-tool=more]").last.click()
    page.locator(f".menu [data-item={item}]").click()


def test_an_edited_message_and_its_versions(page: Page, served: Served) -> None:
    talk(page, served, ("One?", "1"), ("Two?", "2"))
    page.locator("#talk .user-row").first.hover()
    page.locator("#talk .user-row").first.get_by_role("button", name="Edit this message").click()
    box = page.get_by_role("textbox", name="Edit this message")
    expect(box).to_be_focused()
    expect(box).to_have_value("One?")
    expect(page.locator("#talk .rewrite small")).to_contain_text("Ctrl+Enter sends")
    box.press("Escape")
    expect(box).to_have_count(0)
    expect(page.locator("#talk .user-row [data-tool=pen]").first).to_be_focused()
    page.locator("#talk .user-row [data-tool=pen]").first.click()
    box.fill("Eins?")
    box.press("Control+Enter")
    reply(page, served, "eins")
    expect(page.locator("#talk .message-row")).to_have_count(2)
    versions = page.get_by_role("group", name="Versions")
    expect(versions).to_have_text("2 / 2")
    page.get_by_role("button", name="Previous version").click()
    expect(page.locator("#talk .message-row")).to_have_count(4)  # what was last seen below it
    assert said(page) == ["One?", "1", "Two?", "2"]
    expect(versions).to_have_text("1 / 2")
    expect(page.get_by_role("button", name="Next version")).to_be_focused()  # the keyboard stays there
    page.keyboard.press("Enter")
    expect(answer(page)).to_have_text("eins")
    page.reload()
    expect(answer(page)).to_have_text("eins")
    expect(versions).to_have_text("2 / 2")


def test_any_answer_can_be_asked_for_again_and_put_in_other_words(page: Page, served: Served) -> None:
    talk(page, served, ("One?", "1"), ("Two?", "2"))
    page.locator("#talk .bot-row [data-tool=again]").first.click()
    reply(page, served, "one")
    assert said(page) == ["One?", "one"]
    pick(page, ".bot-row", "pen")
    box = page.get_by_role("textbox", name="Edit this answer")
    box.fill("one, I say")
    page.get_by_role("button", name="Keep").click()
    expect(answer(page)).to_have_text("one, I say")
    expect(page.get_by_role("group", name="Versions")).to_have_text("3 / 3")
    page.fill("#draft", "")
    page.press("#draft", "ArrowUp")
    expect(page.get_by_role("textbox", name="Edit this message")).to_have_value("One?")


def test_a_branch_becomes_a_chat_and_a_version_is_deleted(page: Page, served: Served) -> None:
    talk(page, served, ("One?", "1"), ("Two?", "2"))
    first = chat_of(page)
    page.locator("#talk .bot-row [data-tool=more]").first.click()
    page.locator(".menu [data-item=branch]").click()
    page.wait_for_function(
        "first => octavo.state.chat !== first && octavo.state.view.chat !== first", arg=first
    )
    expect(page.locator("#talk .message-row")).to_have_count(2)
    expect(page.locator(".chat")).to_have_count(2)
    page.locator("#talk .bot-row [data-tool=again]").click()
    reply(page, served, "uno")
    pick(page, ".bot-row", "bin")
    dialog = page.get_by_role("dialog", name="Delete this answer?")
    expect(dialog).to_contain_text("Its other versions stay")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Delete").click()
    expect(answer(page)).to_have_text("1")
    expect(page.get_by_role("group", name="Versions")).to_have_count(0)
    page.go_back()
    expect(page.locator("#talk .message-row")).to_have_count(4)


def test_the_menu_is_for_the_keyboard_too(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    page.locator("#talk .user-row").hover()
    button = page.locator("#talk .user-row [data-tool=more]")
    button.click()
    expect(page.get_by_role("menuitem")).to_have_count(1)  # only what can be done while it answers
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    assert not stream.cancelled.is_set()  # Escape closed the menu, and stopped nothing
    stream.finish()
    expect(page.locator("#send")).to_be_visible()
    page.locator("#talk .bot-row [data-tool=more]").focus()
    page.keyboard.press("Enter")
    items = page.get_by_role("menuitem")
    expect(items.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(items.last).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(items.first).to_be_focused()
    page.keyboard.press("Tab")
    expect(items).to_have_count(0)


def test_a_cut_answer_goes_on(page: Page, served: Served) -> None:
    stream = say(page, served, "Count")
    stream.write("1 2 3")
    stream.finish(FinishReason.LENGTH)
    expect(page.locator("#talk .figures")).to_contain_text("cut at the length limit")
    page.get_by_role("button", name="Continue").click()
    stream = served.model.next_stream()
    assert stream.request.continue_last
    stream.write(" 4 5")
    stream.finish()
    expect(answer(page)).to_have_text("1 2 3 4 5")
    expect(page.locator("#talk .message-row")).to_have_count(2)
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)


def test_an_answer_in_a_full_chat_does_not_go_on(page: Page, served: Served) -> None:
    stream = say(page, served, "Count")
    stream.write("1" * (served.model.context_length - stream.prompt_tokens))
    stream.finish(FinishReason.LENGTH)
    expect(page.locator("#talk .figures")).to_contain_text("cut at the length limit")
    expect(page.get_by_role("button", name="Continue")).to_have_count(0)
