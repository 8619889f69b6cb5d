"""One call of the API while it is answered.

The engine's stream is brought from its thread to the server's loop, and sent in one of two shapes: whole, or
as server-sent events.

Whoever makes a Call must `leave` it; that cancels what is left of the answer.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from engine import Backend, Delta, EngineError, Finish, FinishReason, Request, Stream

from ..faults import explain
from .api_types import error_body, usage
from .forms import Form, choice


class Call:
    """A request on its way through the engine. `calls` holds those that nobody has left."""

    def __init__(self, backend: Backend, request: Request, calls: set[Call]) -> None:
        self._backend, self._request, self._calls = backend, request, calls
        self._loop = asyncio.get_running_loop()
        self._parts: asyncio.Queue[Delta | Finish | Exception] = asyncio.Queue()
        self._stream: Stream | None = None
        self._left = threading.Event()
        calls.add(self)
        threading.Thread(target=self._run, name="octavo-api", daemon=True).start()

    async def next(self) -> Delta | Finish:
        """The next part. Raises what the engine raised."""
        part = await self._parts.get()
        if isinstance(part, Exception):
            raise part
        return part

    def leave(self) -> None:
        """Nobody waits for this answer any more."""
        self._left.set()
        self._calls.discard(self)
        if self._stream is not None:
            self._stream.cancel()

    def _run(self) -> None:
        # submit too runs here: rendering the template and tokenizing take their time
        try:
            self._stream = self._backend.submit(self._request)
            if self._left.is_set():
                self._stream.cancel()
            for part in self._stream:
                self._put(part)
        except Exception as error:
            self._put(error)

    def _put(self, part: Delta | Finish | Exception) -> None:
        try:
            self._loop.call_soon_threadsafe(self._parts.put_nowait, part)
        except RuntimeError:  # the server has ended
            self.leave()


class Completion:
    """What the client gets of a call."""

    def __init__(self, model: str, call: Call, form: Form) -> None:
        self._call, self._form = call, form
        self._facts = {
            "id": f"{form.id}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
        }

    async def whole(self, part: Delta | Finish) -> dict[str, Any]:
        """One object, once the answer has ended; `part` is its first part."""
        texts: list[str] = []
        while isinstance(part, Delta):
            texts.append(part.text)
            part = await self._call.next()
        raise_if_failed(part)
        choices = [choice(self._form.whole("".join(texts)), str(part.reason))]
        return {
            "object": self._form.whole_object,
            **self._facts,
            "choices": choices,
            "usage": usage(part.usage),
        }

    async def chunks(self, part: Delta | Finish, with_usage: bool) -> AsyncIterator[str]:
        """Server-sent events; `part` is the answer's first part."""
        form, nothing = self._form, {"usage": None} if with_usage else {}
        for each in form.begin():
            yield self._chunk(each, None, nothing)
        try:
            while isinstance(part, Delta):
                for each in form.push(part.text):
                    yield self._chunk(each, None, nothing)
                part = await self._call.next()
            for each in form.rest():
                yield self._chunk(each, None, nothing)
            raise_if_failed(part)
            yield self._chunk(form.end(), str(part.reason), nothing)
            if with_usage:
                yield _event({**self._object, "choices": [], "usage": usage(part.usage)})
        except EngineError as error:  # too late for another status
            yield _event(error_body(str(error), "server_error", code="engine_error"))
        except Exception as error:
            sentence = explain("The answer failed", error)
            yield _event(error_body(sentence, "server_error", code="internal_error"))
        yield "data: [DONE]\n\n"

    @property
    def _object(self) -> dict[str, Any]:
        return {"object": self._form.part_object, **self._facts}

    def _chunk(self, own: dict[str, Any], finish_reason: str | None, more: dict[str, None]) -> str:
        return _event({**self._object, "choices": [choice(own, finish_reason)], **more})


class Events(StreamingResponse):
    """A stream of events that leaves its call when it ends, however it ends."""

    def __init__(self, call: Call, chunks: AsyncIterator[str]) -> None:
        super().__init__(chunks, media_type="text/event-stream")
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.leave()


def raise_if_failed(part: Delta | Finish) -> None:
    """Raises EngineError if this is the end of an answer that failed or was cancelled."""
    if isinstance(part, Finish) and part.reason is FinishReason.CANCELLED:
        raise EngineError("The answer was cancelled: Octavo is ending.")
    if isinstance(part, Finish) and part.reason is FinishReason.ERROR:
        raise EngineError(part.error)


def _event(body: dict[str, Any]) -> str:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n"
