"""What a step is: the plan that goes to the runner, and what came of it for each sequence.

Made by scheduler.py; read by batch.py, runner.py and service.py. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

from ..types import FinishReason
from .sequence import Sequence

UNKNOWN = -1  # a token that the step still in flight is about to sample; the runner takes it from the device


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """Copy one block onto another, so that its new owner may write to it."""

    kind: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class PlanItem:
    """Compute the tokens at places start, start + 1, ... of a sequence."""

    sequence: Sequence
    start: int
    token_ids: tuple[int, ...]  # known ones, or one UNKNOWN, then the drafts
    drafts: tuple[int, ...]  # guesses; each counts if it is what is sampled at its place
    samples: int  # after each of the last `samples` tokens one is sampled; 0 inside a prompt

    @property
    def num_tokens(self) -> int:
        """How many tokens are computed, drafts included."""
        return len(self.token_ids)

    @property
    def first_position(self) -> int:
        """The place of the first token that is sampled."""
        return self.start + self.num_tokens - self.samples + 1

    def with_known_tokens(self) -> PlanItem:
        """The same once the step before it has been committed; 0 for a token that did not come."""
        if self.token_ids[0] != UNKNOWN:
            return self
        known = self.sequence.tokens[self.start : self.start + 1] or [0]
        return replace(self, token_ids=(*known, *self.token_ids[1:]))

    def accepted(self, sampled: Seq[int]) -> list[int]:
        """The sampled tokens that count: up to the first that is not its draft, or that ends the answer."""
        tokens = []
        for token, draft in zip(sampled, (*self.drafts, None)):
            tokens.append(token)
            if token != draft or token in self.sequence.end_ids:
                break
        return tokens


@dataclass(frozen=True, slots=True)
class Plan:
    """One step: first the copies, all reads before all writes, then the items together.

    The sequences' block tables are those of this step only until the next schedule or commit.
    """

    items: tuple[PlanItem, ...]
    copies: tuple[BlockCopy, ...]
    scheduled: float  # when

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """The first place and the length of each prompt's part; the others are answering."""
        return [(item.start, item.num_tokens) for item in self.items if item.num_tokens > item.samples]

    @property
    def num_answer_tokens(self) -> int:
        """How many tokens of answers are computed, drafts included."""
        return sum(item.num_tokens for item in self.items if item.num_tokens == item.samples)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a sequence got out of a step, and why it ended if it did."""

    sequence: Sequence
    token_ids: Seq[int]
    reason: FinishReason | None = None
    error: str = ""
