"""The rows of messages: what tree.py asks of them and changes in them.

Each function works within a transaction of its caller, and knows no files and no threads.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Sequence
from typing import Any

from ..errors import StoreError, UnknownChat
from .database import Database
from .records import Attachment, Chat, Reply, ReplyStats, StoredMessage

AT_ONCE = 600_000  # characters that come or go in one transaction, about: others wait for it
ROW = 300  # characters that take as long as all else of a message
GONE = "This chat does not exist any more."
ABOVE = """
    WITH RECURSIVE branch(id, parent) AS (
        SELECT id, parent FROM messages WHERE id = :leaf
        UNION ALL
        SELECT m.id, m.parent FROM messages m JOIN branch b ON m.id = b.parent
    )
"""
MESSAGE = """
    SELECT m.*, (
        SELECT group_concat(v.id) FROM messages v WHERE v.chat = m.chat AND v.parent IS m.parent
    ) AS versions FROM messages m
"""
BRANCH = f"{ABOVE} {MESSAGE} JOIN branch USING (id) ORDER BY m.depth"
TURN_TO = f"""
    {ABOVE} UPDATE messages SET next = (SELECT b.id FROM branch b WHERE b.parent = messages.id)
    WHERE id IN (SELECT parent FROM branch)
"""
BELOW = """
    WITH RECURSIVE below(id) AS (
        SELECT :id
        UNION ALL
        SELECT m.id FROM messages m JOIN below b ON m.parent = b.id AND m.chat = :chat
    )
    SELECT id FROM below
"""
LAST_SEEN = """
    WITH RECURSIVE seen(id, place) AS (
        SELECT :id, 0
        UNION ALL
        SELECT m.next, place + 1 FROM messages m JOIN seen s ON m.id = s.id WHERE m.next IS NOT NULL
    )
    SELECT id FROM seen ORDER BY place DESC LIMIT 1
"""
SAVE = """
    UPDATE messages SET text = :text, token_ids = :token_ids, tokenizer = :tokenizer, finish = :finish,
    error = :error, stats = :stats WHERE id = :id
"""


def chat_row(db: Database, id: str) -> Chat:
    """A chat that is not about to be deleted. Raises UnknownChat."""
    row = db.execute("SELECT * FROM chats WHERE id = ? AND NOT deleted", [id]).fetchone()
    if row is None:
        raise UnknownChat(GONE)
    return Chat(**row)


def next_turn(db: Database) -> int:
    """Larger than that of any chat: what has it stands first in the list."""
    return int(db.execute("SELECT coalesce(max(turn), 0) + 1 FROM chats").fetchone()[0])


def message_row(db: Database, chat: str, id: int) -> StoredMessage:
    """A message of this chat. Raises StoreError where it is gone."""
    row = db.execute(f"{MESSAGE} WHERE (id, chat) = (?, ?)", [id, chat]).fetchone()
    if row is None:
        raise StoreError("This message does not exist any more. Reload the page.")
    return stored(row)


def insert(
    db: Database,
    chat: str,
    above: StoredMessage | None,
    role: str,
    text: str,
    finish: str | None,
    model: str = "",
) -> StoredMessage:
    """A new message below another; it is not on screen before turn_to."""
    parent, depth = (above.id, above.depth + 1) if above else (None, 0)
    values: dict[str, Any] = {"chat": chat, "parent": parent, "depth": depth, "role": role, "model": model}
    kept = {"text": text, "token_ids": b"", "tokenizer": "", "finish": finish, "error": ""}
    return message_row(db, chat, copy_row(db, "messages", {**values, **kept}))


def copy_row(db: Database, table: str, row: dict[str, Any]) -> int:
    """A new row; gives its number."""
    places = ", ".join(f":{name}" for name in row)
    cursor = db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", row)
    return int(cursor.lastrowid or 0)


def remove_some(db: Database, chats: str, values: Sequence[str] = ()) -> bool:
    """Remove some messages of the chats that a query names, at last the chats; whether more is to be done."""
    some = f"SELECT id, length(text) FROM messages WHERE chat IN ({chats}) LIMIT {AT_ONCE // ROW}"
    ids, most = [], AT_ONCE
    for id, length in db.execute(some, values).fetchall():
        ids.append(id)
        if (most := most - length - ROW) <= 0:
            break
    db.execute("DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))", [json.dumps(ids)])
    if most > 0:
        db.execute(f"DELETE FROM chats WHERE id IN ({chats})", values)
    return most <= 0


def turn_to(db: Database, chat: str, message: int | None) -> None:
    """Put the branch on screen that goes through a message."""
    leaf = None if message is None else last_seen(db, message)
    db.execute(TURN_TO, {"leaf": leaf})
    db.execute("UPDATE chats SET leaf = ? WHERE id = ?", [leaf, chat])


def last_seen(db: Database, message: int) -> int:
    """The leaf that was on screen last below a message."""
    return int(db.execute(LAST_SEEN, {"id": message}).fetchone()["id"])


def end_comparison(db: Database, chat: str, message: int | None) -> None:
    """The answers that a message stands beside are mere versions from now on."""
    group = "(SELECT beside FROM messages WHERE id = :id)"
    values = {"chat": chat, "id": message}
    db.execute(f"UPDATE messages SET beside = NULL WHERE chat = :chat AND beside = {group}", values)


def stored(row: sqlite3.Row, files: tuple[Attachment, ...] = ()) -> StoredMessage:
    """A row of MESSAGE as what it is."""
    reply = Reply(
        text=row["text"],
        token_ids=struct.unpack(f"<{len(row['token_ids']) // 4}I", row["token_ids"]),
        tokenizer=row["tokenizer"],
        finish=row["finish"],
        error=row["error"],
        stats=ReplyStats(**json.loads(row["stats"])) if row["stats"] else None,
    )
    versions = tuple(sorted(map(int, (row["versions"] or str(row["id"])).split(","))))
    place = row["id"], row["parent"], row["depth"], row["role"]
    return StoredMessage(*place, reply, row["model"], row["beside"], versions, files)
