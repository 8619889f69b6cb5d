"""Thoughts are folded above an answer, with their time; they can be seen as they grow, and ended."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.conftest import NewProfile, Served, answer, say
from tests.ui.test_chat_page import WATCHED

# what the page was told comes once more
ANEW = """() => { const { view } = octavo.state;
    octavo.set({ view: { ...view, notes: structuredClone(view.notes) } });
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))) }"""


def test_thoughts_are_folded_and_shown_on_request(page: Page, served: Served) -> None:
    stream = say(page, served, "2+2?")
    stream.write("<think>\nTwo <b>and</b> 😀 two")
    thoughts = page.locator("#talk .thoughts")
    expect(thoughts.locator("summary")).to_contain_text("Thinking · ")
    expect(thoughts.locator(".text")).to_be_hidden()
    expect(page.locator("#talk .waiting")).to_have_count(0)
    thoughts.locator("summary").click()
    expect(thoughts.locator(".text")).to_have_text("Two <b>and</b> 😀 two")
    stream.write(" 😀 is")
    expect(thoughts.locator(".text")).to_have_text("Two <b>and</b> 😀 two 😀 is")
    stream.write(" four\n</think>\n\nFour.")
    expect(answer(page)).to_have_text("Four.")
    expect(thoughts.locator("summary")).to_contain_text("Thought for ")
    expect(thoughts.get_by_role("button")).to_have_count(0)
    stream.finish()
    expect(thoughts.locator(".text")).to_have_text("Two <b>and</b> 😀 two 😀 is four")
    thoughts.locator("summary").press("Enter")
    expect(thoughts.locator(".text")).to_be_hidden()
    page.reload()
    expect(answer(page)).to_have_text("Four.")
    expect(thoughts.locator("summary")).to_contain_text("Thought for ")
    expect(thoughts.locator(".text")).to_be_hidden()
    expect(page.locator("#talk .bot-row [data-tool=again]")).to_be_visible()  # all is drawn
    page.evaluate(WATCHED, "#talk")
    page.evaluate(ANEW)
    assert page.evaluate("touched") == []


def test_a_copied_answer_has_no_thoughts(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, permissions=["clipboard-read", "clipboard-write"]).open()
    stream = say(page, served, "2+2?")
    stream.write("<think>\nTwo and two\n</think>\n\nFour.")
    stream.finish()
    page.locator("#talk .bot-row [data-tool=copy]").click()
    page.wait_for_function("async () => await navigator.clipboard.readText() === 'Four.'")


def test_answer_now(page: Page, served: Served) -> None:
    stream = say(page, served, "2+2?")
    stream.write("<think>\nLet me see")
    page.get_by_role("button", name="Answer now").click()
    stream = served.model.next_stream()
    assert stream.request.continue_last and "</think>" in stream.request.begin
    stream.write("Four.")
    stream.finish()
    expect(answer(page)).to_have_text("Four.")
    expect(page.locator("#talk .thoughts summary")).to_contain_text("Thought for ")
    expect(page.locator("#talk .message-row")).to_have_count(2)
    expect(page.locator("#talk .figures")).to_contain_text("tokens/s")


def test_an_answer_that_was_stopped_while_it_thought_goes_on(page: Page, served: Served) -> None:
    stream = say(page, served, "2+2?")
    stream.write("<think>\nLet me see")
    expect(page.locator("#talk .thoughts")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Continue").click()
    stream = served.model.next_stream()
    expect(page.locator("#talk .thoughts summary")).to_contain_text("Thinking · ")
    stream.write(": four\n</think>\n\nFour.")
    stream.finish()
    expect(answer(page)).to_have_text("Four.")
