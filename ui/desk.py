"""What the place where one writes may ask for (assets/desk.js)."""

from __future__ import annotations

from typing import Any

from .acts import act


def _send(page: Any, chat: str, text: str) -> dict[str, Any]:
    """A message; from a blank page, where `chat` is "", the first of a chat of its own."""
    return {"chat": page.chats.send(chat, text)}


def _again(page: Any) -> None:
    """Load the model once more; after a fault of the engine the whole program starts again."""
    if page.runtime.status().state in ("missing", "failed"):
        page.runtime.start()
    else:
        page.restart()


ACTS = {
    "send": act(_send, chat=str, text=str),
    "stop": act(lambda page, chat: page.chats.stop(chat), chat=str),
    "again": act(_again),
}
