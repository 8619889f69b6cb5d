"""The rows of chats that come in: each function works within a transaction of its caller.

A chat that came in before is not taken twice. Those that come in are hidden until all are there, so that a
long one can come in piece by piece.
"""

from __future__ import annotations

import math
import uuid
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate

from ..documents.attachments import insert_attached, text_hash
from .database import Database
from .import_files import GivenFile
from .import_forms import Conversation
from .import_tree import Said
from .message_rows import ROW, copy_row, turn_to
from .records import MOST_FOLDERS, Attachment

FOUND = "SELECT 1 FROM chats WHERE (origin = ? OR id = ?) AND deleted != 1"
AGES = "SELECT updated, turn FROM chats WHERE NOT deleted ORDER BY updated"
NEXT = "SELECT max(below.id) FROM messages below WHERE (below.chat, below.parent) = (m.chat, m.id)"


@dataclass(frozen=True, slots=True)
class Coming:
    """A conversation on its way in; `rows` are the messages that are there: (number, depth) of each."""

    given: Conversation
    chat: str = ""  # its id, once there is one
    rows: tuple[tuple[int, int], ...] = ()


def insert_some(
    db: Database, coming: Sequence[Coming], texts: Mapping[str, Attachment], most: int
) -> tuple[list[Coming], dict[str, int]]:
    """Put about `most` characters of conversations in; `texts` are their documents. Gives those that are to
    be gone on with, and what came of the others, as Imported counts.
    """
    counts = {"chats": 0, "messages": 0, "known": 0}
    ages = _ages(db)
    for place, each in enumerate(coming):
        if most <= 0:
            return list(coming[place:]), counts
        given = each.given
        if not each.chat:
            old_id = given.origin.partition(":")[2] if given.origin.startswith("octavo:") else ""
            if db.execute(FOUND, [given.origin, old_id]).fetchone():
                counts["known"] += 1
                continue
            each = replace(each, chat=_insert_chat(db, given, ages))
        each, most = _go_on(db, each, texts, most)
        if len(each.rows) < len(given.said):
            return [each, *coming[place + 1 :]], counts
        db.execute(f"UPDATE messages AS m SET next = ({NEXT}) WHERE chat = ?", [each.chat])
        turn_to(db, each.chat, each.rows[-1 if given.shown is None else given.shown][0])
        counts["chats"] += 1
        counts["messages"] += len(given.said)
    return [], counts


def _ages(db: Database) -> list[tuple[float, int]]:
    """When each chat was used last, the oldest first, with the largest turn up to there."""
    rows = db.execute(AGES).fetchall()
    turns = accumulate((row["turn"] for row in rows), max)
    return [(row["updated"], turn) for row, turn in zip(rows, turns, strict=True)]


def _insert_chat(db: Database, each: Conversation, ages: Sequence[tuple[float, int]]) -> str:
    """A new chat; `ages` are those of the others, which say its place among them. Its id."""
    id = uuid.uuid4().hex
    older = bisect_right(ages, (each.updated, math.inf))
    turn = ages[older - 1][1] if older else 0
    day = f"{datetime.fromtimestamp(each.updated):%Y-%m-%d}"
    row = {
        **{"id": id, "title": each.title, "model": each.model, "system_prompt": each.system_prompt},
        **{"date": day, "updated": each.updated, "turn": turn, "leaf": None, "deleted": 2},
        **{"folder": _folder(db, each.folder), "origin": each.origin, **(each.facts or {})},
    }
    copy_row(db, "chats", row)
    return id


def _go_on(db: Database, each: Coming, texts: Mapping[str, Attachment], most: int) -> tuple[Coming, int]:
    """Put in the next messages of a chat, one or more; what is left of `most`."""
    rows = list(each.rows)
    for said in each.given.said[len(rows) :]:
        above, depth = (None, -1) if said.parent is None else rows[said.parent]
        rows.append((_insert_message(db, each.chat, said, above, depth + 1, texts), depth + 1))
        most -= len(said.text) + ROW
        if most <= 0:
            break
    return replace(each, rows=tuple(rows)), most


def _insert_message(
    db: Database, chat: str, said: Said, above: int | None, depth: int, texts: Mapping[str, Attachment]
) -> int:
    is_user = said.role == "user"
    message = {
        **{"chat": chat, "parent": above, "depth": depth},
        **{"role": said.role, "text": said.text, "token_ids": b"", "tokenizer": "", "error": ""},
        **({"finish": ""} if is_user else {"finish": said.finish, "model": said.model, **(said.facts or {})}),
    }
    id = copy_row(db, "messages", message)
    for place, file in enumerate(said.files):
        if text := texts.get(text_key(file)):
            mine = replace(text, id=uuid.uuid4().hex, name=file.name, size=file.size)
            insert_attached(db, replace(mine, given=file.given, parts=file.parts), chat, id, place)
    return id


def text_key(file: GivenFile) -> str:
    """What its text is called by: an id of the export's, or one of our own for a text that stands with it."""
    return f"here {text_hash(file.document)}" if file.document else file.id


def _folder(db: Database, name: str) -> str | None:
    if not name:
        return None
    rows = db.execute("SELECT id, name FROM folders").fetchall()
    for row in rows:
        if row["name"].casefold() == name.casefold():
            return str(row["id"])
    if len(rows) >= MOST_FOLDERS:
        return None
    id = uuid.uuid4().hex
    copy_row(db, "folders", {"id": id, "name": name, "system_prompt": ""})
    return id
