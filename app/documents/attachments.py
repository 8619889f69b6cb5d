"""Documents that belong to messages: their files in the home folder, their text, and the rows that name them.

    attachments/HASH         the file as it came, named by its SHA-256: the same file twice is kept once
    attachments/HASH.json    its text, read once
A file goes when no row names it any more: rows go with their message and chat, and with a draft after a week.
Those of private chats are in memory alone, from their first byte on, text and rows. What of them a
model is given is context.py's.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import IO

from engine import in_words

from ..chats.database import Database, DatabaseFile
from ..chats.records import PRIVATE, Attachment
from ..errors import AppError, StoreError, UnknownChat, Unreadable
from ..models.disk import free_bytes
from .passages import Passage, Ranking, passages
from .reading import Document, read_document

FOLDER = "attachments"
FILE_LIMIT = 100 * 10**6  # bytes
MOST_FILES = 20  # with one message
NAME_LENGTH = 200
DRAFT_LIFE_S = 7 * 86400.0
GONE = "A file that was attached is gone. Attach it once more."
WAITS = "SELECT 1 FROM line, json_each(line.files) WHERE value = :id"
OLD_DRAFTS = """
    DELETE FROM attachments WHERE message IS NULL AND added < ? AND
    id NOT IN (SELECT value FROM line, json_each(line.files))
"""
COLUMNS = "id, name, hash, size, unit, count, blank, given, parts"


class Attachments:
    """Any thread may call. `place` says in which file of the store a chat is; "" is a blank page."""

    def __init__(self, folder: Path, place: Callable[[str | int], DatabaseFile]) -> None:
        self._folder, self._place = folder, place
        self._lock = threading.Lock()  # a file's row is there before anyone looks for files without one
        self._private: dict[str, Document] = {}
        self._cut = lru_cache(8)(self._cut_up)
        for half in folder.glob("*.new"):  # of a program that was killed
            half.unlink(missing_ok=True)

    # ---- coming and going

    @contextmanager
    def receiving(self, chat: str = "") -> Iterator[IO[bytes]]:
        """A file to write into; it is gone afterwards unless it was kept. In memory for a private chat."""
        if chat.startswith(PRIVATE):
            yield io.BytesIO()
            return
        path = None
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            made, name = tempfile.mkstemp(".new", dir=self._folder)
            os.close(made)
            path = Path(name)
            with path.open("wb") as file:
                yield file
        except OSError as error:
            free = in_words(free_bytes(self._folder.parent))
            raise AppError(f"The file could not be kept: {error.strerror} ({free} free).") from error
        finally:
            if path:
                path.unlink(missing_ok=True)

    def take(self, chat: str, name: str, file: IO[bytes], hash: str) -> Attachment:
        """Read a file that has come, and keep it for a message of this chat. Raises AppError."""
        size, name = file.tell(), file_name(name)
        if not size:
            raise Unreadable(f"{name} is empty.")
        source = file.getvalue() if isinstance(file, io.BytesIO) else Path(file.name)
        file.close()
        try:
            document = self._known(hash) or read_document(source)
        except Unreadable as error:
            raise Unreadable(f"{name} was not taken. {error}") from error
        new = _new(name, hash, size, document)
        with self._lock:
            if isinstance(source, Path):
                self._write(hash, document)
                source.replace(self._folder / hash)
            else:
                self._private[hash] = document
            self._place(chat).transact(lambda db: insert_attached(db, new, _known_chat(db, chat)))
        return new

    def keep_text(self, document: Document) -> Attachment:
        """Keep a text that comes without its file, as a draft: until `let_go`."""
        new = _new("", text_hash(document), 0, document)
        with self._lock:
            if not self._known(new.hash):
                self._write(new.hash, document)
            self._place("").transact(lambda db: insert_attached(db, new, None))
        return new

    def let_go(self, drafts: Iterable[Attachment]) -> None:
        """Forget drafts; a text stays where a message has it."""
        gone = [[draft.id] for draft in drafts]
        delete = "DELETE FROM attachments WHERE id = ? AND message IS NULL"

        def write(db: Database) -> None:
            for id in gone:
                db.execute(delete, id)

        self._place("").transact(write)

    def drop(self, chat: str, id: str) -> None:
        """Take back a file that was not sent. Raises AppError if it goes with a message that waits."""

        def write(db: Database) -> None:
            if db.execute(WAITS, {"id": id}).fetchone():
                raise AppError("This file goes with a message that waits to be sent.")
            db.execute("DELETE FROM attachments WHERE id = ? AND message IS NULL", [id])

        self._place(chat).transact(write)
        self.sweep()

    def sweep(self) -> None:
        """Delete every file that no chat and no draft names any more."""
        old = [time.time() - DRAFT_LIFE_S]
        named: set[str] = set()
        with self._lock:
            for place in {self._place(""), self._place(PRIVATE)}:
                place.transact(lambda db: db.execute(OLD_DRAFTS, old))
                rows = place.read(lambda db: db.execute("SELECT hash FROM attachments").fetchall())
                named |= {row["hash"] for row in rows}
            for hash in self._private.keys() - named:
                del self._private[hash]
            for file in self._folder.glob("*"):
                if file.stem not in named and file.suffix != ".new":  # one that comes in just now
                    file.unlink(missing_ok=True)
        self._cut.cache_clear()

    # ---- what there is

    def waiting(self, chat: str, ids: Sequence[str]) -> tuple[Attachment, ...]:
        """Files that go with a message, in this order. Raises StoreError if one is gone."""
        return self._place(chat).read(lambda db: _found(db, ids))

    def document(self, hash: str) -> Document:
        """A file's text. Raises AppError."""
        if document := self._known(hash):
            return document
        document = read_document(self._folder / hash)
        with suppress(AppError):
            self._write(hash, document)
        return document

    def passages(self, hashes: tuple[str, ...]) -> tuple[list[tuple[int, Passage]], Ranking]:
        """Files cut up: passages with the place of their file, and how to rank them."""
        return self._cut(hashes)

    def choose(self, chat: str, chosen: Iterable[Attachment]) -> None:
        """Keep what the model is given of some files."""
        change = "UPDATE attachments SET given = :given, parts = :parts WHERE id = :id"
        values = [{"id": each.id, "given": each.given, "parts": json.dumps(each.parts)} for each in chosen]

        def write(db: Database) -> None:
            for value in values:
                db.execute(change, value)

        self._place(chat).transact(write)

    # ---- inside

    def _cut_up(self, hashes: tuple[str, ...]) -> tuple[list[tuple[int, Passage]], Ranking]:
        found = [(place, each) for place, hash in enumerate(hashes) for each in passages(self.document(hash))]
        return found, Ranking([passage.text for _, passage in found])

    def _known(self, hash: str) -> Document | None:
        if hash in self._private:
            return self._private[hash]
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads((self._folder / f"{hash}.json").read_text("utf-8"))
            return Document(kept["unit"], tuple(kept["parts"]))
        return None

    def _write(self, hash: str, document: Document) -> None:
        with self.receiving() as file:
            file.write(json.dumps(asdict(document), ensure_ascii=False).encode("utf-8", "replace"))
            file.close()
            Path(file.name).replace(self._folder / f"{hash}.json")


