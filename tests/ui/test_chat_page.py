"""A person chats: writing, streaming, stopping, several at once, coming back."""

from __future__ import annotations

import threading
from pathlib import Path

from playwright.sync_api import Page, Route, expect

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
    expect(figures).to_have_text("50 tokens/s · first token 0.25 s · 4 of 10 cached")
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
    page.reload()
    usable(page)
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
    expect(page.locator("#stop")).to_be_visible()
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
    stream.write("x")
    expect(answer(page)).to_have_text("x")
    stream.finish()
    expect(page.locator("#send")).to_be_enabled()
    expect(page.locator("#draft")).to_have_value("written meanwhile")
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#draft")).to_have_value("")
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
    expect(
        page.locator("#talk .bot-row [data-tool=again]")
    ).to_be_visible()  # its tools are not drawn anew now
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
    chats, chat = served.services.chats, ""
    for turn in range(30):
        chat = chats.send(chat, f"question {turn}")
        while chats.busy(chat):
            chats.wait(chat, chats.version(chat), 1)
    page.locator(f'.chat[data-chat="{chat}"] .open').click()
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
    place = page.evaluate("document.getElementById('talk').scrollTop")
    stream.write("more\n\n" * 20)
    expect(page.locator("#talk .bot-row p")).to_have_count(100)
    assert abs(page.evaluate("document.getElementById('talk').scrollTop") - place) < 5
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


def test_a_tab_that_is_opened_behind_another_waits_until_it_is_seen(profile: Profile, served: Served) -> None:
    """As a browser opens yesterday's tabs: six of them on chats that answer would keep all others out."""
    chat = served.services.chats.send("", "Hello")
    stream = served.model.next_stream()
    stream.write("begun")
    page = profile.context.new_page()
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })")
    page.goto(f"{served.url}?chat={chat}")
    expect(page.locator("#draft")).to_be_attached()
    page.wait_for_load_state("networkidle")
    assert not any("queue/" in url for url in profile.requests)
    _set_hidden(page, False)
    usable(page)
    expect(answer(page)).to_have_text("begun")
    stream.finish()


def _set_hidden(page: Page, hidden: bool) -> None:
    """What switching tabs does; a headless browser shows all of them."""
    page.evaluate(
        """hidden => { Object.defineProperty(document, "hidden", { get: () => hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange")) }""",
        hidden,
    )


def test_two_tabs_on_one_chat(profile: Profile, served: Served) -> None:
    first = profile.open()
    stream = say(first, served, "Both see it")
    stream.write("yes")
    expect(answer(first)).to_have_text("yes")
    second = profile.open(f"?chat={chat_of(first)}")
    expect(answer(second)).to_have_text("yes")
    stream.write(" and no")
    stream.finish()
    expect(answer(second)).to_have_text("yes and no")
    expect(second.locator("#send")).to_be_visible()


def test_where_the_stream_is_lost_for_good_the_page_is_loaded_anew(profile: Profile, served: Served) -> None:
    chat, lost = served.services.chats.send("", "Hello"), list[Route]()
    served.model.next_stream().finish()
    page = profile.context.new_page()
    page.clock.install()
    page.route("**/queue/data?*", lambda route: route.continue_() if lost else lost.append(route))
    with page.expect_request("**/queue/data?*"):
        page.goto(f"{served.url}?chat={chat}")
    with page.expect_event("load"):
        for patience in (700, 1400, 2800, 5600):
            page.clock.fast_forward(patience)
    expect(page.locator("#talk .said")).to_have_text("Hello")
    assert len(lost) == 1


def test_two_tabs_on_a_blank_page_begin_two_chats(profile: Profile, served: Served) -> None:
    tabs = [profile.open(), profile.open()]
    streams = [say(tab, served, f"Chat {place}") for place, tab in enumerate(tabs)]
    for place, (tab, stream) in enumerate(zip(tabs, streams)):
        stream.write(f"answer {place}")
        expect(answer(tab)).to_have_text(f"answer {place}")
        expect(tab.locator(".notice:not(.fit)")).to_be_hidden()
        expect(tab.locator(".chat")).to_have_count(2)
    assert chat_of(tabs[0]) != chat_of(tabs[1])


