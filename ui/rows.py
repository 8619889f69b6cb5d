"""A chat as the page shows it: Chatbot rows, and beside them a view of plain data for our own parts of the
page.

One row for each message. What belongs to a message but is not its text (figures, errors) goes into the
view's notes, so that a copied answer holds the answer and nothing else. Knows no Gradio; text is data here,
the browser sanitises it.
"""

from __future__ import annotations

import dataclasses
import html
import json
import re
from collections.abc import Sequence
from typing import Any

from app import ChatView, MessageView, Waiting, described

from .mathtext import marked

WAITING = '<span class="waiting"></span>'  # three dots, drawn by talk.css
NOTHING = "<span></span>"  # the Chatbot leaves out what is empty, and the notes are counted by its rows
# a line that opens so many quotes and lists, one within the other, is none: Markdown in a browser descends
# once for each, and shows nothing at all of some thousands
DEEP = re.compile(r"^(?:[ \t]*+(?:>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))){50}", re.MULTILINE)
# what Markdown or KaTeX would take for theirs in what the person wrote; a newline becomes a character
# reference, since an empty line would end the HTML block
_LITERAL = {ord(sign): f"&#{ord(sign)};" for sign in "\n$\\`*_[]~"}


def row(message: MessageView) -> dict[str, Any]:
    """What the person wrote is shown letter by letter; an answer is Markdown with formulas."""
    text = message.text
    if message.role == "user":
        text = f'<div class="said">{html.escape(text).translate(_LITERAL)}</div>'
    elif not text:  # what it thinks is shown in a place of its own, with dots of its own
        text = WAITING if message.streaming and not message.thoughts else NOTHING
    else:
        text = _as_written(text) if DEEP.search(text) else marked(text)
    return {"role": message.role, "content": {"type": "text", "text": text}}


def _as_written(text: str) -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def apart(messages: Sequence[MessageView]) -> tuple[tuple[MessageView, ...], tuple[MessageView, ...]]:
    """What was said before the last turn, and that turn. They are shown by a Chatbot each: it draws all that
    it has whenever it is given something, and while an answer grows only the last turn changes.
    """
    questions = [place for place, message in enumerate(messages) if message.role == "user"]
    start = questions[-1] if questions else 0
    return tuple(messages[:start]), tuple(messages[start:])


def note(message: MessageView) -> dict[str, Any]:
    """What stands under a message."""
    return {
        "id": message.id,
        "role": message.role,
        "text": bool(message.text),
        "streaming": message.streaming,
        "reading": message.reading,
        "finish": message.finish_reason,
        "error": message.error,
        "stats": dataclasses.asdict(message.stats) if message.stats else None,
        "thoughts": dataclasses.asdict(message.thoughts) if message.thoughts else None,
        "versions": message.versions,
        "beside": message.beside,
        "model": message.model,
        "files": [described(file) for file in message.files],
    }


def summary(view: ChatView, busy: bool) -> dict[str, Any]:
    """The view without the texts.

    The notes go out as text: Gradio follows, copies and compares every value within what it is given, each
    time, and text is one value.
    """
    before, turn = (json.dumps([note(message) for message in part]) for part in apart(view.messages))
    return {
        "chat": view.id,
        "title": view.title,
        "busy": busy,
        "earlier": view.earlier,
        "used": view.context_used,
        "limit": view.context_limit,
        "before": before,
        "turn": turn,
        "line": [_waits(waiting) for waiting in view.line],
    }


def _waits(waiting: Waiting) -> dict[str, Any]:
    """A message in the line; `lost`: a file of it is gone, so it can't be sent."""
    files = [described(file) for file in waiting.given]
    return {"id": waiting.id, "text": waiting.text, "files": files, "lost": len(files) < len(waiting.files)}
