"""Who may enter: one guard in front of every route, the page's, Gradio's own and the API's.

In this order: a Host that is not this machine at our port, or a request that another site's page caused, is
answered 403; a request without the secret 401 (the session cookie opens all, the API key only the API); too
large a request 413 or 431. `/enter?t=TOKEN`, the one-time link, trades its token for the cookie. Pure ASGI,
HTTP and WebSocket; it must be the outermost layer, outside of anything that answers by itself. No secret is
ever logged.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.api_types import error_body
from ..documents.attachments import FILE_LIMIT
from .keys import Keys, Links

PERSON = "person"
BODY_LIMIT, HEADER_LIMIT = 8 * 2**20, 32 * 2**10
LARGE = {"/files": FILE_LIMIT + 2**20, "/import": 2**31}  # routes that take larger bodies
COOKIE_LIFE_S = 400 * 86400  # the longest that browsers keep one
API = ("/v1", "/health")  # what the API key opens
STATIC = ("/assets/", "/static/", "/theme.css", "/favicon.ico")  # what a browser may keep on its disk
LAUNCH_PROBE = "/gradio_api/startup-events"  # Gradio's launch() asks it, without a cookie
SAME_SITE = ("none", "same-origin")  # "none": typed, or opened by another program
HEADERS = {
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; object-src 'none'; "
        "frame-ancestors 'none'; base-uri 'self'; form-action 'self'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Locked = Callable[[Headers], Response]
LOCKED = "This page is private. Start Octavo again to open it: a link works once and for 60 seconds."


class Guard:
    """The rules for one port. `on_enter` is called after a one-time link was used."""

    def __init__(self, keys: Keys, port: int, on_enter: Callable[[], None] = lambda: None) -> None:
        self.keys, self.port, self.on_enter = keys, port, on_enter
        self.links = Links(keys, port)
        self.cookie = f"octavo_{port}"
        names = ("127.0.0.1", "localhost", "[::1]")
        self.hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
        self.origins = {f"http://{host}" for host in self.hosts}

    def wrap(self, app: ASGIApp, locked: Locked | None = None) -> ASGIApp:
        """`app` behind this guard. `locked` is what whoever comes without the secret is shown, status 401."""
        return GuardMiddleware(app, self, locked or (lambda headers: PlainTextResponse(LOCKED, 401)))

    def foreign(self, headers: Headers, path: str) -> str:
        """Why a request was not made by this machine's user on our own page; "" if it may have been."""
        host, origin = headers.getlist("host"), headers.getlist("origin")
        if len(host) != 1 or host[0].lower() not in self.hosts:
            return f"Octavo answers only at 127.0.0.1:{self.port}."
        if any(each not in self.origins for each in origin):
            return "Another site's page asked for this."
        # the link may be clicked anywhere: its token is the proof
        if path != "/enter" and any(site not in SAME_SITE for site in headers.getlist("sec-fetch-site")):
            return "Another site's page asked for this."
        return ""

    def owner(self, headers: Headers, path: str) -> str:
        """Who asks: the person at the page, an API key's owner, or "" for nobody."""
        sessions = [cookie_parser(header).get(self.cookie, "") for header in headers.getlist("cookie")]
        if any(_same(session, self.keys.session(self.port)) for session in sessions):
            return PERSON
        kind, _, key = headers.get("authorization", "").partition(" ")
        is_api = any(path == prefix or path.startswith(prefix + "/") for prefix in API)
        if is_api and kind.lower() == "bearer" and _same(key.strip(), self.keys.api_key):
            return self.keys.api_owner
        return ""

    def enter(self, query: bytes, headers: Headers) -> Response | None:
        """Trade a one-time token for the cookie and go on to the page; None if it is not good (any more)."""
        token = parse_qs(query.decode("latin-1")).get("t", [""])[0]
        if self.owner(headers, "/") == PERSON:
            return _to_page(headers)  # a tab that was restored; its old link does no harm
        if not self.links.redeem(token):
            return None
        self.on_enter()
        response = _to_page(headers)
        value = self.keys.session(self.port)
        response.set_cookie(self.cookie, value, max_age=COOKIE_LIFE_S, httponly=True, samesite="strict")
        return response


def _same(given: str, true: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), true.encode())


def _to_page(headers: Headers) -> Response:
    if headers.get("sec-fetch-site", "none") in SAME_SITE:
        return RedirectResponse("/", 303)
    # a redirect would be sent without our strict cookie, as the other site's; what our own page asks is not
    return HTMLResponse('<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Octavo</title>')


class GuardMiddleware:
    """The guard as a layer around an ASGI app; it tells the app who asks in scope["state"]["owner"]."""

    def __init__(self, app: ASGIApp, guard: Guard, locked: Locked) -> None:
        self.app, self.guard, self.locked = app, guard, locked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        answer = self._answer(scope)
        if scope["type"] == "websocket":
            if answer is not None:
                return await send({"type": "websocket.close", "code": 1008})
            return await self.app(scope, receive, send)
        shown = _Shown(send, scope["path"])
        if answer is None:
            try:
                return await self.app(scope, _Metered(receive, _limit(scope["path"])), shown)
            except HTTPException as error:
                if shown.started or error.status_code != 413:
                    raise
                answer = _refusal(scope["path"], 413, error.detail)
        await answer(scope, receive, shown)

    def _answer(self, scope: Scope) -> Response | None:
        """The guard's own answer to a request; None lets it pass."""
        headers, path, method = Headers(scope=scope), scope["path"], scope.get("method", "GET")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_LIMIT:
            return _refusal(path, 431, f"The request's headers are larger than {HEADER_LIMIT} bytes.")
        if reason := self.guard.foreign(headers, path):
            return _refusal(path, 403, reason)
        if method == "GET" and path == "/enter" and scope["type"] == "http":
            return self.guard.enter(scope["query_string"], headers) or self.locked(headers)
        owner = self.guard.owner(headers, path)
        if not owner and (method, path) != ("GET", LAUNCH_PROBE):
            is_api = path.startswith(API)
            return _refusal(path, 401, "A valid API key is needed.") if is_api else self.locked(headers)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > _limit(path):
            return _refusal(path, 413, _too_large(length, _limit(path)))
        scope.setdefault("state", {})["owner"] = owner
        return None


def _limit(path: str) -> int:
    return LARGE.get(path, BODY_LIMIT)


def _too_large(size: object, limit: int) -> str:
    return f"The request's body is {size} bytes; at most {limit} are taken."


def _refusal(path: str, status: int, message: str) -> Response:
    if path.startswith(API):
        return JSONResponse(error_body(message, "invalid_request_error"), status)
    return PlainTextResponse(message, status)


class _Metered:
    """`receive` that ends the request when its body grows over the limit, whatever length it announced."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self.receive, self.limit, self.size = receive, limit, 0

    async def __call__(self) -> Message:
        message = await self.receive()
        self.size += len(message.get("body", b""))
        if self.size > self.limit:
            raise HTTPException(413, _too_large(f"over {self.limit}", self.limit))
        return message


class _Shown:
    """`send` that puts the security headers on every answer and lets no other site and no disk have it."""

    def __init__(self, send: Send, path: str) -> None:
        self.send, self.path, self.started = send, path, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(raw=list(message.get("headers", [])))
            for name in [name for name in headers if name.startswith("access-control-")]:
                del headers[name]  # Gradio offers its answers to any page of this machine
            headers.update(HEADERS)
            if not self.path.startswith(STATIC):  # private chats, for instance, are in memory alone
                headers["cache-control"] = "no-store"
            message["headers"] = headers.raw
        await self.send(message)
