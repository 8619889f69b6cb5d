"""The API in OpenAI's form: GET /v1/models, POST /v1/chat/completions and /v1/completions, whole or as
streams; and GET /health.

Who may ask was decided by the guard, which leaves the owner in scope["state"]; chats on the page and each
API key share prefixes only among themselves. Any model of this machine may be asked; one not in memory is
loaded when the answers that run have ended. A client that goes away cancels its answer. Every request ends:
with an answer, or an error that says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from engine import (
    BadRequest,
    EngineError,
    EngineStopped,
    Priority,
    PromptTooLong,
    TemplateError,
)

from ..errors import AppError
from ..faults import explain
from ..memory.runtime import Runtime
from ..models.model_usage import settings_for
from ..services import ApiServices
from ..settings import Settings
from .api_stream import Call, Completion, Events, raise_if_failed
from .api_types import ChatCompletionRequest, CompletionRequest, error_body, first_complaint
from .forms import ChatForm, Form, TextForm

T = TypeVar("T")
MAX_REQUESTS = 256  # that run or wait at one time
NAMED = 5  # models, where one is asked for that is not there
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
Handler = Callable[[Request], Awaitable[Response]]


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.response = JSONResponse(error_body(message, kind, param, code), status)


# the first that fits: what the engine or the app said -> (status, code)
STATUSES: tuple[tuple[type[Exception], int, str | None], ...] = (
    (PromptTooLong, 400, "context_length_exceeded"),
    (BadRequest, 400, None),
    (TemplateError, 400, "template_error"),
    (EngineStopped, 503, "engine_stopped"),
    (EngineError, 500, "engine_error"),
    (AppError, 503, "model_not_ready"),
)


def _as_api_error(error: Exception) -> ApiError:
    for kind, status, code in STATUSES:
        if isinstance(error, kind):
            return ApiError(status, str(error), code=code)
    return ApiError(500, explain("The request failed", error), code="internal_error")


def api_routes(services: ApiServices) -> list[BaseRoute]:
    """The API's routes; anything else below /v1 is answered 404 in the same form."""
    api = _Api(services.runtime, services.settings)
    health = Route("/health", _answered(api.health), methods=["GET"])  # a second start asks it
    if not services.settings.api:
        return [health, Route("/v1/{path:path}", _answered(api.off), methods=METHODS)]
    return [
        health,
        Route("/v1/models", _answered(api.models), methods=["GET"]),
        Route("/v1/models/{id}", _answered(api.model), methods=["GET"]),
        Route("/v1/chat/completions", _answered(api.chat), methods=["POST"]),
        Route("/v1/completions", _answered(api.complete), methods=["POST"]),
        Route("/v1/{path:path}", _answered(api.nothing), methods=METHODS),
    ]


def _answered(handler: Handler) -> Handler:
    """`handler` whose errors become answers."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except ApiError as error:
            return error.response
        except HTTPException as error:  # the guard's, while the body is read
            return ApiError(error.status_code, error.detail).response
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            return _as_api_error(error).response

    return answer


class _Api:
    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        self.runtime, self.settings = runtime, settings
        self.started = int(time.time())
        self.calls: set[Call] = set()  # that run or wait

    async def health(self, request: Request) -> Response:
        load, fault, stats = self.runtime.status(), self.runtime.fault(), self.runtime.stats()
        status = ("loading" if load.state == "loading" else "error") if fault else "ok"
        body: dict[str, Any] = {"status": status, "model": load.model}
        if fault:
            body["reason"] = fault
        if stats:
            body |= {"running": stats.running, "waiting": stats.waiting, "blocks": stats.total_blocks}
            body |= {"used_blocks": stats.used_blocks, "cached_blocks": stats.cached_blocks}
        return JSONResponse(body, 503 if fault else 200)

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._facts(id) for id in self.runtime.ids()]})

    async def model(self, request: Request) -> Response:
        return JSONResponse(self._facts(self._here(request.path_params["id"])))

    async def off(self, request: Request) -> Response:
        raise ApiError(404, "The API is switched off in Octavo's settings.", code="api_off")

    async def nothing(self, request: Request) -> Response:
        raise ApiError(404, f"There is no {request.method} {request.url.path} here.", code="not_found")

    def _facts(self, id: str) -> dict[str, Any]:
        """Of a model; how long its conversations may be is known of one in memory."""
        status = self.runtime.status()
        loaded = id == status.model and status.state == "ready"
        facts = {"id": id, "object": "model", "created": self.started, "owned_by": "octavo"}
        length = self.runtime.context_length if loaded else None
        return {**facts, "name": self.runtime.name(id), "loaded": loaded, "context_length": length}

    def _here(self, wanted: str) -> str:
        """A model's id, however it is written, if it is on this machine."""
        id, here = self.runtime.id_of(wanted), self.runtime.ids()
        if not wanted or id not in here:
            names = ", ".join(f"'{each}'" for each in here[:NAMED])
            more = f" and {len(here) - NAMED} more" if len(here) > NAMED else ""
            sentence = f"There is no model '{wanted:.100}' here; there is {names}{more}."
            raise ApiError(404, sentence, "model", "model_not_found")
        return id

    async def chat(self, request: Request) -> Response:
        return await self._answer(request, ChatCompletionRequest, ChatForm())

    async def complete(self, request: Request) -> Response:
        return await self._answer(request, CompletionRequest, TextForm())

    async def _answer(
        self, request: Request, kind: type[ChatCompletionRequest] | type[CompletionRequest], form: Form
    ) -> Response:
        try:
            wanted = kind.model_validate_json(await request.body())
        except ValidationError as error:
            param, message = first_complaint(error)
            raise ApiError(400, message, param or None) from error
        answers = self._here(wanted.model)
        question = replace(
            wanted.question(),
            sampling=wanted.sampling(settings_for(answers, self.settings).sampling),
            model=answers,
            shorten=wanted.limit is None,
            owner=request.state.owner,
            priority=Priority.API,
        )
        if len(self.calls) >= MAX_REQUESTS:
            raise ApiError(429, f"{len(self.calls)} requests run or wait; at most {MAX_REQUESTS} may.")
        call = Call(self.runtime, question, self.calls)
        completion = Completion(answers, call, form)
        handed_on = False
        try:
            first = await _unless_gone(request, call.next())
            raise_if_failed(first)
            if not wanted.stream:
                return JSONResponse(await _unless_gone(request, completion.whole(first)))
            handed_on = True
            return Events(call, completion.chunks(first, wanted.with_usage))
        finally:
            if not handed_on:
                call.leave()


async def _unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. If the client goes away before that, `work` is cancelled: ClientDisconnect."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientDisconnect
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
