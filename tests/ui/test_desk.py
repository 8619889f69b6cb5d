"""Writing: files, what a message would cost, what does not fit, drafts, shortcuts, dictation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Response, expect

from app import FILE_LIMIT, MOST_FILES
from app.access.guard import STATIC
from tests.app.sample_documents import bomb, pdf
from tests.ui.conftest import NewProfile, Profile, Served, answer, chat_of, say, usable

PAGES = [f"Page {n} is about paper." + "\nFill the page with many words." * 30 for n in range(1, 41)]
PAGES[16] = "The headband has two colours." + "\nFill the page with many words." * 12


def given(name: str, data: bytes = b"Folded once.\nSewn twice.") -> Any:
    return {"name": name, "mimeType": "application/octet-stream", "buffer": data}


def attach(page: Page, *files: Any) -> Locator:
    page.locator("input[type=file]").set_input_files(list(files))
    expect(page.locator(".files .spin")).to_have_count(0)
    return page.locator("#desk-part .files li")


def drop(page: Page, kind: str, target: str, *files: tuple[str, str]) -> None:
    """A drag or a paste as a browser makes it."""
    script = """([kind, target, files]) => {
        const data = new DataTransfer();
        for (const [name, text] of files) data.items.add(new File([text], name));
        const at = document.querySelector(target);
        const make = kind === "paste"
            ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
            : new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
        at.dispatchEvent(make) }"""
    page.evaluate(script, [kind, target, list(files)])


def test_a_file_goes_with_its_message(page: Page, served: Served) -> None:
    chips = attach(page, given("notes.md"), given("book.pdf", pdf(["One page.", ""])))
    expect(chips).to_have_text(["notes.md2 lines", "book.pdf2 pages · 1 without text"])
    expect(page.locator("#draft")).to_have_attribute("placeholder", "Ask about the files")
    stream = say(page, served, "How often is it sewn?")
    expect(chips).to_have_count(0)
    said = stream.request.messages[-1].content
    assert said.startswith('<file name="notes.md">\nFolded once.\nSewn twice.\n</file>')
    assert said.endswith("\n\nHow often is it sewn?")
    stream.write("Twice.")
    stream.finish()
    expect(page.locator("#talk .said")).to_have_text("How often is it sewn?")
    lines = page.locator("#talk .given li")
    expect(lines).to_have_text(
        ["notes.md2 lines · read whole", "book.pdf2 pages · 1 without text · read whole"]
    )
    page.reload()
    expect(lines.first).to_have_text("notes.md2 lines · read whole")


def test_dropped_and_pasted_files(page: Page, served: Served) -> None:
    chips = page.locator("#desk-part .files li")
    drop(page, "dragover", "#talk", ("a.txt", "dropped"))
    expect(page.locator("#drop")).to_be_visible()
    drop(page, "drop", "#talk", ("a.txt", "dropped"))
    expect(page.locator("#drop")).to_be_hidden()
    expect(chips).to_have_text(["a.txt1 line"])
    drop(page, "paste", "#draft", ("b.py", "x = 1\ny = 2\n"))
    expect(chips).to_have_text(["a.txt1 line", "b.py2 lines"])
    page.get_by_role("button", name="Remove: a.txt").click()
    expect(chips).to_have_text(["b.py2 lines"])
    page.reload()
    usable(page)
    expect(chips).to_have_text(["b.py2 lines"])  # with the draft


def test_what_is_chosen_of_a_long_document_is_said(page: Page, served: Served) -> None:
    chips = attach(page, given("book.pdf", pdf(PAGES)))
    expect(chips).to_have_text([f"book.pdf40 pages · {len(pdf(PAGES)) / 1000:.1f} kB"])
    page.fill("#draft", "Which colours has the headband?")
    expect(chips).to_have_text(["book.pdfpage 17 of 40 fits best"])
    stream = say(page, served, "Which colours has the headband?")
    assert "[page 17]\nThe headband has two colours." in stream.request.messages[-1].content
    expect(page.locator("#talk .given li")).to_have_text(["book.pdfpage 17 of 40 fits best"])
    stream.finish()


def test_what_cannot_be_taken_is_said_and_nothing_is_lost(page: Page, served: Served) -> None:
    notice, chips = page.locator(".notice"), page.locator("#desk-part .files li")
    page.fill("#draft", "kept")
    attach(page, given("good.txt"))
    for name, data, sentence in (
        ("bomb.docx", bomb(300 * 2**20), "bomb.docx was not taken. It unpacks to 315 MB; at most 256 MB"),
        ("scan.pdf", pdf(["", ""]), "scan.pdf was not taken. It has 2 pages without text"),
        ("odd.txt", bytes(99), "odd.txt was not taken. It is neither text nor PDF nor Word"),
        ("<img src=x onerror='window.hit=1'>.txt", b"", "<img src=x onerror='window.hit=1'>.txt is empty."),
    ):
        attach(page, given(name, data))
        expect(notice).to_contain_text(sentence)
    attach(page, given("odd.txt", bytes(99)), given("void.txt", b""))
    expect(notice).to_contain_text("odd.txt was not taken. It is neither text nor PDF nor Word")
    expect(notice).to_contain_text("void.txt is empty.")
    attach(page, *(given(f"{n}.txt", b"%d" % n) for n in range(1000)))
    expect(notice).to_contain_text("These would be 1,001 files; a message takes at most 20. None was added.")
    huge = """Object.defineProperty(File.prototype, "size", { get: () => 2e9 })"""
    page.evaluate(huge)
    drop(page, "drop", "#talk", ("film.txt", "x"))
    expect(notice).to_contain_text("film.txt has 2 GB; at most 100 MB are taken.")
    expect(chips).to_have_text(["good.txt2 lines · read whole"])
    expect(page.locator("#draft")).to_have_value("kept")
    assert page.evaluate("window.hit") is None
    limits = page.evaluate("[octavo.limits.most, octavo.limits.largest]")
    assert limits == [MOST_FILES, FILE_LIMIT]


def test_the_cost_is_said_while_one_writes(page: Page, served: Served) -> None:
    cost = page.locator("#cost")
    expect(cost).to_be_hidden()
    page.type("#draft", "one two three")
    expect(cost).to_have_text("≈ 7 tokens · first word in about 0.4 s")
    expect(page.locator("#keys")).to_be_hidden()
    stream = say(page, served, "one two three")
    expect(cost).to_be_hidden()
    page.fill("#draft", "while it answers")
    stream.write("four")
    expect(answer(page)).to_have_text("four")
    expect(cost).to_be_hidden()
    stream.finish()
    expect(cost).to_have_text("≈ 19 tokens · 12 cached · first word in about 0.4 s")
    page.fill("#draft", "much " * 3000)
    expect(page.locator("#desk-part .fit.error")).to_be_visible()
    expect(cost).to_be_hidden()  # it can't be sent
    page.fill("#draft", "")
    expect(cost).to_be_hidden()
    expect(page.locator("#keys")).to_be_visible()


def long_chat(page: Page, served: Served) -> None:
    """Some 1,800 of 2,048 tokens, in six turns."""
    served.model.answer = lambda request: "so " * 150
    for turn in range(6):
        say(page, served, f"Question {turn}: " + "why " * 150)
        expect(page.locator("#talk .figures")).to_have_count(turn + 1)
    served.model.answer = lambda request: None


def test_a_full_chat_is_summed_up_on_request(page: Page, served: Served) -> None:
    long_chat(page, served)
    fit = page.locator(".fit")
    page.fill("#draft", "x")
    expect(fit).to_contain_text(
        "tokens are left for the answer. The older part of the chat can be summed up."
    )
    page.fill("#draft", "word " * 400)
    expect(fit).to_contain_text("With this message the chat has 2,2")
    expect(fit).to_contain_text("tokens; 2,048 fit. Nothing is cut in silence")
    page.press("#draft", "Enter")
    expect(page.locator("#draft")).to_have_value("word " * 400)  # it was not sent
    fit.get_by_role("button", name="Sum up").click()
    stream = served.model.next_stream()
    stream.write("They asked why.")
    expect(fit).to_contain_text("Summing up 8 older messages: 15 tokens so far")
    stream.finish()
    expect(fit).to_contain_text("8 older messages are summed up for the model. You still see them all.")
    expect(page.locator("#talk .message-row")).to_have_count(12)
    page.locator("#about-context").click()
    expect(page.locator("#context blockquote")).to_have_text("They asked why.")
    page.keyboard.press("Escape")
    stream = say(page, served, "And now?")
    assert [m.content for m in stream.request.messages][1] == "They asked why."
    stream.write("Now.")
    stream.finish()
    page.locator("#about-context").click()
    page.get_by_role("button", name="Give all messages again").click()
    expect(page.locator("#context")).to_have_count(0)
    stream = say(page, served, "Again?")
    assert stream.request.messages[0].content.startswith("Question 0")
    stream.finish()


def test_summing_up_is_stopped(page: Page, served: Served) -> None:
    long_chat(page, served)
    page.get_by_role("meter").click()
    expect(page.locator("#context")).to_contain_text("Next to be summed up: the oldest 8 messages")
    page.locator("#context").get_by_role("button", name="Sum up").click()
    stream = served.model.next_stream()
    fit = page.locator(".fit")
    fit.get_by_role("button", name="Stop").click()
    expect(fit).to_be_hidden()
    assert stream.cancelled.is_set()


def test_drafts_are_kept(profile: Profile, served: Served) -> None:
    first = profile.open()
    say(first, served, "One").finish()
    expect(first.locator("#send")).to_be_visible()
    first.fill("#draft", "half a thought")
    address = first.url
    first.close()  # as when the browser ends
    second = profile.open(url=address)
    expect(second.locator("#draft")).to_have_value("half a thought")
    chat = chat_of(second)
    served.services.chats.delete(chat)
    third = profile.open()
    third.wait_for_function("key => !(key in localStorage)", arg=f"octavo.draft.{chat}")


DENIED = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });"""
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };"


