"""Chats out of a file, large as it may be: POST /import, the file as the request's body.

The file goes to the disk as it comes and is read piece by piece, one conversation in memory at a time. Chats
come in hidden, some at once, so that others can work meanwhile, and are shown by one last transaction: all of
them or none. A conversation that came in before is not taken twice. What its forms are is import_forms.py's.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import ijson
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from engine import in_words

from ..errors import AppError
from ..models.disk import free_bytes
from ..settings import Home
from .database import Database
from .import_forms import Conversation, NotImported, conversation
from .message_rows import copy_row, turn_to
from .store import ChatStore

if TYPE_CHECKING:
    from ..services import Services

PATH = "/import"
LARGEST_UNPACKED = 8 * 2**30  # of what a .zip holds
LARGEST_CHAT = 64 * 2**20  # of the text of one conversation
DEEPEST = 64  # values within values
AT_ONCE = 500  # messages in a transaction, about
PART = 2**16
CONVERSATIONS = re.compile(r"(.*/)?conversations(-\d+)?\.json")
BROKEN = "This file can't be read as JSON: {}. Nothing was imported."
FOUND = "SELECT 1 FROM chats WHERE (origin = ? OR id = ?) AND deleted != 1"
SHOW = "UPDATE chats SET deleted = 0 WHERE deleted = 2"
TURN = "(SELECT coalesce(max(turn), 0) FROM chats WHERE updated <= :updated AND NOT deleted)"
NEXT = "SELECT max(below.id) FROM messages below WHERE (below.chat, below.parent) = (m.chat, m.id)"


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file. `known` were here already, `empty` had no message."""

    chats: int
    messages: int
    known: int
    empty: int


class Importer:
    """Takes one file at a time. Any thread may call."""

    def __init__(self, store: ChatStore, home: Home) -> None:
        self._store, self._folder = store, home / "cache"
        self._busy = threading.Lock()
        for old in self._folder.glob("import-*"):  # of a program that was killed
            old.unlink(missing_ok=True)

    def take(self, path: Path) -> Imported:
        """Bring in what a file holds. Raises AppError, and nothing is there."""
        if not self._busy.acquire(blocking=False):
            raise NotImported("Another file is being imported. Wait until it is done.")
        try:
            try:
                counts = self._bring_in(path)
                self._store.file.transact(lambda db: db.execute(SHOW))
            except BaseException:
                self._store.forget_hidden()
                raise
            return counts
        finally:
            self._busy.release()

    def place(self) -> Path:
        """A new file for one that comes."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        made, name = tempfile.mkstemp(prefix="import-", dir=self._folder)
        os.close(made)
        return Path(name)

    def _bring_in(self, path: Path) -> Imported:
        counts = {"chats": 0, "messages": 0, "known": 0, "empty": 0}
        batch: list[Conversation] = []

        def put() -> None:
            for name, number in self._store.file.transact(lambda db: _insert(db, batch)).items():
                counts[name] += number
            batch.clear()

        with closing(conversations(path)) as found:
            for each in found:
                if each is None:
                    counts["empty"] += 1
                    continue
                batch.append(each)
                if sum(len(one.said) for one in batch) >= AT_ONCE:
                    put()
        put()
        return Imported(**counts)


def import_routes(services: Services) -> list[BaseRoute]:
    """The route that takes files of chats."""
    importer = Importer(services.store, services.settings.home)

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

    return [Route(PATH, receive, methods=["POST"])]


def conversations(path: Path) -> Generator[Conversation | None, None, None]:
    """What a .json or .zip file holds, one by one; None for one that is empty. Raises NotImported."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield from map(conversation, values(file))
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if CONVERSATIONS.fullmatch(name))
            if not names:
                raise NotImported("This .zip holds no conversations.json. Nothing was imported.")
            for name in names:
                with archive.open(name) as file:
                    yield from map(conversation, values(file))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
        raise NotImported(f"This .zip can't be read: {error}. Nothing was imported.") from error


