"""Several answers to one question, side by side: how many, and what makes them differ.

By chance, by their temperature, or by the model that gives each. Knows no chats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from engine import SamplingParams

from ..errors import AppError

MOST_ANSWERS = 4
TEMPERATURES = (0.3, 0.8, 1.2, 0.0)  # of answers that are to differ in it
SAMPLED = 0.7  # at least, where several samples are wanted: with 0 they would all be the same


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a question is answered; mostly once. `models`: who gives each answer, none is the chat's own."""

    answers: int = 1
    by_heat: bool = False
    models: tuple[str, ...] = ()

    def check(self, is_known: Callable[[str], None]) -> None:
        """Raises AppError for what can't be; `is_known` does for a model that nobody knows."""
        if not 1 <= self.answers <= MOST_ANSWERS:
            raise AppError(f"{self.answers} answers were asked for; there can be 1 to {MOST_ANSWERS}.")
        if self.models and len(self.models) != self.answers:
            raise AppError(f"{self.answers} answers were asked of {len(self.models)} models.")
        for model in filter(None, self.models):
            is_known(model)

    def sampling(self, own: list[SamplingParams]) -> list[SamplingParams]:
        """How each answer is sampled, as the chat decides it, so that no two must come out the same."""
        if self.answers == 1 or len(set(self.models)) > 1:
            return own
        if self.by_heat:
            return [replace(each, temperature=heat) for each, heat in zip(own, TEMPERATURES)]
        return [
            replace(
                each,
                temperature=max(each.temperature, SAMPLED),
                seed=None if each.seed is None else each.seed + place,
            )
            for place, each in enumerate(own)
        ]


ONCE = Comparison()
