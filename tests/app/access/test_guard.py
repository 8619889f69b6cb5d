"""Who may enter: every route refuses every wrong Host, page and secret; links, limits and headers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect

from app.access.guard import BODY_LIMIT, HEADER_LIMIT, Guard
from app.access.keys import Keys
from app.settings import Home
from tests.app.route_walk import paths, walk

PORT = 8642
OURS = f"http://127.0.0.1:{PORT}"
reached: list[str] = []


async def tell(request: Request) -> Response:
    reached.append(request.url.path)
    await request.body()
    return JSONResponse({"owner": request.state.owner})


async def talk(socket: WebSocket) -> None:
    reached.append(socket.url.path)
    await socket.accept()
    await socket.send_text("in")
    await socket.close()


def inner() -> Starlette:
    """An app that answers everybody who reaches it, and offers itself to every site."""
    routes = [
        Route("/", tell, methods=["GET", "POST"]),
        Route("/health", tell),
        Route("/gradio_api/startup-events", tell, methods=["GET", "POST"]),
        Route("/gradio_api/upload/{name}", tell, methods=["POST"]),
        Mount("/v1", routes=[Route("/models", tell, methods=["GET", "POST"])]),
        Mount("/files", app=Starlette(routes=[Route("/{name}", tell)])),
        WebSocketRoute("/live", talk),
    ]
    generous = Middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True, allow_methods=["*"])
    return Starlette(routes=routes, middleware=[generous])


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(Home(tmp_path))


@pytest.fixture
def entered() -> list[bool]:
    return []


@pytest.fixture
def guard(keys: Keys, entered: list[bool]) -> Guard:
    return Guard(keys, PORT, on_enter=lambda: entered.append(True))


@pytest.fixture
def client(guard: Guard) -> Iterator[TestClient]:
    with TestClient(guard.wrap(inner()), base_url=OURS, follow_redirects=False) as client:
        yield client


def cookie(keys: Keys) -> dict[str, str]:
    return {"cookie": f"octavo_{PORT}={keys.session(PORT)}"}


def bearer(keys: Keys) -> dict[str, str]:
    return {"authorization": f"Bearer {keys.api_key}"}


def test_a_walk_over_all_routes(guard: Guard, keys: Keys) -> None:
    app = inner()
    reached.clear()
    found = walk(guard.wrap(app), app.routes, keys, PORT)
    assert not found.breaches, found.breaches[:5]
    assert {"/gradio_api/upload/x", "/v1/models", "/files/x", "/live"} <= set(found.paths)
    assert not reached and found.asked > 20_000


def test_the_walk_finds_what_is_open(keys: Keys) -> None:
    """The walk itself: without a guard it finds breaches on every route."""
    app = inner()
    found = walk(app, [Route("/", tell)], keys, PORT)
    assert len(found.breaches) > found.asked / 2
    assert set(paths(app.routes)) >= {"/", "/health", "/v1/models", "/live"}


def test_the_person_and_the_key(client: TestClient, keys: Keys) -> None:
    for path in ("/", "/health", "/v1/models", "/files/x"):
        assert client.get(path, headers=cookie(keys)).json() == {"owner": "person"}
    for path in ("/health", "/v1/models"):
        assert client.get(path, headers=bearer(keys)).json() == {"owner": keys.api_owner}
    assert client.get("/", headers=bearer(keys)).status_code == 401
    both = {**cookie(keys), **bearer(keys)}
    assert client.get("/v1/models", headers=both).json() == {"owner": "person"}
    crowd = {"cookie": f'a="x; b={{"c":1}}; octavo_1=zzz; octavo_{PORT}={keys.session(PORT)}; d'}
    assert client.get("/", headers=crowd).status_code == 200  # other ports' cookies come along


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_our_own_page_may_ask(client: TestClient, keys: Keys, host: str) -> None:
    ours = {"host": f"{host}:{PORT}", "origin": f"http://{host.lower()}:{PORT}", **cookie(keys)}
    assert client.post("/", headers={**ours, "sec-fetch-site": "same-origin"}).status_code == 200
    assert client.get("/", headers={**ours, "sec-fetch-site": "none"}).status_code == 200


def test_gradio_s_launch_is_answered(client: TestClient) -> None:
    assert client.get("/gradio_api/startup-events").status_code == 200
    assert client.post("/gradio_api/startup-events").status_code == 401
    assert client.head("/").status_code == 401


def test_a_link_gives_the_cookie_once(
    client: TestClient, guard: Guard, keys: Keys, entered: list[bool]
) -> None:
    link = keys.link(PORT)
    assert client.head(link).status_code == 401 and client.post(link).status_code == 401  # it is not used up
    answer = client.get(link)
    assert (answer.status_code, answer.headers["location"]) == (303, "/") and entered == [True]
    (given,) = answer.headers.get_list("set-cookie")
    assert given.startswith(f"octavo_{PORT}={keys.session(PORT)}; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(given.split("; "))
    assert client.get("/").json() == {"owner": "person"}
    assert client.get(link).headers["location"] == "/"  # a tab that was restored
    client.cookies.clear()
    assert client.get(link).status_code == 401 and len(entered) == 1


def test_a_link_that_was_clicked_elsewhere(client: TestClient, keys: Keys) -> None:
    """A redirect would be followed without the strict cookie, so there is a page that goes on by itself."""
    answer = client.get(keys.link(PORT), headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200 and 'content="0;url=/"' in answer.text and answer.headers["set-cookie"]


@pytest.mark.parametrize("query", ["", "?t=", "?t=x.y.z", "?x=1", "?t=%ff%00", "?t=" + "a" * 5000])
def test_no_link(client: TestClient, query: str, entered: list[bool]) -> None:
    answer = client.get(f"/enter{query}")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers and not entered


def test_a_link_is_no_way_around_the_host(client: TestClient, keys: Keys) -> None:
    link = keys.link(PORT)
    assert client.get(link, headers={"host": "evil.example"}).status_code == 403
    assert client.get(link, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get(link).status_code == 303


def test_web_sockets(client: TestClient, keys: Keys) -> None:
    for headers in ({}, {**cookie(keys), "origin": "http://evil.example"}):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/live", headers=headers):
            pass
    ours = {**cookie(keys), "origin": OURS, "host": f"127.0.0.1:{PORT}"}
    with client.websocket_connect("/live", headers=ours) as socket:
        assert socket.receive_text() == "in"


def test_every_answer_has_the_headers(client: TestClient, keys: Keys) -> None:
    answers = [
        client.get("/"),
        client.get("/", headers=cookie(keys)),
        client.get("/none", headers=cookie(keys)),
    ]
    answers.append(client.get("/", headers={**cookie(keys), "origin": OURS}))
    for answer in answers:
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_body_that_is_too_large(client: TestClient, keys: Keys) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(9):
            yield bytes(2**20)

    fits, large = bytes(BODY_LIMIT), bytes(BODY_LIMIT + 1)
    assert client.post("/v1/models", headers=bearer(keys), content=fits).status_code == 200
    said = client.post("/v1/models", headers=bearer(keys), content=large)
    assert said.status_code == 413
    assert f"{BODY_LIMIT + 1} bytes; at most {BODY_LIMIT}" in said.json()["error"]["message"]
    assert client.post("/v1/models", headers=bearer(keys), content=pieces()).status_code == 413


def test_headers_that_are_too_large(client: TestClient, keys: Keys) -> None:
    headers = {**cookie(keys), "x-long": "a" * HEADER_LIMIT}
    assert client.get("/", headers=headers).status_code == 431


def test_refusals_speak_the_language_of_the_path(client: TestClient) -> None:
    assert client.get("/v1/models").json()["error"]["message"] == "A valid API key is needed."
    assert client.get("/").text.startswith("This page is private.")


def test_a_wrong_secret_takes_as_long_wherever_it_differs(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets meet only in hmac.compare_digest."""
    compared: list[Any] = []
    real = __import__("hmac").compare_digest
    monkeypatch.setattr(
        "app.access.guard.hmac.compare_digest", lambda a, b: compared.append((a, b)) or real(a, b)
    )
    guard = Guard(keys, PORT)
    client = TestClient(guard.wrap(inner()), base_url=OURS)
    client.get("/v1/models", headers={"authorization": "Bearer x", "cookie": f"octavo_{PORT}=y"})
    given = [a for a, _ in compared]
    assert b"x" in given and b"y" in given


def test_an_old_link_is_refused_in_words(client: TestClient, keys: Keys) -> None:
    old = keys.link(PORT, time.time_ns() - 61 * 10**9)
    answer: httpx.Response = client.get(old)
    assert answer.status_code == 401 and "works once and for 60 seconds" in answer.text
