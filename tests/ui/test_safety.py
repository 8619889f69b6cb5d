"""Nothing that a model, a title or another site says runs, loads or enters."""

from __future__ import annotations

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from app import MOST_FILES
from app.chats.database import Database
from app.chats.message_rows import insert, message_row, turn_to
from app.chats.records import Attachment
from app.documents.attachments import insert_attached
from engine import FinishReason
from tests.app.route_walk import walk
from tests.ui.conftest import Profile, Served, say
from tests.ui.payloads import (
    ADDRESSES,
    CORNERS,
    ELEMENTS,
    FORMULAS,
    HANDLERS,
    MARKDOWN,
    PAYLOADS,
    STYLES,
    TEMPLATES,
)
from tests.ui.test_desk import drop

# attributes that run something, and addresses that do; none may be left in what was said
DANGEROUS = """() => [...document.querySelectorAll("#talk *, #rail-part *, #head-part *, #desk-part *")]
    .flatMap((node) => [...node.attributes].map(({ name, value }) => [node.tagName, name, value]))
    .filter(([tag, name, value]) => /^on/i.test(name) || name === "srcdoc"
        || /^[\\s\\x00-\\x20]*(javascript|vbscript|data:text)/i.test(value))"""
# what a browser says of what its policy stopped, of a picture of our own that is not there, and of a diagram
# in a row that is drawn anew while its library is being fetched: Gradio has it drawn into nodes that the page
# has no more, where the library finds null. The row's new nodes get a diagram of their own.
EXPECTED = ("Content Security Policy", "404", "Cannot read properties of null")


def assert_harmless(page: Page, profile: Profile) -> None:
    """A request to others fails the profile's check."""
    assert page.evaluate("window.hit") is None
    assert page.evaluate(DANGEROUS) == []
    assert {urlsplit(url).hostname for url in profile.blocked} <= {"evil.example"}
    forgive(profile)


def forgive(profile: Profile) -> None:
    """Leave out what a browser is expected to say of these payloads."""
    profile.errors = [error for error in profile.errors if not any(known in error for known in EXPECTED)]


def test_what_a_model_writes_runs_nothing(profile: Profile, served: Served) -> None:
    """In pieces of some characters, side by side with thoughts of the same, and read back."""
    page = profile.open()
    groups = (ELEMENTS + HANDLERS, ADDRESSES + CORNERS, MARKDOWN + FORMULAS + TEMPLATES + STYLES)
    for place, group in enumerate(groups, 1):
        text = "\n\n".join(group)
        stream = say(page, served, "Attack " + text)
        stream.write("<think>" + text.replace("</think>", "") + "</think>")
        expect(page.locator("#talk .thoughts")).to_have_count(place)
        page.locator("#talk .thoughts summary").last.click()
        expect(page.locator("#talk .thoughts .text").last).to_contain_text(group[0])
        for start in range(0, len(text), 7):
            stream.write(text[start : start + 7])
        stream.write("\n\nThe end.")
        stream.finish()
        expect(page.locator("#send")).to_be_visible()
        expect(page.locator("#talk .figures").last).to_contain_text("tokens/s")
    assert_harmless(page, profile)
    assert profile.blocked  # so some were tried
    page.reload()
    expect(page.locator("#talk .figures")).to_have_count(3)
    assert_harmless(page, profile)


def test_no_name_on_the_page_is_taken(page: Page, served: Served) -> None:
    """<form name=querySelector> in an answer would stand for what all scripts ask the document for."""
    stream = say(page, served, "Take names")
    names = ("querySelector", "getElementById", "body", "createElement", "defaultView", "octavo", "draft")
    for name in names:
        stream.write(f"<img name={name} id={name}>\n\n<form name={name} id={name}>")
        stream.write("<input name=querySelectorAll><input name=removeAttribute></form>\n\n")
    stream.write("<svg id=stop><g id=toggle-rail></g></svg>\n\n")
    stream.write("```mermaid\ngraph TD; A[One]-->B[Two]\n```\n\n[x](#draft)\n\n# Draft\n\nThe end.")
    stream.finish()
    expect(page.locator("#talk .figures")).to_contain_text("tokens/s")
    expect(page.locator("#talk .mermaid svg")).to_be_visible()  # a diagram keeps the ids it needs
    assert page.evaluate("document.querySelectorAll('#talk .prose [name]').length") == 0
    for ours in ("draft", "stop", "toggle-rail"):
        assert page.evaluate(f"document.querySelectorAll('#{ours}').length") == 1
    assert page.evaluate("typeof document.querySelector") == "function"
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()


