"""A person chats: writing, streaming, stopping, several at once, coming back."""

from __future__ import annotations

import threading
from pathlib import Path

from playwright.sync_api import Page, expect

from engine import FinishReason
from tests.ui.conftest import NewProfile, Profile, Served, answer, chat_of, say, serving, usable

CODE = "Here:\n\n```python\ndef f(x):\n    if x:\n        return 1\n```\n\nand `inline`."


def test_a_first_message(page: Page, served: Served) -> None:
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    stream = say(page, served, "Explain how a book is bound")
    expect(page.locator("#talk .waiting")).to_be_visible()
    expect(page.locator("#draft")).to_have_value("")
    expect(page.locator("#stop")).to_be_visible()
    stream.write("It is **folded**")
    expect(answer(page)).to_have_text("It is folded")
    stream.write(" first.")
    stream.finish()
    expect(answer(page)).to_have_text("It is folded first.")
    expect(answer(page).locator("strong")).to_have_text("folded")
    figures = page.locator("#talk .figures").last
    expect(figures).to_have_text("50 tokens/s · first token 0.25 s · 4 of 10 prompt tokens cached")
    expect(page.locator("#send")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Explain how a book is bound")
    expect(page.locator(".chat.is-current .title")).to_have_text("Explain how a book is bound")
    expect(page.get_by_role("meter")).to_contain_text("/ 2,048")
    assert f"chat={chat_of(page)}" in page.url and "__theme" not in page.url


def test_two_chats_answer_at_once(page: Page, served: Served) -> None:
    first = say(page, served, "One")
    first.write("first begins")
    expect(answer(page)).to_have_text("first begins")
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    second = say(page, served, "Two")
    second.write("second begins")
    first.write(", goes on")
    expect(answer(page)).to_have_text("second begins")
    expect(page.locator(".dot.answering")).to_have_count(2)
    page.locator(".chat .open", has_text="One").click()
    expect(answer(page)).to_have_text("first begins, goes on")
    first.finish()
    second.write(" and ends")
    second.finish()
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator(".chat", has_text="Two").locator(".dot.unread")).to_be_visible()
    page.locator(".chat .open", has_text="Two").click()
    expect(answer(page)).to_have_text("second begins and ends")
    expect(page.locator(".dot")).to_have_count(0)


def test_a_reload_in_the_middle_of_an_answer(page: Page, served: Served) -> None:
    stream = say(page, served, "Count")
    stream.write("one two")
    expect(answer(page)).to_have_text("one two")
    page.reload()
    usable(page)
    expect(answer(page)).to_have_text("one two")
    stream.write(" three")
    expect(answer(page)).to_have_text("one two three")
    stream.finish()
    expect(page.locator("#send")).to_be_visible()


def test_an_answer_goes_on_while_no_tab_is_open(profile: Profile, served: Served) -> None:
    page = profile.open()
    stream = say(page, served, "Go on")
    address = page.url
    page.close()
    stream.write("written unseen")
    stream.finish()
    page = profile.open(url=address)
    expect(answer(page)).to_have_text("written unseen")


def test_stop_keeps_what_there_is(page: Page, served: Served) -> None:
    stream = say(page, served, "Talk")
    stream.write("half")
    expect(answer(page)).to_have_text("half")
    page.keyboard.press("Escape")
    expect(page.locator("#talk .figures").last).to_contain_text("stopped")
    assert stream.cancelled.is_set()
    expect(answer(page)).to_have_text("half")
    again = say(page, served, "Once more")
    again.write("quarter")
    page.locator("#stop").click()
    expect(page.locator("#send")).to_be_visible()
    assert again.cancelled.is_set()


def test_retry_answers_the_same_question(page: Page, served: Served) -> None:
    stream = say(page, served, "Say a word")
    stream.write("first")
    stream.finish()
    page.get_by_role("button", name="Try again").click()
    stream = served.model.next_stream()
    stream.write("second")
    stream.finish()
    expect(answer(page)).to_have_text("second")
    expect(page.locator("#talk .message-row")).to_have_count(2)


def test_errors_stand_in_the_chat(page: Page, served: Served) -> None:
    stream = say(page, served, "Break")
    stream.write("so far")
    stream.finish(FinishReason.ERROR, "The pool has 8 blocks; 9 are needed. <b>Write less.</b>")
    expect(page.get_by_role("alert")).to_have_text("The pool has 8 blocks; 9 are needed. <b>Write less.</b>")
    expect(answer(page)).to_have_text("so far")


def test_an_empty_message_is_not_sent(page: Page, served: Served) -> None:
    expect(page.locator("#send")).to_be_disabled()
    page.fill("#draft", "  \n ")
    page.press("#draft", "Enter")
    expect(page.locator("#send")).to_be_disabled()
    assert served.model.new.empty()


def test_lines_drafts_and_shortcuts(page: Page, served: Served) -> None:
    page.type("#draft", "a")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("b")
    expect(page.locator("#draft")).to_have_value("a\nb")
    stream = say(page, served, "a\nb")
    expect(page.locator("#stop")).to_be_visible()  # the page knows that it answers
    page.fill("#draft", "written meanwhile")
    page.press("#draft", "Enter")  # not while it answers
    stream.write("x")
    expect(answer(page)).to_have_text("x")
    stream.finish()
    expect(page.locator("#send")).to_be_enabled()
    expect(page.locator("#draft")).to_have_value("written meanwhile")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#draft")).to_have_value("")
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#draft")).to_be_focused()
    page.go_back()
    expect(page.locator("#draft")).to_have_value("written meanwhile")
    page.locator("#new-chat").focus()
    page.keyboard.press("/")
    expect(page.locator("#draft")).to_be_focused()
    page.reload()
    usable(page)
    expect(page.locator("#draft")).to_have_value("written meanwhile")


