"""What a page may see of the chats: frozen pictures of one moment.

Times in seconds since 1970, context in tokens. How they come about is chat.py's.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine import Split

from .answer import Answer
from .records import INTERRUPTED, Attachment, Chat, ReplyStats, StoredMessage, Waiting


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A line in the list of chats. `updated` in seconds since 1970; a title of "" is the page's to word."""

    id: str
    title: str
    updated: float
    busy: bool
    model: str
    said: bool  # something was, in it
    pinned: bool
    archived: bool
    folder: str  # "": in none
    private: bool  # kept in memory alone


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What an answer thought before it: for how long, and whether it still does. Its text is asked for."""

    seconds: float
    growing: bool
    length: int  # characters


@dataclass(frozen=True, slots=True)
class MessageView:
    """A message as it is shown. `finish_reason` is None for the user's, and while it grows.

    `text` is without its thoughts.
    """

    id: int
    role: str
    text: str
    finish_reason: str | None
    error: str
    stats: ReplyStats | None
    streaming: bool
    thoughts: Thoughts | None = None
    versions: tuple[int, ...] = ()  # this message and those that stand in its place, oldest first
    beside: bool = False  # one of the answers that stand side by side
    model: str = ""  # the name of who answered
    files: tuple[Attachment, ...] = ()  # given with it
    reading: tuple[int, int] | None = None  # before its first word: tokens that are read, of how many


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
    line: tuple[Waiting, ...] = ()  # messages that wait until the answer has ended


def summary(chat: Chat) -> ChatSummary:
    """A chat as a line in the list, not knowing whether it is busy."""
    said, folder = chat.leaf is not None, chat.folder or ""
    marks = bool(chat.pinned), bool(chat.archived), folder, chat.is_private
    return ChatSummary(chat.id, chat.title, chat.updated, False, chat.model, said, *marks)


def shown(
    message: StoredMessage, answer: Answer | None = None, beginning: bool = False, beside: bool = False
) -> MessageView:
    """A stored message, or what there is of it while its answer begins or grows."""
    reply, trouble = (answer.reply, answer.trouble) if answer else (message.reply, "")
    growing = reply.finish is None and (answer is not None or beginning)
    is_user = message.role == "user"
    seconds = answer.thought_s if answer else reply.stats.thought_s if reply.stats else 0.0
    text, thoughts = (reply.text, None) if is_user else _apart(reply.text, seconds, growing)
    return MessageView(
        id=message.id,
        role=message.role,
        text=text,
        finish_reason=None if is_user or growing else reply.finish or INTERRUPTED,
        error=reply.error or trouble,
        stats=reply.stats,
        streaming=growing,
        thoughts=thoughts,
        versions=message.versions,
        beside=beside,
        model=message.model,
        files=message.files,
        reading=answer.reading if answer else None,
    )


def _apart(text: str, seconds: float, growing: bool) -> tuple[str, Thoughts | None]:
    """An answer, and the thoughts before it."""
    parts = Split.of(text)
    thinking = growing and parts.thinking
    if not parts.thoughts and not thinking:
        return parts.answer, None
    return parts.answer, Thoughts(round(seconds, 1), thinking, len(parts.thoughts))
