"""What the steps of the last minutes did, second by second, for the page's plots.

Only seconds in which something was computed take room. Decides nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .block_pool import BlockPool
from .plan import Plan, Progress

KEPT = 180  # seconds in which something was computed


@dataclass(frozen=True, slots=True)
class Second:
    """`age`: how many seconds ago. Tokens of answers and of prompts that were computed in it, the most
    sequences in one step, and the blocks of the first page kind at its end.
    """

    age: int
    answer_tokens: int
    prompt_tokens: int
    sequences: int
    used_blocks: int
    cached_blocks: int


class Recent:
    """A ring of seconds in which steps ran. Times in seconds from any moment on."""

    def __init__(self) -> None:
        self._seconds: deque[tuple[int, Second]] = deque(maxlen=KEPT)

    def note(self, now: float, plan: Plan, progress: Iterable[Progress], pool: BlockPool) -> None:
        """A step has ended."""
        at = int(now)
        if not self._seconds or self._seconds[-1][0] != at:
            self._seconds.append((at, Second(0, 0, 0, 0, 0, 0)))
        was = self._seconds[-1][1]
        now_ = Second(
            0,
            was.answer_tokens + sum(len(each.token_ids) for each in progress),
            was.prompt_tokens + sum(count for _, count in plan.chunks),
            max(was.sequences, len(plan.items)),
            pool.num_used,
            pool.num_cached,
        )
        self._seconds[-1] = at, now_

    def until(self, now: float) -> tuple[Second, ...]:
        """What there is, oldest first; seconds without a step are left out."""
        return tuple(replace(second, age=int(now) - at) for at, second in list(self._seconds))
