"""Puts our own lines right after <head> of every page, before Gradio's scripts run: so the theme and the
words are there at the first paint.

Pure ASGI. Only the start of a text/html answer is held back, until <head> has been seen; everything else,
streams above all, passes as it comes. An answer that was compressed further inside passes unchanged.
"""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TAG = b"<head>"
SEARCHED = 64 * 1024  # bytes; a page that has no <head> by then has none


class PageHead:
    """An ASGI middleware that adds `head` to pages."""

    def __init__(self, app: ASGIApp, head: str) -> None:
        self.app, self.head = app, head.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        await self.app(scope, receive, _Page(send, self.head))


class _Page:
    """`send` for one answer."""

    def __init__(self, send: Send, head: bytes) -> None:
        self._send, self._head = send, head
        self._start: Message | None = None  # held back while <head> has not been seen
        self._body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_plain_html(message):
            self._start = message
        elif self._start is not None and message["type"] == "http.response.body":
            await self._search(self._start, message)
        else:
            await self._send(message)

    async def _search(self, start: Message, message: Message) -> None:
        self._body += message.get("body", b"")
        found, more = TAG in self._body, message.get("more_body", False)
        if not found and more and len(self._body) < SEARCHED:
            return
        added = self._head if found else b""
        headers = MutableHeaders(raw=list(start["headers"]))
        if added and "content-length" in headers:
            headers["content-length"] = str(int(headers["content-length"]) + len(added))
        body = self._body.replace(TAG, TAG + added, 1)
        self._start = None
        await self._send({**start, "headers": headers.raw})
        await self._send({**message, "body": body, "more_body": more})


def _is_plain_html(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    return headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers
