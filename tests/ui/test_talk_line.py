"""What is sent while an answer grows waits below the conversation, and is lost to nothing."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.conftest import Served, answer, say


def queue(page: Page, text: str) -> None:
    page.fill("#draft", text)
    page.press("#draft", "Enter")
    expect(page.locator("#line .waits").last).to_contain_text(text)


def test_messages_wait_and_are_sent_in_turn(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    for text in ("Two?", "Three?", "Four?"):
        queue(page, text)
    waits = page.locator("#line .waits")
    expect(page.get_by_role("region", name="Waiting until the answer has ended")).to_be_visible()
    page.reload()
    expect(waits).to_have_count(3)
    waits.nth(2).get_by_role("button", name="Don’t send").click()
    expect(waits).to_have_count(2)
    waits.nth(1).get_by_role("button", name="Edit this message").click()
    box = page.locator("#line textarea")
    expect(box).to_be_focused()
    box.fill("Drei?")
    box.press("Enter")
    expect(waits.nth(1)).to_contain_text("Drei?")
    stream.finish()
    stream = served.model.next_stream()
    expect(waits).to_have_count(1)
    expect(page.locator("#talk .said").last).to_have_text("Two?")
    stream.write("2")
    stream.finish()
    stream = served.model.next_stream()
    expect(page.locator("#talk .said").last).to_have_text("Drei?")
    expect(page.locator("#line")).to_be_hidden()
    stream.write("3")
    stream.finish()
    expect(answer(page)).to_have_text("3")
    expect(page.locator("#send")).to_be_visible()


def test_stop_holds_the_line_and_send_now_ends_the_answer(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    queue(page, "Two?")
    queue(page, "<img src=x onerror='window.hit = 1'>")
    page.locator("#draft").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#line h2")).to_have_text("Not sent yet")
    page.locator("#line .waits").first.get_by_role("button", name="Send now").click()
    stream = served.model.next_stream()
    stream.write("2")
    expect(answer(page)).to_have_text("2")
    page.locator("#line .waits").get_by_role("button", name="Send now").click()
    third = served.model.next_stream()
    assert stream.cancelled.is_set()
    third.write("3")
    third.finish()
    expect(answer(page)).to_have_text("3")
    expect(page.locator("#line")).to_be_hidden()
    assert page.evaluate("window.hit") is None


def test_an_edit_in_the_line_is_not_disturbed_by_the_answer(page: Page, served: Served) -> None:
    stream = say(page, served, "One?")
    stream.write("1")
    expect(answer(page)).to_have_text("1")
    queue(page, "Two?")
    page.locator("#line [data-tool=pen]").click()
    page.locator("#line textarea").fill("Zwei")
    stream.write(" and more")
    expect(answer(page)).to_have_text("1 and more")
    expect(page.locator("#line textarea")).to_be_focused()
    page.keyboard.type("?")
    page.keyboard.press("Enter")
    expect(page.locator("#line .waits p")).to_have_text("Zwei?")
    stream.finish()
    assert served.model.next_stream().request.messages[-1].content == "Zwei?"
