"""The list of chats: pinned ones, folders, the archive, and a bin out of which a chat can be taken back for
some seconds.

What is in the bin is in no list and no search; when its time is up, or at the next start, it is deleted for
good. A private chat has no bin: it is gone when it is closed. What is said in chats is chat.py's to know.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from ..errors import AppError, StoreError, UnknownChat
from .chat import ChatService
from .database import Database
from .message_rows import GONE
from .records import MOST_FOLDERS, PROMPT_LENGTH
from .search import Hit, find
from .store import UNUSED, ChatStore
from .typed import name_of, sound
from .views import ChatSummary

UNDO_S = 12.0  # the page offers it for 10 seconds
LONGEST_SEARCH = 1_000
ARCHIVE = "archive"  # the place of archived chats; "" is that of chats in no folder
# in the bin, or prepared and never used
LEFT_OVER = f"SELECT id FROM chats WHERE deleted OR (leaf IS NULL AND id NOT IN ({UNUSED}))"


@dataclass(frozen=True, slots=True)
class Folder:
    """A place for chats. New ones in it begin with its system prompt, unless that is ""."""

    id: str
    name: str
    system_prompt: str
    chats: int


@dataclass(frozen=True, slots=True)
class ShelfView:
    """The first rows of one place, and what stands around them."""

    place: str  # a folder's id, ARCHIVE or ""
    rows: tuple[ChatSummary, ...]
    total: int  # rows there are
    folders: tuple[Folder, ...]
    archived: int
    busy: tuple[str, ...]  # all chats that answer
    here: ChatSummary | None  # the chat on screen, wherever it stands


class Shelf:
    """Any thread may call. Errors are AppErrors whose text is for the person."""

    def __init__(self, chats: ChatService, store: ChatStore) -> None:
        self._chats, self._store = chats, store
        self._read: tuple[int, dict[str, ChatSummary], tuple[Folder, ...]] = (-1, {}, ())
        self._bin: dict[str, threading.Timer] = {}
        self._lock = threading.Lock()  # guards the bin

    def look(self, place: str, num_rows: int, here: str) -> ShelfView:
        """The first rows of a place; of "" if it is not there any more."""
        chats, folders = self._all()
        busy = self._chats.busy_chats()
        place = place if place == ARCHIVE or any(place == folder.id for folder in folders) else ""
        rows = [chat for chat in chats.values() if chat.said and _place(chat, place)]
        rows.sort(key=lambda chat: (not chat.private, not chat.pinned))  # stable: the newest first in each
        marked = [replace(row, busy=row.id in busy) for row in rows[:num_rows]]
        mine = chats.get(here)
        return ShelfView(
            place=place,
            rows=tuple(marked),
            total=len(rows),
            folders=folders,
            archived=sum(chat.archived and chat.said for chat in chats.values()),
            busy=tuple(sorted(busy)),
            here=mine and replace(mine, busy=here in busy),
        )

    # ---- chats

    def new(self, folder: str = "", private: bool = False) -> str:
        """A chat without messages: in a folder, with its system prompt, or in memory alone. Its id."""
        if private:
            return self._chats.new_chat(private=True)
        prompt = self._folder(folder).system_prompt
        chat = self._chats.new_chat()
        self._change(chat, folder=folder, **({"system_prompt": prompt} if prompt else {}))
        return chat

    def pin(self, chat: str, pinned: bool) -> None:
        """Have a chat stand first, or where its age puts it."""
        self._change(chat, pinned=int(pinned))

    def archive(self, chat: str, archived: bool) -> None:
        """Put a chat away, or back into the list."""
        self._change(chat, archived=int(archived))

    def move(self, chat: str, folder: str) -> None:
        """Put a chat into a folder; "" takes it out."""
        self._change(chat, folder=self._folder(folder).id if folder else None)

    def discard(self, chat: str) -> None:
        """Put a chat into the bin, ending its answers; a private one is gone at once."""
        if self._store.chat(chat).is_private:
            return self._chats.delete(chat)
        self._chats.stop(chat)
        self._change(chat, deleted=1)
        timer = threading.Timer(UNDO_S, self._purge, [chat])
        timer.daemon = True
        with self._lock:
            self._bin[chat] = timer
        timer.start()

    def restore(self, chat: str) -> None:
        """Take a chat back out of the bin. Raises UnknownChat when its time is up."""
        with self._lock:
            if (timer := self._bin.pop(chat, None)) is None:
                raise UnknownChat(GONE)
            timer.cancel()
        self._store.restore(chat)
        self._chats.note_change(chat)

    def start(self) -> None:
        """Delete for good what was in the bin when the program ended, in a thread of its own."""
        threading.Thread(target=self._sweep, name="octavo-shelf", daemon=True).start()

    def close(self) -> None:
        """Empty the bin."""
        with self._lock:
            waiting = list(self._bin)
        for chat in waiting:
            self._purge(chat)

    def search(self, text: str) -> list[Hit]:
        """Chats and messages in which these words stand; never those of private chats."""
        return self._store.file.read(lambda db: find(db, text[:LONGEST_SEARCH]))

    # ---- folders

    def make_folder(self, name: str) -> str:
        """An empty folder; its id."""
        id, name = uuid.uuid4().hex, self._free_name("", name)
        row = {"id": id, "name": name, "system_prompt": ""}
        self._write(lambda db: db["folders"].insert(row))
        return id

    def change_folder(self, id: str, name: str, system_prompt: str) -> None:
        """Another name for a folder, and what new chats in it begin with."""
        if len(system_prompt) > PROMPT_LENGTH:
            raise AppError(f"This text has {len(system_prompt):,} characters; at most {PROMPT_LENGTH:,} fit.")
        values = [self._free_name(self._folder(id).id, name), sound(system_prompt), id]
        change = "UPDATE folders SET name = ?, system_prompt = ? WHERE id = ?"
        self._write(lambda db: db.execute(change, values))

    def delete_folder(self, id: str) -> None:
        """Take a folder away; its chats go back into the list."""
        found = self._folder(id).id
        self._write(lambda db: db.execute("DELETE FROM folders WHERE id = ?", [found]))

    # ---- inside

    def _all(self) -> tuple[dict[str, ChatSummary], tuple[Folder, ...]]:
        """All chats by id, newest first, without who is busy; read again only after a change."""
        writes = self._chats.writes
        if self._read[0] != writes:
            chats = {chat.id: chat for chat in self._chats.summaries()}
            inside = [chat.folder for chat in chats.values() if chat.said and not chat.archived]
            rows = self._store.file.read(lambda db: db.execute("SELECT * FROM folders").fetchall())
            found = [Folder(**row, chats=inside.count(row["id"])) for row in rows]
            self._read = writes, chats, tuple(sorted(found, key=lambda folder: folder.name.casefold()))
        return self._read[1:]

    def _folder(self, id: str) -> Folder:
        for folder in self._all()[1]:
            if folder.id == id:
                return folder
        raise AppError("This folder does not exist any more.")

    def _free_name(self, id: str, name: str) -> str:
        name = name_of(name)
        folders = self._all()[1]
        if any(folder.name.casefold() == name.casefold() and folder.id != id for folder in folders):
            raise AppError(f"There is a folder “{name}” already.")
        if not id and len(folders) >= MOST_FOLDERS:
            raise AppError(f"There are {len(folders)} folders; at most {MOST_FOLDERS} are kept.")
        return name

    def _change(self, chat: str, **values: object) -> None:
        self._store.change(chat, **values)
        self._chats.note_change(chat)

    def _write(self, work: Callable[[Database], object]) -> None:
        self._store.file.transact(work)
        self._chats.note_change("")

    def _purge(self, chat: str) -> None:
        with self._lock:
            if self._bin.pop(chat, None) is None:  # taken back at this moment
                return
        self._remove(chat)

    def _remove(self, chat: str) -> None:
        with suppress(UnknownChat, StoreError):  # gone, or the disk is full: the next start tries again
            self._chats.delete(chat)

    def _sweep(self) -> None:
        try:
            rows = self._store.file.read(lambda db: db.execute(LEFT_OVER).fetchall())
        except StoreError:  # the program ends already
            return
        for row in rows:
            self._remove(row["id"])
        with suppress(StoreError):
            self._chats.attachments.sweep()  # files of drafts of long ago
            self._chats.forget_deleted()


def _place(chat: ChatSummary, place: str) -> bool:
    """Whether a chat stands there. Archived: in the archive alone; pinned: also in front of all."""
    if chat.archived or place == ARCHIVE:
        return chat.archived and place == ARCHIVE
    return chat.folder == place or (chat.pinned and not place)
