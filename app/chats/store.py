"""The chats on disk: what can be asked of them and written to them, each call one transaction.

What a call returned from is kept, whatever happens to the program. Private chats are in memory alone, in a
file of the same form: the ids of chats and messages say where they are. Who runs an answer, and what the
page shows, is chat.py's to know.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UnknownChat
from .database import Database, DatabaseFile
from .message_rows import GONE, chat_row, next_turn, remove_some
from .records import INTERRUPTED, PRIVATE, Chat
from .schema import FORM
from .tree import Tree

# one that nobody has decided anything about
UNUSED = """
    SELECT id FROM chats WHERE leaf IS NULL AND NOT deleted AND folder IS NULL AND preset = '' AND
    sampling = '{}' AND own_model = ''
"""
# of those that were coming in, as many as are removed in about 50 ms
HIDDEN = "SELECT id FROM chats WHERE deleted = 2 ORDER BY rowid DESC LIMIT 200"
CUT_OFF = "UPDATE messages SET finish = ? WHERE finish IS NULL"  # answers of a program that was killed
LAST_KEPT = 2**52  # ids of private messages are larger; a browser's numbers are exact up to 2**53


class ChatStore:
    """Any thread may call. `tree` has the messages; `notice` says what was found at the start, or ""."""

    def __init__(self, path: Path) -> None:
        self._file = DatabaseFile(path, FORM)
        self._file.transact(lambda db: db.execute(CUT_OFF, [INTERRUPTED]))
        self._memory: DatabaseFile | None = None  # the private ones, if there ever was one
        self._opening = threading.Lock()
        self.tree = Tree(self.place)

    @property
    def notice(self) -> str:
        return self._file.notice

    @property
    def file(self) -> DatabaseFile:
        """What is on disk, for those who keep or look up something of their own in it."""
        return self._file

    def chats(self) -> list[Chat]:
        """All chats, newest first, private ones before the others. Not those that wait to be deleted."""
        newest = "SELECT * FROM chats WHERE NOT deleted ORDER BY turn DESC, updated DESC"
        files = [self._memory, self._file] if self._memory else [self._file]
        rows = [row for file in files for row in file.read(lambda db: db.execute(newest).fetchall())]
        return [Chat(**row) for row in rows]

    def chat(self, id: str) -> Chat:
        """One chat. Raises UnknownChat."""
        return self.place(id).read(lambda db: chat_row(db, id))

    def exists(self, id: str) -> bool:
        """Whether there is this chat, or it waits to be deleted."""
        found = "SELECT 1 FROM chats WHERE id = ?"
        return self.place(id).read(lambda db: db.execute(found, [id]).fetchone()) is not None

    def private(self, model: str, system_prompt: str, date: str) -> Chat:
        """A chat without messages that is never written to the disk."""
        with self._opening:
            if self._memory is None:
                before = {"name": "messages", "seq": LAST_KEPT}
                self._memory = DatabaseFile(None, FORM)
                self._memory.transact(lambda db: db["sqlite_sequence"].insert(before))
        values = {"title": "", "model": model, "system_prompt": system_prompt, "date": date, "leaf": None}

        def write(db: Database) -> Chat:
            id = PRIVATE + uuid.uuid4().hex
            db["chats"].insert({"id": id, **values, "updated": time.time(), "turn": next_turn(db)}, pk="id")
            return chat_row(db, id)

        return self._memory.transact(write)

    def fresh(self, model: str, system_prompt: str, date: str) -> Chat:
        """A chat without messages: a new one, or one that was never used, as if it were made now."""

        def write(db: Database) -> Chat:
            empty = db.execute(UNUSED).fetchone()
            values = {"title": "", "model": model, "system_prompt": system_prompt, "date": date, "leaf": None}
            id = empty["id"] if empty else uuid.uuid4().hex
            db["chats"].upsert({"id": id, **values, "updated": time.time(), "turn": next_turn(db)}, pk="id")
            return chat_row(db, id)

        return self._file.transact(write)

    def change(self, id: str, **values: Any) -> None:
        """Give some of a chat's fields other values. Raises UnknownChat."""

        def write(db: Database) -> None:
            chat_row(db, id)
            names = ", ".join(f"{name} = :{name}" for name in values)
            db.execute(f"UPDATE chats SET {names} WHERE id = :id", {**values, "id": id})

        self.place(id).transact(write)

    def restore(self, id: str) -> None:
        """Take a chat back that waits to be deleted."""
        self._file.transact(lambda db: db.execute("UPDATE chats SET deleted = 0 WHERE id = ?", [id]))

    def hide(self, id: str) -> None:
        """Have a chat wait to be deleted. Raises UnknownChat."""

        def write(db: Database) -> None:
            if not db.execute("UPDATE chats SET deleted = 1 WHERE id = ?", [id]).rowcount:
                raise UnknownChat(GONE)

        self.place(id).transact(write)

    def delete(self, id: str) -> None:
        """Remove a chat. Raises UnknownChat."""
        self.hide(id)
        self.remove_hidden(id)

    def remove_hidden(self, id: str) -> None:
        """Remove a chat that was hidden; what it held is overwritten. Others can work in between."""
        while self.place(id).transact(lambda db: remove_some(db, "?", [id])):
            pass
        self.place(id).purge()

    def forget_hidden(self, tell: Callable[[float], None] = lambda share: None) -> None:
        """Remove chats that were coming in and shall not; of some there may be a part. Others can work in
        between; `tell` is given the share that is gone.
        """

        def count(db: Database) -> int:
            return int(db.execute("SELECT count(*) FROM chats WHERE deleted = 2").fetchone()[0])

        before = left = self._file.read(count)
        while left:
            tell(1 - left / before)
            self._file.transact(lambda db: remove_some(db, HIDDEN))
            left = self._file.read(count)
        if before:
            self._file.purge()

    def close(self) -> None:
        """Finish what was asked for and let go of the file."""
        if self._memory:
            self._memory.close()
        self._file.close()

    def place(self, id: str | int) -> DatabaseFile:
        """The file in which a chat or message is kept; "" is no chat yet."""
        is_private = id.startswith(PRIVATE) if isinstance(id, str) else id > LAST_KEPT
        return self._memory if is_private and self._memory else self._file
