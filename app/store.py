"""The chats on disk: what can be asked of them and written to them, each call one transaction.

What a call returned from is kept, whatever happens to the program. Who runs an answer, and what the page
shows, is chat.py's to know.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import time
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .database import Database, DatabaseFile
from .errors import StoreError, UnknownChat
from .records import Chat, Reply, ReplyStats, StoredMessage
from .schema import VERSION, migrations

BRANCH = """
    WITH RECURSIVE branch(id, parent) AS (
        SELECT id, parent FROM messages WHERE id = :leaf
        UNION ALL
        SELECT m.id, m.parent FROM messages m JOIN branch b ON m.id = b.parent
    )
    SELECT messages.* FROM branch JOIN messages USING (id) ORDER BY messages.depth
"""
INSERT = """
    INSERT INTO messages (chat, parent, depth, role, text, token_ids, tokenizer, finish, error)
    VALUES (:chat, :parent, :depth, :role, :text, x'', '', :finish, '')
"""
SAVE = """
    UPDATE messages SET text = :text, token_ids = :token_ids, tokenizer = :tokenizer, finish = :finish,
    error = :error, stats = :stats WHERE id = :id
"""


class ChatStore:
    """Any thread may call. `notice` is for the person: what was found at the start, or ""."""

    def __init__(self, path: Path) -> None:
        self._file = DatabaseFile(path, migrations, VERSION)

    @property
    def notice(self) -> str:
        return self._file.notice

    def chats(self) -> list[Chat]:
        """All chats, newest first."""
        newest = "SELECT * FROM chats ORDER BY turn DESC"
        return self._file.read(lambda db: [Chat(**row) for row in db.execute(newest).fetchall()])

    def chat(self, id: str) -> Chat:
        """One chat. Raises UnknownChat."""
        return self._file.read(lambda db: _chat(db, id))

    def fresh(self, model: str, system_prompt: str, date: str) -> Chat:
        """A chat without messages: a new one, or one that was never used, as if it were made now."""

        def write(db: Database) -> Chat:
            empty = db.execute("SELECT id FROM chats WHERE leaf IS NULL").fetchone()
            values = {"title": "", "model": model, "system_prompt": system_prompt, "date": date, "leaf": None}
            id = empty["id"] if empty else uuid.uuid4().hex
            db["chats"].upsert({"id": id, **values, "updated": time.time(), "turn": _next_turn(db)}, pk="id")
            return _chat(db, id)

        return self._file.transact(write)

    def rename(self, id: str, title: str) -> None:
        """Give a chat another title."""

        def write(db: Database) -> None:
            _chat(db, id)
            db.execute("UPDATE chats SET title = ? WHERE id = ?", [title, id])

        self._file.transact(write)

    def delete(self, id: str) -> None:
        """Remove a chat; what it held is overwritten."""

        def write(db: Database) -> None:
            _chat(db, id)
            db.execute("DELETE FROM chats WHERE id = ?", [id])

        self._file.transact(write)
        self._file.purge()

    def branch(self, id: str) -> tuple[StoredMessage, ...]:
        """The branch on screen, oldest first."""

        def read(db: Database) -> tuple[StoredMessage, ...]:
            rows = db.execute(BRANCH, {"leaf": _chat(db, id).leaf}).fetchall()
            return tuple(_stored(row) for row in rows)

        return self._file.read(read)

    def begin_turn(self, id: str, seen: int | None, text: str | None, *, title: str, model: str) -> int:
        """Keep the user's message and an empty answer to it in one commit; gives the answer's id.

        `seen` is the leaf that the caller knows: nothing is written if there is another by now. Without a
        text the last question is answered once more, on a branch of its own. `title` is for a chat that has
        none; `model` is who answers.
        """

        def write(db: Database) -> int:
            chat = _chat(db, id)
            if chat.leaf != seen:
                raise StoreError("This chat has changed since it was shown. Reload the page.")
            above = None if seen is None else _message(db, seen)
            if text is not None:
                parent = _insert(db, id, above, "user", text, finish="")
            else:
                parent = _question(db, above)
            reply = _insert(db, id, parent, "assistant", "", finish=None)
            db.execute(
                "UPDATE chats SET leaf = ?, title = ?, model = ?, updated = ?, turn = ? WHERE id = ?",
                [reply.id, chat.title or title, model, time.time(), _next_turn(db), id],
            )
            return reply.id

        return self._file.transact(write)

    def save_reply(self, id: int, reply: Reply) -> None:
        """Keep an answer as far as it has come. If its chat was deleted, nothing is kept."""
        values = {
            "id": id,
            "text": reply.text,
            "token_ids": struct.pack(f"<{len(reply.token_ids)}I", *reply.token_ids),
            "tokenizer": reply.tokenizer,
            "finish": reply.finish,
            "error": reply.error,
            "stats": json.dumps(asdict(reply.stats)) if reply.stats else None,
        }
        self._file.transact(lambda db: db.execute(SAVE, values))

    def close(self) -> None:
        """Finish what was asked for and let go of the file."""
        self._file.close()


def _next_turn(db: Database) -> int:
    return int(db.execute("SELECT coalesce(max(turn), 0) + 1 FROM chats").fetchone()[0])


def _chat(db: Database, id: str) -> Chat:
    row = db.execute("SELECT * FROM chats WHERE id = ?", [id]).fetchone()
    if row is None:
        raise UnknownChat("This chat does not exist any more.")
    return Chat(**row)


def _message(db: Database, id: int) -> StoredMessage:
    return _stored(db.execute("SELECT * FROM messages WHERE id = ?", [id]).fetchone())


def _insert(
    db: Database, chat: str, above: StoredMessage | None, role: str, text: str, finish: str | None
) -> StoredMessage:
    parent, depth = (above.id, above.depth + 1) if above else (None, 0)
    values: dict[str, Any] = {"chat": chat, "parent": parent, "depth": depth, "role": role}
    cursor = db.execute(INSERT, {**values, "text": text, "finish": finish})
    return _message(db, int(cursor.lastrowid or 0))


def _question(db: Database, last: StoredMessage | None) -> StoredMessage:
    """The user's message that a retry answers."""
    if last is not None and last.role == "assistant" and last.parent is not None:
        last = _message(db, last.parent)
    if last is None or last.role != "user":
        raise StoreError("There is nothing in this chat to answer.")
    return last


def _stored(row: sqlite3.Row) -> StoredMessage:
    reply = Reply(
        text=row["text"],
        token_ids=struct.unpack(f"<{len(row['token_ids']) // 4}I", row["token_ids"]),
        tokenizer=row["tokenizer"],
        finish=row["finish"],
        error=row["error"],
        stats=ReplyStats(**json.loads(row["stats"])) if row["stats"] else None,
    )
    return StoredMessage(row["id"], row["parent"], row["depth"], row["role"], reply)
