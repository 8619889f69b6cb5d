"""What is kept of a chat: its facts, its messages, and what an answer cost. How they are kept is store.py's.

Messages form a tree: each but the first has a parent, those with the same parent are versions of each
other, and a chat's `leaf` names the last message of the branch on screen.
"""

from __future__ import annotations

from dataclasses import dataclass

PRIVATE = "private-"  # how the ids of chats begin that are never written to the disk
MOST_FOLDERS = 200
TITLE_LENGTH, NAME_LENGTH, PROMPT_LENGTH = 200, 100, 100_000  # characters; names of folders and presets
INTERRUPTED = "interrupted"  # a finish reason of our own: the program ended before the answer did


@dataclass(frozen=True, slots=True)
class ReplyStats:
    """What is shown under an answer."""

    tokens: int
    tokens_per_s: float
    first_token_s: float
    cached_tokens: int
    prompt_tokens: int
    thought_s: float = 0.0
    temperature: float | None = None  # where it is what tells it from the answers beside it


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
    pinned: int = 0
    archived: int = 0
    folder: str | None = None
    deleted: int = 0  # it waits until nobody can want it back
    preset: str = ""  # the name of the one that its settings were taken from
    sampling: str = "{}"  # JSON: what it decides for itself
    own_model: str = ""  # the model it asks for; `model` is who answered last
    origin: str = ""  # of an imported chat

    @property
    def is_private(self) -> bool:
        """Whether it is kept in memory alone."""
        return self.id.startswith(PRIVATE)

    @property
    def owner(self) -> str:
        """With whom it may share memory: with all chats of the person; a private one with no other."""
        return self.id if self.is_private else "person"


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
    model: str = ""  # who answered
    beside: int | None = None  # the first of the answers it is compared with, until one of them is picked
    versions: tuple[int, ...] = ()  # all messages below its parent, this one among them, oldest first
    files: tuple[Attachment, ...] = ()  # given with it

    @property
    def text(self) -> str:
        return self.reply.text


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be answered: a new message below another, or, without a text, that other once more."""

    below: int | None  # None: the chat's first message
    text: str | None = None
    waited: int | None = None  # the message's place in the line, which it leaves
    files: tuple[str, ...] = ()  # ids of what is given with the text


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message in the line: it is sent when the answer that grows has ended."""

    id: int
    text: str
    files: tuple[str, ...] = ()  # ids of what is given with it
    below: int | None = None  # the message that it was written under, None where that is gone
    given: tuple[Attachment, ...] = ()  # those of the files that are there


@dataclass(frozen=True, slots=True)
class OpenChat:
    """A chat with all that its page shows."""

    chat: Chat
    branch: tuple[StoredMessage, ...]  # oldest first
    beside: tuple[StoredMessage, ...]  # answers side by side, the branch's last among them; mostly none
    line: tuple[Waiting, ...]
    summary: Summary | None = None  # what stands for the branch's first messages


@dataclass(frozen=True, slots=True)
class Attachment:
    """A document that was given with a message. `unit` is what a part of it is: "page", "paragraph", "line".

    `given` is what the model gets of it, None until that was chosen; `parts` are the first and last of each
    run of parts in that, none where it is the whole document.
    """

    id: str
    name: str
    hash: str
    size: int  # bytes
    unit: str
    count: int  # parts
    blank: int  # of these, without text
    given: str | None = None
    parts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for a branch's first messages, up to one of them, when the model is asked."""

    message: int  # the last that it stands for
    text: str
    token_ids: tuple[int, ...]
    tokenizer: str
