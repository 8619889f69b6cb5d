"""What a page may see of the chats: frozen pictures of one moment.

Times in seconds since 1970, context in tokens. How they come about is chat.py's.
"""

from __future__ import annotations

from dataclasses import dataclass

from .answer import Answer
from .records import INTERRUPTED, ReplyStats, StoredMessage


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A line in the list of chats. `updated` in seconds since 1970; a title of "" is the page's to word."""

    id: str
    title: str
    updated: float
    busy: bool
    model: str


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as it is shown. `finish_reason` is None for the user's, and while it grows."""

    id: int
    role: str
    text: str
    finish_reason: str | None
    error: str
    stats: ReplyStats | None
    streaming: bool


@dataclass(frozen=True, slots=True)
class ChatView:
    """A chat as it is shown: its last messages, and how many stand above them. Context in tokens."""

    id: str
    title: str
    messages: tuple[MessageView, ...]
    earlier: int  # messages above those
    busy: bool
    version: int
    model: str
    context_used: int
    context_limit: int  # 0 until the model is loaded
    status: str  # why nothing comes yet, or ""


def shown(message: StoredMessage, answer: Answer | None = None, beginning: bool = False) -> MessageView:
    """A stored message, or what there is of it while its answer begins or grows."""
    reply, trouble = (answer.reply, answer.trouble) if answer else (message.reply, "")
    growing = reply.finish is None and (answer is not None or beginning)
    finish = None if message.role == "user" or growing else reply.finish or INTERRUPTED
    error = reply.error or trouble
    return MessageView(message.id, message.role, reply.text, finish, error, reply.stats, growing)