class _Counted:
    """A file that counts what was read of it, in all and since `mark`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.total, self.mark = file, 0, 0

    def read(self, size: int = PART) -> bytes:
        data = self._file.read(min(size, PART))
        if not self.total:
            data = data.removeprefix(b"\xef\xbb\xbf")
        self.total += len(data)
        for most, there, what in (
            (LARGEST_UNPACKED, self.total, "The file"),
            (LARGEST_CHAT, self.total - self.mark, "A conversation in this file"),
        ):
            if there > most + PART:
                raise NotImported(f"{what} is larger than {in_words(most)}. Nothing was imported.")
        return data


def values(file: IO[bytes]) -> Iterator[Any]:
    """The values of a JSON list, or of the list "chats" in an object, one by one; or the object alone."""
    counted = _Counted(file)
    events = ijson.basic_parse(counted, buf_size=PART, use_float=True)
    try:
        kind, value = next(events)
        if kind == "start_array":
            yield from _items(events, counted)
            for _ in events:  # none, or what stands behind the list is an error
                pass
            return
        rest, key, had_chats = ijson.ObjectBuilder(), "", False
        rest.event(kind, value)
        depth = 1
        for kind, value in events:
            key = value if kind == "map_key" and depth == 1 else key
            if depth == 1 and kind == "start_array" and key == "chats":
                had_chats = True
                yield from _items(events, counted)
                kind, value = "null", None
            depth = _deeper(depth, kind)
            rest.event(kind, value)
        if not had_chats:
            yield rest.value
    except StopIteration:
        raise NotImported("This file is empty. Nothing was imported.") from None
    except (ijson.JSONError, ValueError, ArithmeticError) as error:
        said = " ".join(str(error).split())[:200]
        raise NotImported(BROKEN.format(said)) from error


def _items(events: Iterator[tuple[str, Any]], counted: _Counted) -> Iterator[Any]:
    """The values up to the end of the list that has begun."""
    depth, builder = 0, None
    for kind, value in events:
        if depth == 0 and kind == "end_array":
            return
        builder = builder or ijson.ObjectBuilder()
        builder.event(kind, value)
        depth = _deeper(depth, kind)
        if depth == 0:
            counted.mark = counted.total
            yield builder.value
            builder = None


def _deeper(depth: int, kind: str) -> int:
    depth += kind.startswith("start_") - kind.startswith("end_")
    if depth > DEEPEST:
        raise NotImported(f"A value in this file lies more than {DEEPEST} deep. Nothing was imported.")
    return depth


def _insert(db: Database, batch: list[Conversation]) -> dict[str, int]:
    counts = {"chats": 0, "messages": 0, "known": 0}
    for each in batch:
        old_id = each.origin.partition(":")[2] if each.origin.startswith("octavo:") else ""
        if db.execute(FOUND, [each.origin, old_id]).fetchone():
            counts["known"] += 1
            continue
        _insert_chat(db, each)
        counts["chats"] += 1
        counts["messages"] += len(each.said)
    return counts


def _insert_chat(db: Database, each: Conversation) -> None:
    id = uuid.uuid4().hex
    turn = db.execute(f"SELECT {TURN}", {"updated": each.updated}).fetchone()[0]
    row = {
        **{"id": id, "title": each.title, "model": each.model, "system_prompt": each.system_prompt},
        **{"date": "", "updated": each.updated, "turn": turn, "leaf": None, "deleted": 2},
        **{"folder": _folder(db, each.folder), "origin": each.origin, **(each.facts or {})},
    }
    copy_row(db, "chats", row)
    ids: list[int] = []
    depths: list[int] = []
    for said in each.said:
        depths.append(0 if said.parent is None else depths[said.parent] + 1)
        is_user = said.role == "user"
        message = {
            **{"chat": id, "parent": None if said.parent is None else ids[said.parent], "depth": depths[-1]},
            **{"role": said.role, "text": said.text, "token_ids": b"", "tokenizer": "", "error": ""},
            **{"finish": "" if is_user else said.finish, "model": "" if is_user else said.model},
        }
        ids.append(copy_row(db, "messages", message))
    db.execute(f"UPDATE messages AS m SET next = ({NEXT}) WHERE chat = ?", [id])
    turn_to(db, id, ids[-1] if each.shown is None else ids[each.shown])


def _folder(db: Database, name: str) -> str | None:
    if not name:
        return None
    for row in db.execute("SELECT id, name FROM folders").fetchall():
        if row["name"].casefold() == name.casefold():
            return str(row["id"])
    id = uuid.uuid4().hex
    copy_row(db, "folders", {"id": id, "name": name, "system_prompt": ""})
    return id
