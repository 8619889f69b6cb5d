"""Chats out of a file, large as it may be: POST /import, the file as the request's body.

The file goes to the disk as it comes and is read piece by piece, one conversation in memory at a time. Chats
come in hidden, some at once, so that others can work meanwhile, and are shown by one last transaction: all of
them or none. A conversation that came in before is not taken twice. GET says how far it is, DELETE ends it.
What its forms are is import_forms.py's.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from engine import in_words

from ..documents.attachments import Attachments
from ..documents.reading import Document
from ..errors import AppError
from ..models.disk import free_bytes
from ..settings import Home
from .import_files import GivenDocument, NotImported
from .import_forms import Conversation
from .import_rows import Coming, insert_some, text_key
from .import_values import conversations
from .message_rows import AT_ONCE, ROW
from .records import Attachment
from .search import set_pace
from .store import ChatStore

if TYPE_CHECKING:
    from ..services import Services

PATH = "/import"
LONGEST = 4_000_000  # characters of a message, which is written at once: others wait for a second
STOPPED = "The import was stopped. Nothing was imported."
SHOW = "UPDATE chats SET deleted = 0 WHERE deleted = 2"


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file. `known` were here already, `empty` had no message."""

    chats: int
    messages: int
    known: int
    empty: int


class Importer:
    """Takes one file at a time. Any thread may call. `share`: how much of it was read, from 0 to 1; or, where
    it `is_undone`, how much of what had come in is removed again.
    """

    def __init__(self, store: ChatStore, files: Attachments, home: Home) -> None:
        self._store, self._files, self._folder = store, files, home / "cache"
        self._busy, self._is_stopped, self.share, self.is_undone = threading.Lock(), False, 0.0, False
        for old in self._folder.glob("import-*"):  # of a program that was killed
            old.unlink(missing_ok=True)

    def take(self, path: Path) -> Imported:
        """Bring in what a file holds. Raises AppError, and nothing is there."""
        if not self._busy.acquire(blocking=False):
            raise NotImported("Another file is being imported. Wait until it is done.")
        self._is_stopped, self.share, self.is_undone = False, 0.0, False
        try:
            try:
                self._store.forget_hidden()  # of a program that was killed, or of a full disk
                self._store.file.transact(lambda db: set_pace(db, is_much=True))
                counts = self._bring_in(path)
                self._tell(1.0)
                self._store.file.transact(lambda db: db.execute(SHOW))
            except BaseException:
                self.is_undone = True
                self._store.forget_hidden(self._note)
                raise
            finally:
                self._store.file.transact(lambda db: set_pace(db, is_much=False))
                self._files.sweep()
            return counts
        finally:
            self._busy.release()

    def stop(self) -> None:
        """End what is under way; nothing of it stays."""
        self._is_stopped = True

    def place(self) -> Path:
        """A new file for one that comes."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made, name = tempfile.mkstemp(prefix="import-", dir=self._folder)
        os.close(made)
        return Path(name)

    def _bring_in(self, path: Path) -> Imported:
        intake = _Intake(self._store, self._files, lambda: self._tell(self.share))
        try:
            with closing(conversations(path, self._tell)) as found:
                for each in found:
                    intake.take(each)
            intake.write()
        finally:
            self._files.let_go(intake.texts.values())
        return Imported(**intake.counts)

    def _note(self, share: float) -> None:
        self.share = share

    def _tell(self, share: float) -> None:
        self._note(share)
        if self._is_stopped:
            raise NotImported(STOPPED)


class _Intake:
    """What was read of a file and waits to be written, some at once. `tell` is called before each transaction
    and may raise, to stop.
    """

    def __init__(self, store: ChatStore, files: Attachments, tell: Callable[[], None]) -> None:
        self._store, self._files, self._tell = store, files, tell
        self.counts = {"chats": 0, "messages": 0, "known": 0, "empty": 0}
        self.texts: dict[str, Attachment] = {}  # of the documents that came in, as drafts
        self._waiting: list[Conversation] = []
        self._size = 0  # of what waits

    def take(self, found: Conversation | GivenDocument | None) -> None:
        """One of a file's conversations or documents; None: one without messages."""
        if found is None:
            self.counts["empty"] += 1
        elif isinstance(found, GivenDocument):
            self._keep(found.id, found.text)
        else:
            self._waiting.append(found)
            self._size += _size(found)
        if self._size >= AT_ONCE:
            self.write()

    def write(self) -> None:
        """Put all that waits into the store."""
        for each in self._waiting:
            for file in chain(*(said.files for said in each.said)):
                if file.document:
                    self._keep(text_key(file), file.document)
        rest = [Coming(each) for each in self._waiting]
        self._waiting.clear()
        self._size = 0
        while rest:
            self._tell()
            rest = self._write_some(rest)

    def _write_some(self, coming: list[Coming]) -> list[Coming]:
        """A transaction; what is left."""
        rest, done = self._store.file.transact(lambda db: insert_some(db, coming, self.texts, AT_ONCE))
        for name, number in done.items():
            self.counts[name] += number
        return rest

    def _keep(self, id: str, document: Document) -> None:
        if id not in self.texts:
            self.texts[id] = self._files.keep_text(document)


def _size(conversation: Conversation) -> int:
    """How long it takes to write one, in characters. Raises NotImported."""
    longest = max(len(said.text) for said in conversation.said)
    if longest > LONGEST:
        raise NotImported(
            f"A message in this file has {longest:,} characters; at most {LONGEST:,} are taken. "
            "Nothing was imported."
        )
    return sum(len(said.text) + ROW for said in conversation.said)


def import_routes(services: Services) -> list[BaseRoute]:
    """The route that takes files of chats."""
    importer = Importer(services.store, services.chats.attachments, services.settings.home)

    async def receive(request: Request) -> Response:
        path = None
        try:
            path = await run_in_threadpool(importer.place)
            with path.open("wb") as file:
                async for piece in request.stream():
                    await run_in_threadpool(file.write, piece)
            counts = await run_in_threadpool(importer.take, path)
        except AppError as error:
            return JSONResponse({"error": str(error)}, 422)
        except OSError as error:
            free = in_words(free_bytes(services.settings.home.path))
            return JSONResponse(
                {"error": f"The file could not be kept: {error.strerror} ({free} free)."}, 422
            )
        except ClientDisconnect:  # taken back on the way
            return Response(status_code=400)
        finally:
            if path:
                path.unlink(missing_ok=True)
        services.chats.note_change("")
        return JSONResponse(asdict(counts))

    def follow(request: Request) -> Response:
        if request.method == "DELETE":
            importer.stop()
        return JSONResponse({"share": importer.share, "undone": importer.is_undone})

    return [
        Route(PATH, receive, methods=["POST"]),
        Route(PATH, follow, methods=["GET", "DELETE"]),
    ]
