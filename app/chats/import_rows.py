"""The rows of chats that come in: each function works within a transaction of its caller.

A chat that came in before is not taken twice. Those that come in are hidden until all are there.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from ..documents.attachments import insert_attached, text_hash
from .database import Database
from .import_files import GivenFile
from .import_forms import Conversation
from .message_rows import copy_row, turn_to
from .records import Attachment

FOUND = "SELECT 1 FROM chats WHERE (origin = ? OR id = ?) AND deleted != 1"
TURN = "(SELECT coalesce(max(turn), 0) FROM chats WHERE updated <= :updated AND NOT deleted)"
NEXT = "SELECT max(below.id) FROM messages below WHERE (below.chat, below.parent) = (m.chat, m.id)"


def insert_all(db: Database, batch: list[Conversation], texts: Mapping[str, Attachment]) -> dict[str, int]:
    """Put conversations in; `texts` are their documents. What came of it, as Imported counts."""
    counts = {"chats": 0, "messages": 0, "known": 0}
    for each in batch:
        old_id = each.origin.partition(":")[2] if each.origin.startswith("octavo:") else ""
        if db.execute(FOUND, [each.origin, old_id]).fetchone():
            counts["known"] += 1
            continue
        _insert_chat(db, each, texts)
        counts["chats"] += 1
        counts["messages"] += len(each.said)
    return counts


def _insert_chat(db: Database, each: Conversation, texts: Mapping[str, Attachment]) -> None:
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
        for place, file in enumerate(said.files):
            if text := texts.get(text_key(file)):
                mine = replace(
                    text,
                    id=uuid.uuid4().hex,
                    name=file.name,
                    size=file.size,
                    given=file.given,
                    parts=file.parts,
                )
                insert_attached(db, mine, id, ids[-1], place)
    db.execute(f"UPDATE messages AS m SET next = ({NEXT}) WHERE chat = ?", [id])
    turn_to(db, id, ids[-1] if each.shown is None else ids[each.shown])


def text_key(file: GivenFile) -> str:
    """What its text is called by: an id of the export's, or one of our own for a text that stands with it."""
    return f"here {text_hash(file.document)}" if file.document else file.id


def _folder(db: Database, name: str) -> str | None:
    if not name:
        return None
    for row in db.execute("SELECT id, name FROM folders").fetchall():
        if row["name"].casefold() == name.casefold():
            return str(row["id"])
    id = uuid.uuid4().hex
    copy_row(db, "folders", {"id": id, "name": name, "system_prompt": ""})
    return id
