"""How much work fits a step of the wanted duration, learned from what steps have cost.

A long prompt is computed in chunks beside the answers that stream; a chunk's size decides how long each of
them waits for its next token, and how soon Stop stops. Knows no clock: durations are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """A step of `num_tokens` lasts about `target_s`."""

    target_s: float
    seconds_per_token: float = 0.001  # until steps have been measured

    @property
    def num_tokens(self) -> int:
        """A multiple of 16, at least 16."""
        return max(1, int(self.target_s / self.seconds_per_token / 16)) * 16

    def observe(self, num_tokens: int, seconds: float) -> None:
        """Learn from a step, if it was at least half full: in a small one reading the weights costs most.

        One odd step (the machine slept) counts for little.
        """
        if 2 * num_tokens >= self.num_tokens:
            known = self.seconds_per_token
            seen = min(max(seconds / num_tokens, known / 2), known * 2)
            self.seconds_per_token = (known + seen) / 2