@pytest.mark.parametrize("fault", [DENIED, FULL])
def test_where_the_browser_keeps_nothing_it_is_said_once(
    profile: Profile, served: Served, fault: str
) -> None:
    profile.context.add_init_script(fault)
    page = profile.open()
    page.type("#draft", "half a thought")
    expect(page.locator("#toast")).to_contain_text("This browser keeps no drafts now")
    boxes = [page.locator(name).bounding_box() for name in ("#toast", ".composer")]
    assert boxes[0] and boxes[1] and boxes[0]["y"] + boxes[0]["height"] < boxes[1]["y"]
    page.locator("#toast").get_by_role("button", name="Dismiss").click()
    page.evaluate("octavo.remember({ chat: 'private-1' }, false)")
    expect(page.locator("#draft")).to_have_value("")
    page.evaluate("octavo.remember({ chat: '' }, false)")
    expect(page.locator("#draft")).to_have_value("half a thought")  # as long as the page is open
    page.type("#draft", " more")
    expect(page.locator("#toast")).to_be_empty()
    page.fill("#draft", "")
    say(page, served, "One").finish()
    expect(answer(page)).to_be_attached()


def test_without_scripts_it_is_said_what_to_do(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, java_script_enabled=False).context.new_page()
    page.goto(served.url)
    for said in ("Allow JavaScript for this address", "请允许此地址使用 JavaScript"):
        expect(page.get_by_text(said)).to_be_in_viewport(ratio=1)