def test_a_suggestion_is_sent(page: Page, served: Served) -> None:
    page.fill("#draft", "kept for later")
    page.get_by_role("button", name="Write a short poem about rain").click()
    stream = served.model.next_stream()
    stream.write("Drip.")
    stream.finish()
    expect(page.locator("#talk .said")).to_have_text("Write a short poem about rain")
    expect(answer(page)).to_have_text("Drip.")
    expect(page.locator("#draft")).to_have_value("kept for later")


def test_the_context_meter_grows_with_the_answer(page: Page, served: Served) -> None:
    meter = page.get_by_role("meter")
    stream = say(page, served, "Count")
    stream.write("1234")
    expect(meter).to_have_text("14 / 2,048")
    stream.write("5")
    expect(meter).to_have_text("15 / 2,048")
    stream.finish()
    page.get_by_role("button", name="Try again").click()
    stream = served.model.next_stream()
    expect(meter).to_have_text("10 / 2,048")
    stream.write("12")
    expect(meter).to_have_text("12 / 2,048")
    stream.finish()


def test_a_notice_goes_with_its_cause(profile: Profile, served: Served) -> None:
    first = profile.open()
    stream = say(first, served, "Long")
    stream.write("begun")
    expect(answer(first)).to_have_text("begun")
    second = profile.open(f"?chat={chat_of(first)}")
    expect(answer(second)).to_have_text("begun")
    refused = "octavo.act('retry', { chat: octavo.state.chat, message: octavo.state.view.notes[0].id })"
    notice = second.locator(".notice:not(.fit)")
    second.evaluate(refused)
    expect(notice).to_contain_text("still answering")
    second.type("#draft", "x")
    expect(notice).to_be_hidden()
    second.evaluate(refused)
    expect(notice).to_contain_text("still answering")
    stream.finish()
    expect(notice).to_be_hidden()


# Playwright's offline leaves connections alone that are there already
BREAKABLE = """const real = window.fetch;
    window.fetch = async (url, options) => {
        const answer = await real(url, options);
        if (!(url.url ?? String(url)).includes("queue/data")) return answer;
        const reader = answer.body.getReader();
        const body = new ReadableStream({
            start: (way) => { window.breakStream = () => way.error(new TypeError("network error")) },
            pull: async (way) => {
                const { done, value } = await reader.read();
                return done ? way.close() : way.enqueue(value) } });
        return new Response(body, { headers: answer.headers }) }"""


def test_the_server_is_lost_while_it_answers(profile: Profile, served: Served) -> None:
    """The page says so in its own words, once; Gradio's are not seen. It goes on by itself."""
    profile.context.add_init_script(BREAKABLE)
    page = profile.open()
    stream = say(page, served, "Talk")
    stream.write("half")
    expect(answer(page)).to_have_text("half")
    profile.context.set_offline(True)
    page.evaluate("breakStream()")
    expect(page.locator(".notice:not(.fit)")).to_contain_text("Octavo does not answer")
    expect(page.locator("#head-part .model")).to_be_hidden()
    expect(page.locator(".toast-body").first).to_be_attached()
    expect(page.locator(".toast-body").first).to_be_hidden()
    stream.write(" and whole")
    profile.context.set_offline(False)
    expect(answer(page)).to_have_text("half and whole")
    expect(page.locator(".notice:not(.fit)")).to_be_hidden()
    stream.finish()
    profile.errors.clear()  # what Chromium says of requests that could not be made


HELD = """() => { const real = fetch, held = []; window.held = held;
    window.fetch = async (url, options) => {
        if (!String(url).includes("queue/join")) return real(url, options);
        const answer = real(url, options);
        if (held.length >= 1) { held.push(1); return answer; }
        held.push(1);
        return new Promise(() => {}); } }"""


def test_a_view_that_is_lost_on_the_way_is_asked_for_again(page: Page, served: Served) -> None:
    stream = say(page, served, "Lost")
    stream.write("found")
    stream.finish()
    expect(answer(page)).to_have_text("found")
    page.evaluate(HELD)
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    page.wait_for_function("held.length > 1 && octavo.state.view.chat === ''")


OVERTAKING = """() => { const real = fetch; let first = null;
    window.fetch = (url, options) => {
        if (!String(url).includes("queue/join")) return real(url, options);
        if (first) { const late = first; first = null; return real(url, options).finally(late); }
        return new Promise(done => { first = () => done(real(url, options)) }) } }"""


def test_requests_that_overtake_each_other(page: Page, served: Served) -> None:
    """The older one comes later, is not followed, and the page shows what was wanted last."""
    stream = say(page, served, "One")
    stream.write("first")
    stream.finish()
    expect(page.locator("#talk .foot [data-tool=again]")).to_be_visible()  # it has ended, and the page knows
    page.evaluate(OVERTAKING)
    page.evaluate("octavo.show(octavo.state.chat); octavo.show('')")
    page.wait_for_function("octavo.state.chat === '' && octavo.state.view.chat === ''")
    expect(page.locator("#talk .message-row")).to_have_count(0)


def test_a_message_before_the_model_is_loaded(tmp_path: Path, new_profile: NewProfile) -> None:
    gate = threading.Event()
    with serving(tmp_path, gate) as served:
        page = new_profile(served).open()
        expect(page.locator("#head-part .model")).to_contain_text("Loading")
        expect(page.locator(".notice:not(.fit)")).to_contain_text("The model is loading")
        expect(page.locator(".notice:not(.fit)")).to_contain_text(". You can already write")
        page.fill("#draft", "Are you there?")
        page.press("#draft", "Enter")
        expect(page.locator("#talk .waiting")).to_be_visible()
        gate.set()
        stream = served.model.next_stream()
        stream.write("Now I am.")
        stream.finish()
        expect(answer(page)).to_have_text("Now I am.")
        assert page.evaluate("octavo.state.status.state") == "ready"  # the view brought it along
        expect(page.locator(".notice:not(.fit)")).to_be_hidden()
        served.model.fault = "The engine stopped: a fault in step 12."
        expect(page.locator(".notice:not(.fit)")).to_contain_text("a fault in step 12")
        page.locator(".notice:not(.fit)").get_by_role("button", name="Try again").click()
        assert served.asked_restart.wait(10)
        page.close()  # before its server goes, for which it would ask in vain


# each change of what stands there, in words
WATCHED = """place => { window.touched = [];
    const tell = ({ type, target, attributeName }) =>
        touched.push([type, target.className, attributeName].join(" "));
    const everything = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver((all) => all.forEach(tell)).observe(document.querySelector(place), everything) }"""


def test_while_an_answer_grows_what_was_said_before_is_left_alone(page: Page, served: Served) -> None:
    """Else each piece of an answer would cost as much as the chat is long."""
    served.model.answer = lambda request: "**done** and `done`"
    chats, chat = served.services.chats, ""
    for turn in range(12):
        chat = chats.send(chat, f"question {turn}")
        while chats.busy(chat):
            chats.wait(chat, chats.version(chat), 1)
    while not served.model.new.empty():
        served.model.new.get()
    served.model.answer = lambda request: None
    page.evaluate("chat => octavo.show(chat)", chat)
    expect(page.locator("#talk .message-row")).to_have_count(24)
    stream = say(page, served, "And now?")
    stream.write("It")
    expect(answer(page)).to_have_text("It")
    expect(page.locator("#past .message-row")).to_have_count(24)
    feet = "row => JSON.parse(row.octavoSign ?? '[]')"  # of each row: drawn while this answer grows
    page.wait_for_function(
        f"[...document.querySelectorAll('#past .message-row')].every(row => ({feet})(row)[3] === true)"
    )
    stream.write(" begins")  # what the first piece still had drawn is drawn with the second
    expect(answer(page)).to_contain_text("begins")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.evaluate(WATCHED, "#past .message-wrap")
    for word in (" grows", " and", " grows."):
        stream.write(word)
        expect(answer(page)).to_contain_text(word.strip())
    assert page.evaluate("touched") == []
    stream.finish()