def test_each_of_them_alone_as_message_answer_and_error(profile: Profile, served: Served) -> None:
    """One that is not closed may hide those after it, so each stands in a message of its own."""
    chats, chat = served.services.chats, ""
    for payload in PAYLOADS:
        chat = chats.send(chat, payload)
        stream = served.model.next_stream()
        stream.write(payload)
        stream.finish(FinishReason.ERROR, payload)
        while chats.busy(chat):
            chats.wait(chat, chats.version(chat), 1)
    page = profile.open(f"?chat={chat}")
    page.evaluate(f"for (let n = 0; n < {2 * len(PAYLOADS) // 40 + 1}; n += 1) octavo.showEarlier()")
    expect(page.locator("#talk .message-row")).to_have_count(2 * len(PAYLOADS))
    expect(page.locator("#talk .oops")).to_have_count(len(PAYLOADS))
    said = page.locator("#talk .said").evaluate_all("nodes => nodes.map((node) => node.textContent)")
    assert said == [payload.replace("\x00", "") for payload in PAYLOADS]  # HTML has no such character
    errors = page.locator("#talk .oops").evaluate_all("nodes => nodes.map((node) => node.textContent)")
    assert errors == PAYLOADS
    assert page.evaluate("document.getElementById('draft').tagName") == "TEXTAREA"  # no name was taken
    assert_harmless(page, profile)
    page.close()  # and with it the diagrams that are still being drawn
    forgive(profile)


def test_titles_models_and_file_names_are_text(profile: Profile, served: Served) -> None:
    """All of them in the list, below answers and beside questions, as they are kept."""
    store, chats = served.services.store, served.services.chats
    titles = [" ".join(payload.split())[:200] for payload in PAYLOADS]
    chat = chats.send("", "x")
    served.model.next_stream().finish()
    leaf = chats.view(chat).messages[-1].id
    common = {"model": "m", "system_prompt": "", "date": "", "updated": 1e9, "turn": 0, "leaf": leaf}

    def write(db: Database) -> None:
        rows = [{"id": f"n{number}", "title": title} for number, title in enumerate(titles)]
        db["chats"].insert_all({**row, **common} for row in rows)
        above = message_row(db, chat, leaf)
        for payload in PAYLOADS:
            above = insert(db, chat, above, "user", "x", finish="")
            insert_attached(db, Attachment(payload, payload, "0" * 64, 1, "line", 1, 0), chat, above.id)
            above = insert(db, chat, above, "assistant", "y", finish="stop", model=payload)
        turn_to(db, chat, above.id)

    store.file.transact(write)
    chats.note_change("")
    page = profile.open(f"?chat={chat}")
    page.evaluate("octavo.browse({ rows: 300 })")
    expect(page.locator(".chat .title")).to_have_count(len(titles) + 1)
    shown = page.locator(".chat .title").all_text_contents()
    assert set(shown) >= {title.replace("\x00", "") for title in titles}
    page.evaluate(f"for (let n = 0; n < {2 * len(PAYLOADS) // 40 + 1}; n += 1) octavo.showEarlier()")
    expect(page.locator("#talk .given li")).to_have_count(len(PAYLOADS))
    said = "".join(page.locator("#talk .given li").all_text_contents())
    below = "".join(page.locator("#talk .figures").all_text_contents())
    for payload in PAYLOADS:
        assert payload in said and payload in below
    assert_harmless(page, profile)
    store.file.transact(lambda db: db.execute("DELETE FROM chats WHERE id LIKE 'n%'"))


def test_notices_and_the_names_of_files_on_their_way_are_text(profile: Profile, served: Served) -> None:
    page = profile.open()
    page.evaluate(
        """async (payloads) => {
            for (const text of payloads) {
                const status = { ...octavo.state.status, model: text, message: text, state: "failed" };
                octavo.set({ status, notice: text });
                await new Promise(requestAnimationFrame);
            }
        }""",
        PAYLOADS,
    )
    expect(page.locator("#desk-part .notice").first).to_contain_text(PAYLOADS[-1])
    for start in range(0, len(PAYLOADS), MOST_FILES):
        names = PAYLOADS[start : start + MOST_FILES]
        drop(page, "drop", "#talk", *((name, "") for name in names))
        expect(page.locator(".notice").first).to_contain_text("is empty.")
        expect(page.locator(".files .spin")).to_have_count(0)
    assert_harmless(page, profile)


