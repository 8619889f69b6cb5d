"""Every live route of an app, found at run time, asked with every wrong Host, Origin and secret there is.

`walk(app, routes, keys, port)` calls the ASGI app itself, so that no client or server mends a bad request
first. It gives what it asked and what got through. Nothing may: a foreign Host or page is answered 403, else
a missing or wrong secret 401, and no answer offers itself to another site.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from app.access.keys import Keys

Headers = tuple[tuple[str, str], ...]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "WEBSOCKET")
# paths that no route may have, but a lenient router may follow
ODD_PATHS = (
    *("/", "/no-such", "/v1", "/v1/", "/v1/no-such", "//v1/models", "/V1/models", "/v1/../config"),
    *(
        "/health/",
        "/healthx",
        "/enter/",
        "/enterx",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/file=/etc/passwd",
    ),
    *("/gradio_api/startup-events/", "/gradio_api/startup-eventsx", "/gradio_api/../config", "/%2e%2e/"),
)
OPEN = ("GET", "/gradio_api/startup-events")  # to this machine only
API_PATHS = ("/v1", "/health")


def bad_hosts(port: int) -> Iterator[Headers]:
    """A Host header, or none, or two, that is not ours."""
    ours = f"127.0.0.1:{port}"
    wrong = (
        *("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"x.localhost:{port}"),
        *("", "127.0.0.1", "localhost", f"127.0.0.1:{port + 1}", f"localhost.:{port}", f"0.0.0.0:{port}"),
        *(f"user@{ours}", f"{ours}@evil.example", f"{ours},evil.example", f"{ours}/", f"127.1:{port}"),
        *(f"[::]:{port}", f"[::ffff:127.0.0.1]:{port}", f"2130706433:{port}", f"127.0.0.1:0{port}"),
    )
    yield ()
    yield (("host", ours), ("host", "evil.example"))
    yield from ((("host", host),) for host in wrong)


def bad_pages(port: int) -> Iterator[Headers]:
    """What a browser says when another site's page asks."""
    wrong = (
        *("http://evil.example", "https://evil.example", "null", "", "file://", f"https://127.0.0.1:{port}"),
        *(f"http://localhost:{port + 1}", "http://localhost", f"http://127.0.0.1:{port}.evil.example"),
    )
    yield from ((("origin", origin),) for origin in wrong)
    yield (("origin", f"http://127.0.0.1:{port}"), ("origin", "http://evil.example"))
    yield from ((("sec-fetch-site", site),) for site in ("cross-site", "same-site", "", "CROSS-SITE"))


def bad_secrets(keys: Keys, port: int) -> Iterator[Headers]:
    """No secret, a wrong one, or a right one in the wrong place."""
    session = keys.session(port)
    yield ()
    cookies = ("", "x", session[:-1], session + "0", session.upper(), keys.session(port + 1), keys.api_key)
    yield from ((("cookie", f"octavo_{port}={value}"),) for value in cookies)
    yield (("cookie", f"octavo={session}"),)
    bearers = ("", "x", keys.api_key[:-1], keys.api_key + "x", session)
    yield from ((("authorization", f"Bearer {value}"),) for value in bearers)
    yield (("authorization", f"Basic {keys.api_key}"),)
    yield (("x-api-key", keys.api_key),)


@dataclass
class Walk:
    """What was asked, and what got through that should not."""

    paths: list[str] = field(default_factory=list)
    asked: int = 0
    now: str = ""  # what is being asked
    breaches: list[str] = field(default_factory=list)


def walk(app: ASGIApp, routes: Iterable[BaseRoute], keys: Keys, port: int, seconds: float = 60) -> Walk:
    """Ask everything of every route."""
    found = Walk(sorted({*paths(routes), *ODD_PATHS}))
    try:
        asyncio.run(asyncio.wait_for(_walk(app, keys, port, found), seconds))
    except TimeoutError:  # what the guard refuses takes microseconds, so this one got through
        found.breaches.append(f"{found.now}: no end in {seconds} s")
    return found


def paths(routes: Iterable[BaseRoute], prefix: str = "") -> Iterator[str]:
    """A path for each route, mounts and included routers too."""
    for route in routes:
        path = prefix + re.sub(r"\{[^}]*\}", "x", getattr(route, "path", ""))
        below: Sequence[BaseRoute] | None = getattr(route, "routes", None)
        if below is None:
            inner = getattr(route, "router", None) or getattr(route, "original_router", None)
            below = getattr(inner, "routes", None)
        if below:
            yield from paths(below, path)
        yield path or "/"
        if below is not None:
            yield path + "/x"


async def _walk(app: ASGIApp, keys: Keys, port: int, found: Walk) -> None:
    ours: Headers = (("host", f"127.0.0.1:{port}"),)
    right: tuple[Headers, ...] = (
        (("cookie", f"octavo_{port}={keys.session(port)}"),),
        (("authorization", f"Bearer {keys.api_key}"),),
    )
    for path in found.paths:
        secrets = [*bad_secrets(keys, port), *(() if path.startswith(API_PATHS) else right[1:])]
        for method in METHODS:
            is_open = (method, path) == OPEN
            for secret in () if is_open else secrets:
                await _ask(app, found, method, path, ours + secret, 401)
            for headers in [*bad_hosts(port), *(ours + page for page in bad_pages(port))]:
                for secret in ((), *right):
                    await _ask(app, found, method, path, headers + secret, 403)


async def _ask(app: ASGIApp, found: Walk, method: str, path: str, headers: Headers, wanted: int) -> None:
    found.asked, found.now = found.asked + 1, f"{method} {path} {headers}"
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    kind = "websocket" if method == "WEBSOCKET" else "http"
    scope: dict[str, Any] = {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "ws" if kind == "websocket" else "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": raw,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
        "state": {},
        **({"subprotocols": []} if kind == "websocket" else {"method": method}),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if kind == "websocket":
            return {"type": "websocket.connect"}
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    try:
        await app(scope, receive, send)
    except Exception as error:  # it got as far as to fail inside
        found.breaches.append(f"{found.now}: {error!r}")
        return
    first = sent[0] if sent else {"type": "nothing"}
    if kind == "websocket":
        if first["type"] != "websocket.close":
            found.breaches.append(f"{found.now}: {first}")
        return
    names = [name.lower() for name, _ in first.get("headers", ())]
    if first.get("status") != wanted or any(name.startswith(b"access-control-") for name in names):
        found.breaches.append(f"{found.now}: {first} instead of {wanted}")
