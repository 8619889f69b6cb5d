"""Chats as files: GET /export/ID.md, ID.json, chats.json (all) and chats.zip (all, a Markdown file each).

JSON has the whole tree with all versions, as docs/EXPORT.md describes it, and can be imported again; Markdown
has the branch on screen. Both are written chat by chat, however many there are. Private chats are exported
one by one, when somebody asks for them, never with the others.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from engine import Split

from ..documents.attachments import Attachments
from ..documents.context import in_runs
from ..errors import AppError, StoreError, UnknownChat
from .records import Attachment, Chat, StoredMessage
from .store import ChatStore

if TYPE_CHECKING:
    from ..services import Services

FORMAT, VERSION = "octavo", 1
PATH = "/export/{name}"
KINDS = {"json": "application/json", "md": "text/markdown; charset=utf-8", "zip": "application/zip"}
TREE = "SELECT id, parent, role, text, model, finish, error, stats FROM messages WHERE chat = ? ORDER BY id"
FILES = """
    SELECT message, name, size, hash AS document, given, parts FROM attachments
    WHERE chat = ? AND message IS NOT NULL ORDER BY place
"""
DOCUMENTS = "SELECT DISTINCT chat, hash FROM attachments WHERE message IS NOT NULL ORDER BY rowid"
Named = Callable[[str], str]  # what people call a model that has this id
UNSAFE = re.compile(r'[\x00-\x1f<>:"/\\|?*\u202a-\u202e\u2066-\u2069]+')
NAME_LENGTH = 80


def export_routes(services: Services) -> list[BaseRoute]:
    """The route of all exports."""

    def give(request: Request) -> Response:
        name, _, kind = request.path_params["name"].rpartition(".")
        if kind not in KINDS:
            return PlainTextResponse("Octavo exports .json, .md and .zip.", 404)
        store, files, named = services.store, services.chats.attachments, services.runtime.name
        try:
            file_name, content = (
                whole(store, files, kind, named) if name == "chats" else one(store, files, name, kind, named)
            )
        except (UnknownChat, StoreError) as error:
            return PlainTextResponse(str(error), 404)
        there = f"attachment; filename*=UTF-8''{quote(file_name)}"
        return StreamingResponse(content, media_type=KINDS[kind], headers={"content-disposition": there})

    return [Route(PATH, give, methods=["GET"])]


def one(
    store: ChatStore, files: Attachments, id: str, kind: str, named: Named = str
) -> tuple[str, Iterator[str]]:
    """A chat as a file: its name and its text. Raises UnknownChat."""
    chat = store.chat(id)
    if kind == "zip":
        raise UnknownChat("A chat is exported as .json or .md.")
    if kind == "json":
        return f"{_file_name(chat)}.json", _document(store, files, [id])
    return f"{_file_name(chat)}.md", iter([markdown(chat, store.tree.open(id).branch, named)])


def whole(
    store: ChatStore, files: Attachments, kind: str, named: Named = str
) -> tuple[str, Iterator[str] | Iterator[bytes]]:
    """All chats as a file: its name and its content."""
    ids = [chat.id for chat in store.chats() if chat.leaf is not None and not chat.is_private]
    day = time.strftime("%Y-%m-%d")
    if kind == "json":
        return f"octavo-{day}.json", _document(store, files, ids)
    return f"octavo-{day}.zip", _archive(store, ids, named)


def markdown(chat: Chat, branch: tuple[StoredMessage, ...], named: Named) -> str:
    """The branch on screen, for people."""
    day = time.strftime("%Y-%m-%d", time.localtime(chat.updated))
    parts = [f"# {chat.title or 'New chat'}", f"*{day}, {named(chat.model)}*" if chat.model else f"*{day}*"]
    if chat.system_prompt:
        parts.append("\n".join(f"> {line}" for line in chat.system_prompt.splitlines()))
    for message in branch:
        if message.role == "user":
            parts += ["## You", message.text, *map(_file, message.files)]
            continue
        said = Split.of(message.text)
        parts.append("## Answer")
        if said.thoughts:
            parts.append(f"<details><summary>Thoughts</summary>\n\n{said.thoughts.strip()}\n\n</details>")
        parts += [said.answer.strip(), *([f"*{message.reply.error}*"] if message.reply.error else [])]
    return "\n\n".join(parts) + "\n"


def _file(file: Attachment) -> str:
    """A file, and which parts of it the model had."""
    is_read = file.parts and file.parts != ((0, 0),)
    return f"*File: {file.name}{f', {in_runs(file.unit, file.parts)} of {file.count}' if is_read else ''}*"


def _document(store: ChatStore, files: Attachments, ids: list[str]) -> Iterator[str]:
    """The JSON text, a document or chat at a time; one that is deleted meanwhile is left out."""
    folders = store.file.read(lambda db: dict(db.execute("SELECT id, name FROM folders").fetchall()))
    about = {
        "format": FORMAT,
        "version": VERSION,
        "exported": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    yield json.dumps(about, indent=1).removesuffix("\n}")
    lists = {
        "documents": _texts(files, _hashes(store, ids)),
        "chats": _each(ids, lambda id: _chat(store, id, folders)),
    }
    for name, values in lists.items():
        yield f',\n "{name}": ['
        separator = "\n"
        for value in values:
            yield separator + json.dumps(value, ensure_ascii=False)
            separator = ",\n"
        yield "\n ]"
    yield "\n}\n"


def _hashes(store: ChatStore, ids: list[str]) -> list[str]:
    """Of the documents that some chats of one place have."""
    wanted = set(ids)
    rows = store.place(ids[0]).read(lambda db: db.execute(DOCUMENTS).fetchall()) if ids else []
    return list(dict.fromkeys(row["hash"] for row in rows if row["chat"] in wanted))


def _texts(files: Attachments, hashes: list[str]) -> Iterator[dict[str, Any]]:
    for hash in hashes:
        with suppress(AppError):  # it is gone, or can't be read any more
            text = files.document(hash)
            yield {"id": hash, "unit": text.unit, "parts": text.parts}


def _chat(store: ChatStore, id: str, folders: dict[str, str]) -> dict[str, Any]:
    chat = store.chat(id)
    rows, files = store.place(id).read(
        lambda db: (db.execute(TREE, [id]).fetchall(), db.execute(FILES, [id]).fetchall())
    )
    given: dict[int, list[dict[str, Any]]] = {}
    for row in files:
        file = {name: value for name, value in dict(row).items() if name != "message" and value is not None}
        given.setdefault(row["message"], []).append({**file, "parts": json.loads(row["parts"])})
    messages = []
    for row in rows:
        message = {name: value for name, value in dict(row).items() if value not in (None, "")}
        if "stats" in message:
            message["stats"] = json.loads(message["stats"])
        if row["id"] in given:
            message["files"] = given[row["id"]]
        messages.append(message)
    return {
        "id": chat.id,
        "title": chat.title,
        "updated": chat.updated,
        "date": chat.date,
        "model": chat.model,
        "system_prompt": chat.system_prompt,
        "sampling": json.loads(chat.sampling),
        "own_model": chat.own_model,
        "preset": chat.preset,
        "folder": folders.get(chat.folder or "", ""),
        "pinned": bool(chat.pinned),
        "archived": bool(chat.archived),
        "shown": chat.leaf,
        "messages": messages,
    }


def _archive(store: ChatStore, ids: list[str], named: Named) -> Iterator[bytes]:
    """The zip file, as far as it is written after each chat."""
    made, taken = _Outlet(), set()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for chat, text in _each(ids, lambda id: _marked_down(store, id, named)):
            name, number = _file_name(chat), 1
            while (full := f"{name} {number}" if number > 1 else name).casefold() in taken:
                number += 1
            taken.add(full.casefold())
            archive.writestr(f"{full}.md", text)
            yield made.take()
    yield made.take()


def _marked_down(store: ChatStore, id: str, named: Named) -> tuple[Chat, str]:
    found = store.tree.open(id)
    return found.chat, markdown(found.chat, found.branch, named)


def _each(ids: list[str], make: Callable[[str], Any]) -> Iterator[Any]:
    for id in ids:
        try:
            found = make(id)
        except UnknownChat:
            continue
        yield found


def _file_name(chat: Chat) -> str:
    """The title as a file's name, on every system."""
    name = " ".join(UNSAFE.sub(" ", chat.title).split())[:NAME_LENGTH].strip(". ")
    return name or "chat"


class _Outlet(io.RawIOBase):
    """A file that is only written, and emptied now and then."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def take(self) -> bytes:
        """What was written since the last time."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
