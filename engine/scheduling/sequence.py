"""A sequence: one stream of tokens being computed, and how far it has come.

There are no phases: `num_computed` chases len(tokens), whether a prompt lies between, an answer, or both once
more after a preemption. While steps are in flight, more is scheduled than computed and expected than known.

    tokens    |------------ known ------------|- awaited -|
    memory    |- num_computed -|- in flight -|- num_todo -|
              0                        num_scheduled   num_expected

The scheduler moves these marks. Knows neither text nor sampling.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..types import FinishReason, Priority
from .block_pool import Chain


@dataclass(slots=True, eq=False, weakref_slot=True)
class Sequence:
    """What a request asks for, and below that what the scheduler knows about it."""

    id: str
    prompt: list[int]
    max_tokens: int | None = None  # None: up to the end of the context
    owner: str = ""
    priority: Priority = Priority.CHAT
    end_ids: frozenset[int] = frozenset()  # each of these ends the answer
    request: Any = None  # what the engine needs to sample; never looked at here
    group: str = ""  # what it is counted to in the picture of the memory
    keep: bool = False  # what it leaves behind may be written to the disk

    tokens: list[int] = field(init=False)  # the prompt, then each token that is certain
    max_length: int = 0  # of tokens; set at the door
    urgency: tuple[float, int] = (0.0, 0)  # the smaller goes first
    started: float | None = None  # when the first step that held it was scheduled
    finish_reason: FinishReason | None = None

    block_tables: tuple[list[int], ...] = ()  # one per page kind
    root: Chain | None = None
    chains: list[Chain] = field(default_factory=list)  # of its first full blocks, as far as anyone asked

    num_computed: int = 0  # tokens in memory for certain
    num_scheduled: int = 0  # tokens in memory once the steps in flight have run
    num_awaited: int = 0  # tokens that the steps in flight sample
    num_in_flight: int = 0  # steps in flight that name it
    num_cached: int = 0  # of the prompt, served from the prefix cache

    def __post_init__(self) -> None:
        self.tokens = list(self.prompt)

    @property
    def num_prompt(self) -> int:
        """The prompt's length."""
        return len(self.prompt)

    @property
    def num_expected(self) -> int:
        """How many tokens there are once the steps in flight have run."""
        return len(self.tokens) + self.num_awaited

    @property
    def num_todo(self) -> int:
        """Tokens ready to be computed; 0 while drafts are in flight, whose fate decides where to go on."""
        if self.num_awaited > 1 or self.num_expected >= self.max_length:
            return 0
        return self.num_expected - self.num_scheduled

    def chain(self, index: int, block_size: int) -> Chain:
        """The identity of full block `index`. Each block is hashed once."""
        while len(self.chains) <= index:
            parent = self.chains[-1] if self.chains else self.root
            assert parent is not None, "a sequence gets its root when it is added"
            start = len(self.chains) * block_size
            self.chains.append(parent.extend(tuple(self.tokens[start : start + block_size])))
        return self.chains[index]
