"""Tokens drawn on the card: what comes to the host of a step is a token a row, not a vocabulary a row.

The same tokens as sampler.py draws, from the same (seed, position). Answers with penalties, which look at
tokens that are drawn in the same step, are left to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from kernels import Draw, Sampler

from .errors import EngineError, NotFinite
from .plan import PlanItem
from .sampler import uniform
from .types import SamplingParams

Sampled = list[int] | EngineError

GREEDY = Draw(0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0, -1, 0.0)


def has_penalties(params: SamplingParams) -> bool:
    """Whether what an answer said so far changes its next token."""
    return (params.repetition_penalty, params.frequency_penalty, params.presence_penalty) != (1, 0, 0)


class DeviceSampler:
    """Draws for the plans of one runner; `on_host` does it for an item with penalties, from its logits."""

    def __init__(
        self, sampler: Sampler, logits: Tensor, on_host: Callable[[np.ndarray, PlanItem], Sampled]
    ) -> None:
        self._sampler, self._logits, self._on_host = sampler, logits, on_host
        self._tokens = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)

    def draw(self, items: Sequence[PlanItem]) -> list[Sampled]:
        """For each item its tokens, up to the first that is not its draft; or its fault."""
        draws = [draw for item in items for draw in draws_of(item)]
        if draws:
            self._sampler.set(draws)
            self._sampler.sample(self._logits[: len(draws)], self._tokens[: len(draws)])
        tokens = self._tokens[: len(draws)].tolist()  # the step's one wait for the card
        results: list[Sampled] = []
        row = 0
        for item in items:
            end = row + item.samples
            if has_penalties(item.sequence.request.params):
                results.append(self._on_host(self._logits[row:end].cpu().numpy(), item))
            else:
                results.append(_accepted(tokens[row:end], item))
            row = end
        return results


def draws_of(item: PlanItem) -> list[Draw]:
    """What the rows of an item are drawn with; those of answers with penalties are drawn for nothing."""
    request = item.sequence.request
    params: SamplingParams = request.params
    if has_penalties(params):
        return [GREEDY] * item.samples
    numbers = (params.temperature, params.top_p, params.min_p, 1.0, 0.0, 0.0, params.top_k or 0, -1)
    return [
        Draw(*numbers, uniform(request.seed, position))
        for position in range(item.first_position, item.first_position + item.samples)
    ]


def _accepted(tokens: Sequence[int], item: PlanItem) -> Sampled:
    kept: list[int] = []
    for token, draft in zip(tokens, (*item.drafts, None)):
        if token < 0:
            where = f"for the token at position {item.first_position + len(kept)}"
            return NotFinite(f"The model computed no number {where}; it was stopped.")
        kept.append(token)
        if token != draft:
            break
    return kept
