"""Draws for the tests of samplers, and the tokens that engine/running/sampler.py draws."""

from __future__ import annotations

from torch import Tensor

from engine.running.sampler import SamplingRow, sample, uniform
from engine.types import SamplingParams
from kernels import Draw

VOCABULARY, SEED = 300, 7  # not a whole number of vectors or tiles
CASES = {
    "greedy": {"temperature": 0.0},
    "of all": {"temperature": 1.0, "top_p": 1.0},
    "top-p": {"temperature": 0.8, "top_p": 0.9},
    "top-k": {"temperature": 1.0, "top_p": 1.0, "top_k": 5},
    "min-p": {"temperature": 1.0, "top_p": 1.0, "min_p": 0.05},
    "all three": {"temperature": 0.7, "top_p": 0.8, "top_k": 20, "min_p": 0.01},
    "one": {"temperature": 2.0, "top_p": 1.0, "top_k": 1},
}


def draw(params: SamplingParams, position: int, slot: int = -1) -> Draw:
    penalties = params.repetition_penalty, params.frequency_penalty, params.presence_penalty
    share = uniform(SEED, position)
    return Draw(params.temperature, params.top_p, params.min_p, *penalties, params.top_k, slot, share)


def wanted(logits: Tensor, params: SamplingParams, positions: list[int]) -> list[int]:
    return [sample(row.numpy(), SamplingRow(params, SEED, at)) for row, at in zip(logits, positions)]