def test_the_writing_place_has_its_height_whatever_page_was_first(page: Page, served: Served) -> None:
    height = page.locator("#draft").bounding_box()
    page.goto(page.url.split("?")[0] + "?leaf=settings")
    expect(page.locator("#set-port")).to_be_visible()
    page.keyboard.press("Control+Shift+O")
    expect(page.locator("#draft")).to_be_visible()
    assert page.locator("#draft").bounding_box() == height


def test_what_was_said_of_a_message_that_is_gone_goes_with_the_next_view(page: Page, served: Served) -> None:
    say(page, served, "One").finish()
    chat = chat_of(page)
    expect(page.locator("#stop")).to_be_hidden()
    error = page.evaluate(
        "chat => octavo.act('retry', { chat, message: 10 ** 6 }).then(() => octavo.state.notice)", chat
    )
    assert error == "This message is not on the page any more. Reload it."
    expect(page.locator("#desk-part .notice")).to_be_hidden()


def test_a_private_draft_is_in_the_pages_memory_alone(page: Page) -> None:
    page.evaluate("octavo.remember({ chat: 'private-1' }, false)")
    page.type("#draft", "secret")
    assert "secret" not in page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    expect(page.locator("#draft")).to_have_attribute("autocomplete", "off")  # nor in the browser's own files
    for chat, written in (("", ""), ("private-1", "secret")):
        page.evaluate("chat => octavo.remember({ chat }, false)", chat)
        expect(page.locator("#draft")).to_have_value(written)
    expect(page.locator("#toast")).to_be_empty()


def test_nothing_but_the_pages_own_files_may_stay_on_the_disk(profile: Profile, served: Served) -> None:
    said: dict[str, str] = {}

    def note(each: Response) -> None:
        said["/" + each.url.removeprefix(profile.url)] = each.headers.get("cache-control", "")

    profile.context.on("response", note)
    page = profile.open()
    page.evaluate("""octavo.act("new_private").then(({ chat }) => octavo.show(chat))""")
    expect(page.locator("#head-part .secret")).to_be_visible()
    attach(page, given("notes.md"))
    say(page, served, "a secret").finish()
    expect(page.locator("#talk .said")).to_have_text("a secret")
    page.evaluate("fetch('/v1/models').then(answer => answer.text())")
    static = {path for path in said if path.startswith(STATIC)}
    assert static and not [path for path in static if said[path] == "no-store"]
    others = {path for path in said.keys() - static if not path.startswith(("/data:", "/blob:"))}
    assert [path for path in others if said[path] != "no-store"] == []
    for route in ("/gradio_api/queue/data", "/gradio_api/component_server", "/files", "/v1/models"):
        assert any(path.startswith(route) for path in others), route


