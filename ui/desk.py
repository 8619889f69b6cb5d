"""What the place where one writes may ask for: sending, files, what a message costs, summing up.

Its scripts are assets/desk/desk.js and those that shell.py puts before it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from app import AppError, described

from .acts import act
from .talk import comparison


def _ids(given: list[Any]) -> list[str]:
    if not all(isinstance(each, str) for each in given):
        raise AppError("The page sent something of a wrong kind. Reload it.")
    return given


def _send(page: Any, chat: str, text: str, files: list[Any], compared: dict[str, Any]) -> dict[str, Any]:
    """A message; from a blank page, where `chat` is "", the first of a chat of its own."""
    return {"chat": page.chats.send(chat, text, _ids(files), comparison(compared))}


def _again(page: Any) -> None:
    """Load the model once more; after a fault of the engine the whole program starts again."""
    if page.runtime.status().state in ("missing", "failed"):
        page.runtime.start()
    else:
        page.restart()


def _cost(page: Any, chat: str, text: str, files: list[Any]) -> dict[str, Any]:
    """What a message would cost; where it hardly fits, also how much of the chat could be summed up."""
    cost = page.chats.writing.cost(chat, text, _ids(files))
    is_tight = cost.problem or cost.limit - cost.tokens < cost.answer
    return {
        **dataclasses.asdict(cost),
        "files": [described(file) for file in cost.files],
        "older": page.chats.writing.context(chat).older if is_tight else 0,
    }


def _context(page: Any, chat: str) -> dict[str, Any]:
    return dataclasses.asdict(page.chats.writing.context(chat))


def _compacting(page: Any, chat: str) -> dict[str, Any]:
    """How far summing up is, and how it ended."""
    job = page.chats.writing.compactor.state(chat)
    if job is None:
        return {"state": "none"}
    ended = "done" if job.kept and not job.error else "failed"
    state = ended if job.ended.is_set() else "running"
    messages = page.chats.writing.context(chat).summed_up if state == "done" else job.messages
    return {"state": state, "messages": messages, "tokens": job.tokens, "error": job.error}


def _gone(page: Any, chats: list[Any]) -> dict[str, Any]:
    """Those of some chats that are gone for good, and with them what was written in them."""
    return {"gone": page.chats.gone(_ids(chats)[:1000])}


ACTS = {
    "send": act(_send, chat=str, text=str, files=list, compared=dict),
    "stop": act(lambda page, chat: page.chats.turns.stop(chat), chat=str),
    "again": act(_again),
    "drop": act(lambda page, chat, file: page.chats.attachments.drop(chat, file), chat=str, file=str),
    "cost": act(_cost, chat=str, text=str, files=list),
    "context": act(_context, chat=str),
    "compact": act(lambda page, chat: page.chats.writing.compactor.start(chat), chat=str),
    "compacting": act(_compacting, chat=str),
    "stop_compacting": act(lambda page, chat: page.chats.writing.compactor.stop(chat), chat=str),
    "uncompact": act(lambda page, chat: page.chats.writing.compactor.undo(chat), chat=str),
    "gone": act(_gone, chats=list),
}