def attached(db: Database, chat: str) -> dict[int, tuple[Attachment, ...]]:
    """The files of a chat's messages, in their order."""
    found: dict[int, tuple[Attachment, ...]] = {}
    sent = f"SELECT message, {COLUMNS} FROM attachments WHERE chat = ? AND message IS NOT NULL ORDER BY place"
    for row in db.execute(sent, [chat]).fetchall():
        found[row["message"]] = (*found.get(row["message"], ()), _attachment(row))
    return found


def attach(db: Database, chat: str, message: int, ids: Sequence[str]) -> None:
    """Give files to a message: those of a draft as they are, those of another message as copies, of which
    is chosen anew.
    """
    for place, file in enumerate(_found(db, ids)):
        moved = "UPDATE attachments SET chat = ?, message = ?, place = ? WHERE id = ? AND message IS NULL"
        if not db.execute(moved, [chat, message, place, file.id]).rowcount:
            anew = replace(file, id=uuid.uuid4().hex, given=None, parts=())
            insert_attached(db, anew, chat, message, place)


def copy_attached(db: Database, chat: str, old: int, new: int) -> None:
    """Give a message's copy in another chat what the message has."""
    rows = db.execute(f"SELECT {COLUMNS} FROM attachments WHERE message = ? ORDER BY place", [old])
    for place, row in enumerate(rows.fetchall()):
        insert_attached(db, replace(_attachment(row), id=uuid.uuid4().hex), chat, new, place)


def found_of(db: Database, ids: Sequence[str]) -> tuple[Attachment, ...]:
    """Those of some files that are there, in this order."""
    marks = ",".join("?" * len(ids))
    rows = db.execute(f"SELECT {COLUMNS} FROM attachments WHERE id IN ({marks})", list(ids)).fetchall()
    found = {row["id"]: _attachment(row) for row in rows}
    return tuple(found[id] for id in ids if id in found)


def text_hash(document: Document) -> str:
    """What a text without its file is named by."""
    return hashlib.sha256(json.dumps(asdict(document)).encode()).hexdigest()


def _new(name: str, hash: str, size: int, document: Document) -> Attachment:
    blank = sum(not part.strip() for part in document.parts) if document.unit == "page" else 0
    return Attachment(uuid.uuid4().hex, name, hash, size, document.unit, len(document.parts), blank)


def insert_attached(
    db: Database, file: Attachment, chat: str | None, message: int | None = None, place: int = 0
) -> None:
    values = {**asdict(file), "parts": json.dumps(file.parts), "added": time.time()}
    values |= {"chat": chat, "message": message, "place": place}
    db["attachments"].insert(values)


def _known_chat(db: Database, chat: str) -> str | None:
    """The chat, None where there is none (yet, or any more); of a private one nothing is kept then."""
    if db.execute("SELECT 1 FROM chats WHERE id = ?", [chat]).fetchone():
        return chat
    if chat.startswith(PRIVATE):
        raise UnknownChat("This chat does not exist any more.")
    return None


def _found(db: Database, ids: Sequence[str]) -> tuple[Attachment, ...]:
    found = found_of(db, ids)
    if len(found) < len(ids):
        raise StoreError(GONE)
    if len(ids) > MOST_FILES:
        raise StoreError(f"There are {len(ids):,} files; a message takes at most {MOST_FILES}.")
    return found


def _attachment(row: sqlite3.Row) -> Attachment:
    values = {name: row[name] for name in COLUMNS.split(", ")}
    return Attachment(**{**values, "parts": tuple(map(tuple, json.loads(row["parts"])))})


def file_name(name: str) -> str:
    """A file's name as it can be shown and kept: one line, no folders, not too long."""
    last = name.replace("\\", "/").rpartition("/")[2]
    line = "".join(sign if sign.isprintable() else " " for sign in last).strip()
    return line[-NAME_LENGTH:] or "file"