def test_copies_are_exact(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, permissions=["clipboard-read", "clipboard-write"]).open()
    written = "  def g():\n    return $5 + $6  # *not* bold, <i>no tag</i>"
    stream = say(page, served, written)
    stream.write(CODE)
    stream.finish()
    expect(page.locator("#talk .figures").last).to_contain_text("tokens/s")
    clipboard = "navigator.clipboard.readText()"
    page.locator("#talk .bot-row [data-tool=copy]").click()
    expect(page.locator("#talk .bot-row [data-tool=copy] path")).to_have_attribute("d", "M5 13l4 4L19 7")
    assert page.evaluate(clipboard) == CODE
    page.locator("#talk .copy_code_button").click()
    page.wait_for_function("async code => (await navigator.clipboard.readText()).trim() === code",
                           arg="def f(x):\n    if x:\n        return 1")  # fmt: skip
    said = page.locator("#talk .said")
    assert said.evaluate("e => e.textContent") == written
    page.locator("#talk .user-row").hover()
    page.locator("#talk .user-row [data-tool=copy]").click()
    page.wait_for_function("async text => await navigator.clipboard.readText() === text", arg=written)


def test_long_chats_come_in_pieces(page: Page, served: Served) -> None:
    served.model.answer = lambda request: f"answer to {request.messages[-1].content}"
    chats, chat = served.services.chats, chat_of(page)
    for turn in range(30):
        chats.send(chat, f"question {turn}")
        while chats.busy(chat):
            chats.wait(chat, chats.version(chat), 1)
    page.reload()
    usable(page)
    rows = page.locator("#talk .message-row")
    expect(rows).to_have_count(40)
    expect(rows.last).to_be_in_viewport()
    page.locator("#earlier").scroll_into_view_if_needed()
    expect(page.locator("#earlier")).to_have_text("Show earlier messages (20)")
    first = rows.first.locator(".said").text_content()
    page.locator("#earlier").click()
    expect(rows).to_have_count(60)
    expect(page.locator("#earlier")).to_be_hidden()
    expect(page.locator("#talk .said", has_text=first or "").first).to_be_in_viewport()
    page.locator("#to-end").click()
    expect(rows.last).to_be_in_viewport()


def test_a_reader_who_scrolled_up_stays_there(page: Page, served: Served) -> None:
    stream = say(page, served, "Long")
    stream.write("line\n\n" * 80)
    expect(page.locator("#talk .bot-row p")).to_have_count(80)
    expect(page.locator("#talk .bot-row p").last).to_be_in_viewport()
    page.locator("#talk").hover()
    page.mouse.wheel(0, -600)
    expect(page.locator("#to-end")).to_be_visible()
    place = page.evaluate("document.querySelector('#talk .bubble-wrap').scrollTop")
    stream.write("more\n\n" * 20)
    expect(page.locator("#talk .bot-row p")).to_have_count(100)
    assert abs(page.evaluate("document.querySelector('#talk .bubble-wrap').scrollTop") - place) < 5
    page.locator("#to-end").click()
    expect(page.locator("#talk .bot-row p").last).to_be_in_viewport()
    stream.finish()


def test_nine_tabs(profile: Profile, served: Served) -> None:
    """Browsers allow six connections for each host; a hidden tab gives its stream back."""
    tabs = []
    for place in range(9):
        page = profile.open()
        stream = say(page, served, f"Tab {place}")
        stream.write("begun")
        expect(answer(page)).to_have_text("begun")
        _set_hidden(page, True)
        tabs.append((page, stream))
    for page, stream in tabs:
        stream.write(", ended")
        stream.finish()
        _set_hidden(page, False)
        expect(answer(page)).to_have_text("begun, ended")


def _set_hidden(page: Page, hidden: bool) -> None:
    """What switching tabs does; a headless browser shows all of them."""
    page.evaluate(
        """hidden => { Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange")) }""",
        hidden,
    )


def test_two_tabs_on_one_chat(profile: Profile, served: Served) -> None:
    first = profile.open()
    second = profile.open(f"?chat={chat_of(first)}")
    stream = say(first, served, "Both see it")
    stream.write("yes")
    expect(answer(second)).to_have_text("yes")
    stream.finish()
    expect(second.locator("#send")).to_be_visible()


def test_a_message_before_the_model_is_loaded(tmp_path: Path, new_profile: NewProfile) -> None:
    gate = threading.Event()
    with serving(tmp_path, gate) as served:
        page = new_profile(served).open()
        expect(page.locator("#head-part .model")).to_contain_text("Loading")
        expect(page.locator(".notice")).to_contain_text("You can already write")
        page.fill("#draft", "Are you there?")
        page.press("#draft", "Enter")
        expect(page.locator("#talk .waiting")).to_be_visible()
        gate.set()
        stream = served.model.next_stream()
        stream.write("Now I am.")
        stream.finish()
        expect(answer(page)).to_have_text("Now I am.")
        expect(page.locator(".notice")).to_be_hidden()
        served.model.fault = "The engine stopped: a fault in step 12."
        expect(page.locator(".notice")).to_contain_text("a fault in step 12")
        page.locator(".notice").get_by_role("button", name="Try again").click()
        assert served.asked_restart.wait(10)
