"""From logits to the next token: penalties, temperature, top-k, min-p, top-p, one draw.

The draw is a function of (seed, position), so a request's text does not depend on what else is in the batch,
and a draft token can be checked against the token that would have been drawn at its place. Rows are
independent; a greedy row without penalties is a bare argmax. Nothing sorts a whole vocabulary unless it must.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from ..errors import NotFinite
from ..types import SamplingParams

# Below this temperature the likeliest token is taken: logits divided by less leave float32's range.
COLDEST = 1e-5
# Candidates are those at least so likely, measured by the likeliest; more only if these do not suffice.
LEVELS = (1e-4, 1e-7, -1.0)
RUN = 512  # weights summed up before one is looked for among them


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """What one row of logits is sampled with."""

    params: SamplingParams
    seed: int
    position: int  # of the token to be drawn
    tokens: Sequence[int] = ()  # all so far; only needed where params have penalties
    num_prompt: int = 0  # how many of `tokens` were the prompt


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that only (seed, position) decides."""
    data = seed.to_bytes(16, "little", signed=True) + position.to_bytes(8, "little")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") / 2**64


def sample(logits: np.ndarray, row: SamplingRow) -> int:
    """One token from a row of logits [vocabulary] (float32, left as it is).

    Raises NotFinite where the logits are not numbers: the weights or a kernel are broken.
    """
    logits = penalize(logits, row)
    best = int(logits.argmax())
    peak = logits[best]
    if not math.isfinite(peak):
        raise NotFinite(
            f"The model computed {peak} for the token at position {row.position}; it was stopped."
        )
    if row.params.temperature < COLDEST:
        return best
    weights = logits - peak
    weights /= np.float32(row.params.temperature)
    ids, kept = candidates(np.exp(weights, out=weights), row.params)  # the likeliest has weight 1
    return int(ids[draw(kept, uniform(row.seed, row.position))])


def draw(weights: np.ndarray, share: float) -> int:
    """The index at which the weights, summed up, pass that share of their sum. Most are summed by the run."""
    runs = np.add.reduceat(weights, np.arange(0, len(weights), RUN), dtype=np.float64).cumsum()
    run = min(int(runs.searchsorted(share * runs[-1], side="right")), len(runs) - 1)
    before = runs[run - 1] if run else 0.0
    inside = weights[run * RUN : (run + 1) * RUN].cumsum(dtype=np.float64)
    goal = (share * runs[-1] - before) / (runs[run] - before) * inside[-1]
    return run * RUN + min(int(inside.searchsorted(goal, side="right")), len(inside) - 1)


def penalize(logits: np.ndarray, row: SamplingRow) -> np.ndarray:
    """The logits less their penalties.

    Repetition (CTRL, arXiv 1909.05858) looks at prompt and answer; frequency and presence (OpenAI's) only at
    the answer.
    """
    params = row.params
    if not params.has_penalties:
        return logits
    logits = logits.copy()
    if params.repetition_penalty != 1:
        seen = np.fromiter(set(row.tokens), np.int64)
        values = logits[seen]
        factor = np.float32(params.repetition_penalty)
        logits[seen] = np.where(values > 0, values / factor, values * factor)
    if answer := Counter(row.tokens[row.num_prompt :]):
        ids, counts = (np.fromiter(part, np.int64) for part in (answer.keys(), answer.values()))
        logits[ids] -= (params.frequency_penalty * counts + params.presence_penalty).astype(np.float32)
    return logits


def candidates(weights: np.ndarray, params: SamplingParams) -> tuple[Sequence[int] | np.ndarray, np.ndarray]:
    """The tokens that may be drawn and their weights, after top-k, top-p and min-p, in this order.

    weights [vocabulary]: exp((logit - peak) / temperature). top-p keeps the token that crosses the threshold.
    """
    top_k = params.top_k or len(weights)
    if top_k >= len(weights) and params.top_p == 1 and params.min_p == 0:
        return range(len(weights)), weights
    total = weights.sum(dtype=np.float64)
    for least in LEVELS:
        ids = np.flatnonzero(weights > least)
        order = np.argsort(-weights[ids], kind="stable")[:top_k]
        ids, kept = ids[order], weights[ids[order]]
        mass = np.cumsum(kept, dtype=np.float64)
        # top-p is a share of what top-k left, as in transformers and vLLM
        goal = params.top_p * (mass[-1] if len(ids) == top_k else total)
        if len(ids) == top_k or mass[-1] >= goal or params.min_p > least > 0:
            break
    end = min(int(np.searchsorted(mass, goal, side="left")) + 1, len(ids))
    ids, kept = ids[:end], kept[:end]
    likely = kept >= params.min_p
    return ids[likely], kept[likely]
