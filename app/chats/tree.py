"""The messages of chats, on disk: a tree for each chat, each call one transaction.

Messages with the same parent are versions of each other. `next` of a message is the one below it that was on
screen last: to show another version is to follow `next` down from it. Who runs an answer is chat_turns.py's
to know, where a chat is kept store.py's.
"""

from __future__ import annotations

import json
import re
import struct
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

from ..documents.attachments import attach, attached, copy_attached
from ..errors import StoreError
from .database import Database, DatabaseFile
from .line_rows import follow, line_of
from .message_rows import (
    BELOW,
    BRANCH,
    MESSAGE,
    SAVE,
    chat_row,
    copy_row,
    end_comparison,
    insert,
    last_seen,
    message_row,
    next_turn,
    stored,
    turn_to,
)
from .records import PRIVATE, OpenChat, Reply, Turn
from .summaries import summary_of

T = TypeVar("T")


class Tree:
    """Any thread may call. `place` says in which file a chat or a message is."""

    def __init__(self, place: Callable[[str | int], DatabaseFile]) -> None:
        self._place = place

    def open(self, chat: str) -> OpenChat:
        """A chat as its page shows it. Raises UnknownChat."""

        def read(db: Database) -> OpenChat:
            found = chat_row(db, chat)
            files = attached(db, chat)
            rows = db.execute(BRANCH, {"leaf": found.leaf}).fetchall()
            branch = tuple(stored(row, files.get(row["id"], ())) for row in rows)
            group = branch[-1].beside if branch else None
            compared = db.execute(f"{MESSAGE} WHERE (chat, beside) = (?, ?) ORDER BY id", [chat, group])
            beside = tuple(map(stored, compared.fetchall() if group else []))
            waiting = line_of(db, chat)
            summary = summary_of(db, chat, {message.id for message in branch})
            return OpenChat(found, branch, beside if len(beside) > 1 else (), waiting, summary)

        return self._place(chat).read(read)

    def begin(
        self, chat: str, seen: int | None, turn: Turn, *, title: str, models: Sequence[str]
    ) -> tuple[int, ...]:
        """Keep the person's message and empty answers to it in one commit; gives the answers' ids.

        `seen` is the leaf that the caller knows: nothing is written if there is another by now. `title` is
        for a chat that has none; `models` say who answers, once or several times side by side.
        """

        def write(db: Database) -> tuple[int, ...]:
            found = chat_row(db, chat)
            if found.leaf != seen:
                raise StoreError("This chat has changed since it was shown. Reload the page.")
            end_comparison(db, chat, found.leaf)
            above = message_row(db, chat, turn.below) if turn.below is not None else None
            if turn.text is not None:
                above = insert(db, chat, above, "user", turn.text, finish="")
                attach(db, chat, above.id, turn.files)
            elif above is None or above.role != "user":
                raise StoreError("There is nothing in this chat to answer.")
            ids = [insert(db, chat, above, "assistant", "", finish=None, model=model).id for model in models]
            if len(ids) > 1:
                db.execute("UPDATE messages SET beside = ?1 WHERE id >= ?1", ids[:1])
            turn_to(db, chat, ids[0])
            db.execute("DELETE FROM line WHERE id = ?", [turn.waited])
            for old in (found.leaf, turn.below):
                follow(db, chat, old, ids[0])
            db.execute(
                "UPDATE chats SET title = ?, model = ?, updated = ?, turn = ? WHERE id = ?",
                [found.title or title, models[0], time.time(), next_turn(db), chat],
            )
            return tuple(ids)

        return self._place(chat).transact(write)

    def save_reply(self, message: int, reply: Reply) -> None:
        """Keep an answer as far as it has come. If its chat was deleted, nothing is kept."""
        values = {
            "id": message,
            "text": reply.text,
            "token_ids": struct.pack(f"<{len(reply.token_ids)}I", *reply.token_ids),
            "tokenizer": reply.tokenizer,
            "finish": reply.finish,
            "error": reply.error,
            "stats": json.dumps(asdict(reply.stats)) if reply.stats else None,
        }
        self._place(message).transact(lambda db: db.execute(SAVE, values))

    def show(self, chat: str, message: int) -> None:
        """Put a version on screen, with what was last seen below it."""
        self._write(chat, message, lambda db: turn_to(db, chat, message))

    def pick(self, chat: str, message: int) -> None:
        """Go on with one of the answers that stand side by side; the others stay as its versions."""

        def write(db: Database) -> None:
            group = message_row(db, chat, message).beside
            compared = "SELECT id FROM messages WHERE (chat, beside) = (?, ?)"
            for row in db.execute(compared, [chat, group]).fetchall():
                follow(db, chat, row["id"], message)
            end_comparison(db, chat, message)
            turn_to(db, chat, message)

        self._write(chat, message, write)

    def revise(self, chat: str, message: int, text: str) -> None:
        """Another version of an answer, as the person writes it: the ids that were sampled are not its."""

        def write(db: Database) -> None:
            old = message_row(db, chat, message)
            above = message_row(db, chat, old.parent) if old.parent is not None else None
            new = insert(db, chat, above, old.role, text, finish="stop", model=old.model)
            turn_to(db, chat, new.id)
            follow(db, chat, message, new.id)

        self._write(chat, message, write)

    def remove(self, chat: str, message: int) -> frozenset[int]:
        """Delete a version and all below it; what it held is overwritten. Gives what is gone.

        On screen comes the version before it, else the one after it, else what stood above.
        """

        def write(db: Database) -> frozenset[int]:
            gone = message_row(db, chat, message)
            ids = [row["id"] for row in db.execute(BELOW, {"id": message, "chat": chat}).fetchall()]
            group = "SELECT id FROM messages WHERE chat = ? AND beside = ?"
            beside = [row["id"] for row in db.execute(group, [chat, gone.beside]).fetchall()]
            others = [id for id in beside or gone.versions if id != message]
            heir = max((id for id in others if id < message), default=min(others, default=None))
            db.execute(f"DELETE FROM messages WHERE id IN ({','.join(map(str, ids))})")
            db.execute("UPDATE messages SET next = ? WHERE id = ? AND next = ?", [heir, gone.parent, message])
            if chat_row(db, chat).leaf in ids:
                leaf = gone.parent if heir is None else last_seen(db, heir)
                db.execute("UPDATE chats SET leaf = ? WHERE id = ?", [leaf, chat])
            return frozenset(ids)

        gone = self._write(chat, message, write)
        self._place(chat).purge()
        return gone

    def fork(self, chat: str, message: int, growing: str = "") -> str:
        """A new chat that begins as this one does, up to a message; gives its id. `growing` is the message's
        text so far, where that is ahead of the disk's.
        """

        def write(db: Database) -> str:
            old, id = chat_row(db, chat), (PRIVATE if chat.startswith(PRIVATE) else "") + uuid.uuid4().hex
            values = {"id": id, "leaf": None, "pinned": 0, "archived": 0, "turn": next_turn(db), "origin": ""}
            title = _numbered(old.title)
            copy_row(db, "chats", {**asdict(old), **values, "title": title, "updated": time.time()})
            leaf = None
            for row in db.execute(BRANCH, {"leaf": message}).fetchall():
                new = {**dict(row), "chat": id, "parent": leaf, "beside": None, "next": None}
                del new["id"], new["versions"]
                if row["finish"] is None:  # it still grows there
                    new["finish"] = "cancelled"
                    if growing:
                        new |= {"text": growing, "token_ids": b"", "tokenizer": ""}
                leaf = copy_row(db, "messages", new)
                copy_attached(db, id, row["id"], leaf)
            turn_to(db, id, leaf)
            return id

        return self._write(chat, message, write)

    def wait(self, chat: str, text: str, files: Sequence[str] = ()) -> None:
        """Put a message at the end of the line."""
        values = {"chat": chat, "text": text, "files": json.dumps(files)}

        def write(db: Database) -> None:
            copy_row(db, "line", {**values, "below": chat_row(db, chat).leaf})

        self._write(chat, None, write)

    def change_waiting(self, chat: str, id: int, text: str) -> None:
        """Another text for a message in the line; without one it leaves the line, with its files. What stood
        there is overwritten.
        """
        values = {"id": id, "chat": chat, "text": text}
        where = "WHERE (line.id, chat) = (:id, :chat)"

        def write(db: Database) -> None:
            if text:
                db.execute(f"UPDATE line SET text = :text {where}", values)
                return
            files = f"SELECT value FROM line, json_each(line.files) {where}"
            db.execute(f"DELETE FROM attachments WHERE message IS NULL AND id IN ({files})", values)
            db.execute(f"DELETE FROM line {where}", values)

        self._write(chat, None, write)
        self._place(chat).purge()

    def _write(self, chat: str, message: int | None, work: Callable[[Database], T]) -> T:
        """Work on a chat that is there, and on a message that is its."""

        def write(db: Database) -> T:
            chat_row(db, chat)
            if message is not None:
                message_row(db, chat, message)
            return work(db)

        return self._place(chat).transact(write)


def _numbered(title: str) -> str:
    """What tells a branch from where it begins: "Soup" becomes "Soup (2)", that "Soup (3)"."""
    found = re.fullmatch(r"(.+) \((\d{1,4})\)", title)
    stem, number = found.groups() if found else (title, 1)
    return f"{stem} ({int(number) + 1})" if stem else ""
