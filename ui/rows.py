"""A chat as the page shows it: Chatbot rows, and beside them a view of plain data for our own parts of the
page.

One row for each message. What belongs to a message but is not its text (figures, errors) goes into the
view's notes, so that a copied answer holds the answer and nothing else. Knows no Gradio; text is data here,
the browser sanitises it.
"""

from __future__ import annotations

import dataclasses
import html
from typing import Any

from app import ChatView, MessageView

WAITING = '<span class="waiting"></span>'  # three dots, drawn by talk.css
NOTHING = "<span></span>"  # the Chatbot leaves out what is empty, and the notes are counted by its rows
# what Markdown or KaTeX would take for theirs in what the person wrote; a newline becomes a character
# reference, since an empty line would end the HTML block
_LITERAL = {ord(sign): f"&#{ord(sign)};" for sign in "\n$\\`*_[]~"}


def row(message: MessageView) -> dict[str, Any]:
    """What the person wrote is shown letter by letter; an answer is Markdown."""
    text = message.text
    if message.role == "user":
        text = f'<div class="said">{html.escape(text).translate(_LITERAL)}</div>'
    elif not text:
        text = WAITING if message.streaming else NOTHING
    return {"role": message.role, "content": {"type": "text", "text": text}}


def note(message: MessageView) -> dict[str, Any]:
    """What stands under a message."""
    return {
        "id": message.id,
        "role": message.role,
        "text": bool(message.text),
        "streaming": message.streaming,
        "finish": message.finish_reason,
        "error": message.error,
        "stats": dataclasses.asdict(message.stats) if message.stats else None,
    }


def summary(view: ChatView, busy: bool) -> dict[str, Any]:
    """The view without the texts."""
    return {
        "chat": view.id,
        "title": view.title,
        "busy": busy,
        "earlier": view.earlier,
        "used": view.context_used,
        "limit": view.context_limit,
        "notes": [note(message) for message in view.messages],
    }