HOSTILE: list[object] = [
    *(None, 7, "x", [], {}, {"do": "new\0"}, {"do": ["send"]}, {"do": "send"}, {"do": "delete", "chat": 1}),
    {"do": "send", "chat": {}, "text": []},
    {"do": "text", "chat": "x", "message": None},
    {"do": "rename", "chat": "no such chat", "title": "x"},
    *({"do": each, "chat": "no such chat", "message": 1} for each in ("retry", "pick", "version", "branch")),
    *({"do": each, "chat": "no such chat", "message": 1} for each in ("remove", "resume", "text")),
    {"do": "edit", "chat": "no such chat", "message": 1, "role": "user", "text": "x"},
    {"do": "compare", "chat": "no such chat", "message": 1, "compared": {"answers": 10**9}},
    {"do": "compare", "chat": "no such chat", "message": True, "compared": {"answers": 2, "by_heat": 1}},
    {"do": "thoughts", "chat": "no such chat", "message": 1, "start": -9},
    {"do": "change_waiting", "chat": "no such chat", "waiting": 2**70, "text": "x"},
    {"do": "send_now", "chat": "no such chat", "waiting": 1},
    {"do": "cost", "chat": "\ud800", "text": "x", "files": []},
    {"do": "cost", "chat": "", "text": "x", "files": ["\ud800"]},
    {"do": "send_now", "chat": "\udfff", "waiting": 1},
    {"do": "version", "chat": "x", "message": -(2**63) - 1},
    {"do": "gone", "chats": ["\ud800"]},
    {"chat": "\ud800", "place": "\udfff", "rows": 2**70, "seen": []},
]


ODD: list[object] = [{"chat": [], "last": -7, "ask": "1"}, {"last": 1e9, "ask": 2**70}]


@pytest.mark.parametrize("asked", [*HOSTILE, *ODD])
def test_what_a_tab_asks_to_see_is_not_trusted(asked: object) -> None:
    from ui.chat_page import wanted
    from ui.talk import MOST_MESSAGES

    chat, last, ask = wanted(asked)
    assert isinstance(chat, str) and chat.isascii() and 1 <= last <= MOST_MESSAGES and ask == 0


@pytest.mark.parametrize("payload", HOSTILE)
def test_what_a_browser_sends_is_not_trusted(served: Served, payload: object) -> None:
    from ui.acts import perform
    from ui.chat_page import ACTS, ChatPage

    page = ChatPage(served.services, lambda: None)
    before = served.services.chats.list_chats()
    assert set(perform(ACTS, page, payload)) == {"error"}
    assert page.frame(payload)
    assert served.services.chats.list_chats() == before


def _status(url: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_page_needs_its_cookie(served: Served, browser: Browser) -> None:
    assert _status(served.url) == 401
    link = served.services.keys.link(served.services.guard.port)
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(link)
    expect(tab.locator("#draft")).to_be_enabled()
    assert tab.evaluate("document.cookie") == ""
    assert [cookie["sameSite"] for cookie in context.cookies()] == ["Strict"]
    context.close()
    again = browser.new_context()
    response = again.new_page().goto(link)
    assert response is not None and response.status == 401
    again.close()


FOREIGN = [
    {"Host": "evil.example"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD"])
def test_no_route_of_gradio_answers_another_site(
    served: Served, method: str, headers: dict[str, str]
) -> None:
    """Preflight requests too, which Gradio's own layer would answer."""
    cookie = f"{served.cookie['name']}={served.cookie['value']}"
    if method == "OPTIONS":
        headers = {**headers, "Access-Control-Request-Method": "POST"}
    request = urllib.request.Request(
        served.url + "gradio_api/queue/join", method=method, headers={**headers, "Cookie": cookie}
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    assert refused.value.code == 403
    assert "access-control-allow-origin" not in refused.value.headers


def test_the_page_shows_itself_to_no_frame_and_loads_from_nowhere_else(
    served: Served, profile: Profile
) -> None:
    page = profile.context.new_page()
    response = page.goto(served.url)
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy and "connect-src 'self'" in policy


def test_the_browser_asks_for_no_manifest(profile: Profile) -> None:
    """It would send no cookie, and the console would show a 401."""
    page = profile.open()
    found = profile.context.new_cdp_session(page).send("Page.getAppManifest")
    assert (found["url"], found["errors"]) == ("", [])


def test_a_walk_over_all_routes_of_the_real_page(served: Served) -> None:
    """Gradio's own, the API's and the page's, with every wrong Host, Origin and secret. None may answer."""
    keys, port = served.services.keys, served.services.guard.port
    with ThreadPoolExecutor(1) as pool:  # this thread's event loop is Playwright's
        found = pool.submit(walk, served.app, served.app.routes, keys, port, 240).result()
    assert {"/v1/chat/completions", "/gradio_api/queue/join", "/gradio_api/component_server"} <= set(
        found.paths
    )
    assert len(found.paths) > 60
    assert found.breaches == []
