"""What the list of chats and the search may ask for (assets/rail/rail.js, search.js).

A tab sees as many rows as it has scrolled to, of the place that it has open.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .acts import act, told

MOST_ROWS = 5_000


def look(page: Any, data: Any) -> dict[str, Any]:
    """What a tab sees of the list, and the chat on its screen."""
    rows = min(max(told(data, "rows", 100), 1), MOST_ROWS)
    view = page.shelf.look(told(data, "place", ""), rows, told(data, "chat", ""))
    shelf = dataclasses.asdict(view)
    return {"chats": shelf.pop("rows"), "shelf": shelf}


def _search(page: Any, text: str) -> dict[str, Any]:
    return {"hits": [dataclasses.asdict(hit) for hit in page.shelf.search(text)]}


def _reach(page: Any, chat: str, message: int) -> dict[str, Any]:
    """Put a message on screen, if need be its branch; how many of the last messages that takes."""
    return {"last": page.chats.reach(chat, message)}


ACTS = {
    "new": act(lambda page, folder: {"chat": page.shelf.new(folder)}, folder=str),
    "new_private": act(lambda page: {"chat": page.shelf.new(private=True)}),
    "rename": act(lambda page, chat, title: page.chats.rename(chat, title), chat=str, title=str),
    "pin": act(lambda page, chat, on: page.shelf.pin(chat, on), chat=str, on=bool),
    "archive": act(lambda page, chat, on: page.shelf.archive(chat, on), chat=str, on=bool),
    "move": act(lambda page, chat, folder: page.shelf.move(chat, folder), chat=str, folder=str),
    "delete": act(lambda page, chat: page.shelf.discard(chat), chat=str),
    "restore": act(lambda page, chat: page.shelf.restore(chat), chat=str),
    "new_folder": act(lambda page, name: {"folder": page.shelf.make_folder(name)}, name=str),
    "change_folder": act(
        lambda page, folder, name, prompt: page.shelf.change_folder(folder, name, prompt),
        folder=str,
        name=str,
        prompt=str,
    ),
    "delete_folder": act(lambda page, folder: page.shelf.delete_folder(folder), folder=str),
    "search": act(_search, text=str),
    "reach": act(_reach, chat=str, message=int),
}
