"""The nouns that cross the engine's border: what is asked, what streams back, how it ends, how busy it is.

Frozen dataclasses, standard library only. Times are in seconds, sizes in bytes, lengths in tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

from .errors import BadRequest


class FinishReason(StrEnum):
    """Why a request ended. Every request ends with one of these."""

    STOP = "stop"  # the model ended its answer, or a stop string came
    LENGTH = "length"  # max_tokens, or the context is full
    CANCELLED = "cancelled"  # someone asked for it
    ERROR = "error"  # see Finish.error


class Priority(IntEnum):
    """Who goes first when not all can: smaller is sooner. Waiting raises a request's priority with time."""

    FOREGROUND = 0  # the chat on screen
    CHAT = 1
    API = 2
    BACKGROUND = 3


# name -> (least, most) of what a request may ask for
LIMITS = {
    "temperature": (0.0, 5.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "top_k": (0, 1_000_000),
    "repetition_penalty": (0.01, 10.0),
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
    "max_tokens": (1, 2**31 - 1),
}
MAX_STOPS, MAX_STOP_LENGTH = 16, 256
THINKS, THOUGHT = "<think>", "</think>"  # around what a model thinks, in every family served that does


@dataclass(frozen=True, slots=True)
class Split:
    """A reply's two halves. `thinking`: the thoughts have no end yet."""

    thoughts: str
    answer: str
    thinking: bool

    @staticmethod
    def of(text: str) -> Split:
        """What was thought, and what is said. A text that does not begin with thoughts is an answer."""
        body = text.lstrip()
        if not body.startswith(THINKS):
            return Split("", text, False)
        thoughts, mark, answer = body.removeprefix(THINKS).partition(THOUGHT)
        return Split(thoughts.strip(), answer.lstrip(), not mark)


def check_limits(settings: object, limits: Mapping[str, tuple[float, float]]) -> None:
    """Raises BadRequest for a number outside its (least, most); None is left open."""
    for name, (least, most) in limits.items():
        value = getattr(settings, name)
        if value is not None and not least <= value <= most:  # so it is with NaN
            raise BadRequest(f"{name} is {value:,}; it must lie between {least:,} and {most:,}.")


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen.

    temperature 0 is greedy; top_k 0, top_p 1, min_p 0 and penalties 1, 0, 0 are off. Raises BadRequest for
    what lies outside LIMITS.
    """

    temperature: float = 0.7
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    seed: int | None = None  # None: a new one for each request
    max_tokens: int | None = None  # None: up to the end of the context
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False  # for benchmarks

    def __post_init__(self) -> None:
        check_limits(self, LIMITS)
        if self.seed is not None and not -(2**63) <= self.seed < 2**64:
            raise BadRequest(f"seed is {self.seed}; it must fit 64 bits.")
        if len(self.stop) > MAX_STOPS:
            raise BadRequest(f"There are {len(self.stop)} stop strings; at most {MAX_STOPS} are taken.")
        for length in map(len, self.stop):
            if not 1 <= length <= MAX_STOP_LENGTH:
                raise BadRequest(
                    f"A stop string has {length:,} characters; it must have 1 to {MAX_STOP_LENGTH}."
                )

    @property
    def has_penalties(self) -> bool:
        """Whether what an answer said so far changes its next token."""
        return (self.repetition_penalty, self.frequency_penalty, self.presence_penalty) != (1, 0, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation. A reply carries the ids that were sampled, and for which tokenizer."""

    role: str  # "system", "user" or "assistant"
    content: str
    token_ids: tuple[int, ...] = ()
    tokenizer: str = ""  # the fingerprint of the tokenizer that token_ids belong to


@dataclass(frozen=True, slots=True)
class Request:
    """A conversation to be continued."""

    messages: tuple[Message, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    owner: str = "person"  # whose prefixes may be shared
    priority: Priority = Priority.CHAT
    date: str = ""  # what the template takes for today: ISO, 2026-11-30; "": today
    id: str = ""  # "": one is made
    group: str = ""  # the same for all requests of one chat: who is named in the picture of the memory
    keep: bool = False  # what it leaves behind may be written to the disk, until its group is forgotten
    model: str = ""  # which of the models that are there should answer; "": the one that is loaded
    shorten: bool = False  # max_tokens gives way to a long prompt; else what does not fit is refused
    continue_last: bool = False  # the last message is a reply that is not finished: it goes on
    begin: str = ""  # what the answer begins or goes on with, as if the model had written it
    text: str | None = None  # instead of messages: to be gone on with as it is
    suffix: str | None = None  # what should follow the answer to `text`, for models that fill holes


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost."""

    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt, served from the prefix cache
    completion_tokens: int = 0
    first_token_s: float = 0.0  # from submit to the first token
    tokens_per_s: float = 0.0  # of the answer, after its first token


@dataclass(frozen=True, slots=True)
class Delta:
    """More of an answer; the first may be what the template or the request has written of it.

    `text` may be empty while a character or a possible stop string is incomplete.
    """

    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of an answer, always the last thing in a stream."""

    reason: FinishReason
    usage: Usage
    error: str = ""
    tokenizer: str = ""  # fingerprint of the tokenizer of the deltas' token_ids


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an answer would cost if it were asked for now."""

    prompt_tokens: int
    cached_tokens: int  # of the prompt, in the prefix cache at the moment
    first_token_s: float  # from submit to the first token, about


class Stream(Protocol):
    """An answer in the making: iterate for Deltas and one Finish; `cancel` may come from any thread."""

    @property
    def prompt_tokens(self) -> int:
        """What stands before the reply; 0 until it is known."""
        ...

    @property
    def read_tokens(self) -> int:
        """How many of those are computed by now, or were cached."""
        ...

    def __iter__(self) -> Iterator[Delta | Finish]: ...

    def cancel(self) -> None:
        """Ask for the end; a Finish(CANCELLED) follows within two steps."""
        ...


class Backend(Protocol):
    """Whatever can answer: the engine in this process, later a server elsewhere."""

    def submit(self, request: Request) -> Stream:
        """Take a request. Raises EngineError for what can never be served; all else ends in a Finish."""
        ...

    def estimate(self, request: Request) -> Estimate:
        """What answering it would cost; takes nothing. Raises EngineError for what has no prompt."""
        ...

    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """How many tokens each text has."""
        ...


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine's state between two steps, for pages and /health."""

    running: int
    waiting: int
    total_blocks: int
    used_blocks: int
    cached_blocks: int
    healthy: bool  # a token was produced when it was loaded; since then no fault, and steps go on
    fault: str = ""
    lost: bool = False  # the device failed: only a new process may get answers from it
    drafted_tokens: int = 0  # guessed and computed with others, since the model was loaded
    accepted_tokens: int = 0  # of these, those that were right: tokens that cost no step of their own
