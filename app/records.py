"""What is kept of a chat: its facts, its messages, and what an answer cost. How they are kept is store.py's.

Messages form a tree: each but the first has a parent, and a chat's `leaf` names the last message of the
branch on screen.
"""

from __future__ import annotations

from dataclasses import dataclass

INTERRUPTED = "interrupted"  # a finish reason of our own: the program ended before the answer did


@dataclass(frozen=True, slots=True)
class ReplyStats:
    """What is shown under an answer."""

    tokens: int
    tokens_per_s: float
    first_token_s: float
    cached_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat without its messages. Times in seconds since 1970, for show; `turn` gives the order."""

    id: str
    title: str
    model: str
    system_prompt: str
    date: str  # what templates take for today, fixed when the chat is made
    updated: float
    turn: int
    leaf: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as far as it has come. `finish` is None while it grows."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    tokenizer: str = ""  # the fingerprint that token_ids are valid for
    finish: str | None = None
    error: str = ""
    stats: ReplyStats | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of the tree; `depth` counts its ancestors."""

    id: int
    parent: int | None
    depth: int
    role: str
    reply: Reply  # a user's message has only its text

    @property
    def text(self) -> str:
        return self.reply.text
