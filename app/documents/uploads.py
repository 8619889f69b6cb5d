"""Files on their way from the page: POST /files?chat=ID&name=NAME, the file as the request's body.

A route of our own, behind the guard like all others: the file goes to the disk as it comes (into memory
alone for a private chat), is read at once, and is answered with what it is, or with {"error"}, a sentence.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ..api.api import api_routes
from ..chats.export import export_routes
from ..chats.importing import import_routes
from ..chats.records import Attachment
from ..errors import AppError
from .attachments import FILE_LIMIT, Attachments
from .reading import AT_ONCE

if TYPE_CHECKING:
    from ..services import Services

PATH = "/files"


def all_routes(services: Services) -> list[BaseRoute]:
    """All that is served beside the page itself: the API's routes and this one."""
    kept, seats = services.chats.attachments, asyncio.Semaphore(AT_ONCE)  # who waits needs no thread

    async def receive(request: Request) -> Response:
        try:
            return JSONResponse(described(await _receive(request, kept, seats)))
        except AppError as error:
            return JSONResponse({"error": str(error)})  # an answer like an act's: the page says it
        except ClientDisconnect:  # taken back on the way
            return Response(status_code=400)

    mine = Route(PATH, receive, methods=["POST"])
    return [*api_routes(services), mine, *export_routes(services), *import_routes(services)]


def described(file: Attachment) -> dict[str, object]:
    """A file as the page shows it."""
    return {
        "id": file.id,
        "name": file.name,
        "size": file.size,
        "unit": file.unit,
        "count": file.count,
        "blank": file.blank,
        "chosen": file.given is not None,
        "parts": file.parts,
    }


async def _receive(request: Request, kept: Attachments, seats: asyncio.Semaphore) -> Attachment:
    chat, name = request.query_params.get("chat", ""), request.query_params.get("name", "")
    digest, size = hashlib.sha256(), 0
    with kept.receiving(chat) as file:
        async for piece in request.stream():
            digest.update(piece)
            size += len(piece)
            if size > FILE_LIMIT:
                raise AppError(f"{name} is larger than {FILE_LIMIT / 1e6:.0f} MB, the most that is taken.")
            await run_in_threadpool(file.write, piece)
        async with seats:
            return await run_in_threadpool(kept.take, chat, name, file, digest.hexdigest())