def test_all_shortcuts_stand_on_one_sheet(page: Page, served: Served) -> None:
    page.locator("#new-chat").focus()
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Shortcuts")
    expect(sheet).to_be_visible()
    rows = page.evaluate("new Set(octavo.shortcuts.map(({ word }) => word)).size")
    expect(sheet.locator("dt")).to_have_count(rows)
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)
    page.focus("#draft")
    page.keyboard.type("what?")
    expect(page.locator("#draft")).to_have_value("what?")
    page.keyboard.press("Control+/")
    expect(sheet).to_be_visible()
    sheet.get_by_role("button", name="Dismiss").click()
    expect(sheet).to_have_count(0)
    page.get_by_role("button", name="Shortcuts (?)").click()
    expect(sheet).to_be_visible()


def test_shortcuts_that_do_something(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, permissions=["clipboard-read", "clipboard-write"]).open()
    stream = say(page, served, "One")
    stream.write("The answer")
    stream.finish()
    expect(page.locator("#talk .figures")).to_contain_text("tokens/s")
    page.keyboard.press("Control+Shift+C")
    page.wait_for_function("async () => (await navigator.clipboard.readText()) === 'The answer'")
    with page.expect_file_chooser():
        page.keyboard.press("Control+u")
    expect(page.locator("#talk .user-row [data-tool=pen]")).to_be_attached()  # by now it may be edited
    page.focus("#draft")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#talk .user-row textarea")).to_be_focused()


SPEECH = """window.webkitSpeechRecognition = window.SpeechRecognition = class {
    start() { window.heard = this } stop() { this.onend() } }"""


def test_dictation(profile: Profile, served: Served) -> None:
    profile.context.add_init_script(SPEECH)
    page = profile.open()
    button = page.get_by_role("button", name="Dictate")
    assert "send your voice to their maker" in (button.get_attribute("title") or "")
    page.fill("#draft", "Say")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    say_it = "text => heard.onresult({ results: [[{ transcript: text }]] })"
    page.evaluate(say_it, "good mor")
    page.evaluate(say_it, "good morning")
    expect(page.locator("#draft")).to_have_value("Say good morning")
    assert page.evaluate("heard.lang") == "en"
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    page.evaluate("heard.onerror({ error: 'not-allowed' }); heard.onend()")
    expect(page.locator(".notice")).to_contain_text("The browser has no microphone")


def test_without_speech_there_is_no_button(profile: Profile) -> None:
    none = "for (const name of ['SpeechRecognition', 'webkitSpeechRecognition']) delete window[name]"
    profile.context.add_init_script(none)
    expect(profile.open().locator("#dictate")).to_be_hidden()


@pytest.mark.parametrize(
    ("width", "height", "locale"), [(390, 844, "en"), (390, 844, "zh-CN"), (640, 430, "en")]
)
def test_the_writing_place_fits_narrow_screens(
    served: Served, new_profile: NewProfile, width: int, height: int, locale: str
) -> None:
    """The last is a window of 1280 x 860 at 200%."""
    page = new_profile(served, viewport={"width": width, "height": height}, locale=locale).open()
    attach(
        page, given("A very long name of a file that says nothing at all.txt", b"x\n" * 50), given("b.txt")
    )
    page.fill("#draft", "word " * 60)
    expect(page.locator("#cost")).to_be_visible()
    wide = """width => [...document.querySelectorAll('#desk-part *, #head-part *')].filter(e =>
        e.checkVisibility() && e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML)"""
    assert page.evaluate(wide, width) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    stream = say(page, served, "word " * 60)
    stream.finish()
    line = page.locator("#talk .given li").first
    expect(line).to_be_visible()
    assert line.evaluate("e => e.getBoundingClientRect().left") >= 0
    page.evaluate("octavo.help()")
    sheet = page.locator("#help").bounding_box()
    assert sheet and sheet["x"] >= 0 and sheet["x"] + sheet["width"] <= width and sheet["height"] <= height


def test_hostile_asks(served: Served, tmp_path: Path) -> None:
    from ui.acts import perform
    from ui.chat_page import ACTS, ChatPage

    page = ChatPage(served.services, lambda: None)
    for asked in (
        {"do": "send", "chat": "", "text": "x", "files": [1], "compared": {}},
        {"do": "send", "chat": "", "text": "x", "files": ["../../etc/passwd"], "compared": {}},
        {
            "do": "send",
            "chat": "",
            "text": "x",
            "files": [],
            "compared": {"answers": 2, "models": ["a", "b"]},
        },
        {"do": "send", "chat": "", "text": "x", "files": [], "compared": {"answers": True}},
        {"do": "cost", "chat": "nowhere", "text": "x", "files": []},
        {"do": "cost", "chat": "", "text": "x", "files": [{}]},
        {"do": "compact", "chat": "nowhere"},
        {"do": "gone", "chats": [[]]},
    ):
        assert set(perform(ACTS, page, asked)) == {"error"}
    assert served.services.chats.list_chats() == []
