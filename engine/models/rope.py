"""Rotary position embedding (RoFormer, arXiv 2104.09864): how fast each pair turns, with every scaling.

A rope is its frequencies, in radians a token, computed in float64 once. Scalings stretch them, so that a
model reads further than it was trained: linear (arXiv 2306.15595), yarn (arXiv 2309.00071), longrope (arXiv
2402.13753), llama3 (Llama 3.1's). Knows no checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels import Rope

PIECE = 1024  # positions that are worked out at once, in float64


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """The frequencies of the pairs that are turned."""

    frequencies: tuple[float, ...]
    magnitude: float = 1.0  # of cosines and sines
    long: tuple[float, ...] = ()  # the frequencies where a context may be longer than `original`
    original: int = 0

    def table(self, max_positions: int, device: torch.device = torch.device("cpu")) -> Table:
        """A place for the cosines and sines of positions 0 to `max_positions` - 1. Longrope has
        two sets of frequencies: a loaded model takes one for good, by the context it is loaded with, since
        cached keys are turned.
        """
        chosen = self.long if self.long and max_positions > self.original else self.frequencies
        empty = (torch.empty(max_positions, len(chosen), device=device) for _ in range(2))
        return Table(Rope(*empty), torch.tensor(chosen, dtype=torch.float64), self.magnitude)


class Table:
    """A rope whose numbers are worked out as far as texts have come: until then they take no memory."""

    def __init__(self, rope: Rope, frequencies: torch.Tensor, magnitude: float) -> None:
        self.rope, self._frequencies, self._magnitude = rope, frequencies, magnitude
        self._known = 0  # positions

    def reach(self, end: int) -> Rope:
        """The rope, which holds for positions before `end` from now on."""
        for begin in range(self._known, min(end, len(self.rope.cos)), PIECE):
            rows = slice(begin, min(begin + PIECE, len(self.rope.cos)))
            angles = torch.outer(torch.arange(rows.start, rows.stop).double(), self._frequencies)
            self.rope.cos[rows] = (angles.cos() * self._magnitude).float()
            self.rope.sin[rows] = (angles.sin() * self._magnitude).float()
            self._known = rows.stop
        return self.rope


def plain(theta: float, dim: int) -> RopeConfig:
    """theta^(-2i / dim) for the dim / 2 pairs."""
    return RopeConfig(tuple(theta ** (-2 * i / dim) for i in range(dim // 2)))


def proportional(theta: float, dim: int, part: float, factor: float = 1.0) -> RopeConfig:
    """The same for the first `part` of the pairs; the others, which stand further back, are not turned."""
    turned = int(part * dim // 2)
    kept = plain(theta, dim).frequencies[:turned]
    return RopeConfig(tuple(f / factor for f in kept) + (0.0,) * (dim // 2 - turned))


def linear(theta: float, dim: int, factor: float) -> RopeConfig:
    """Every pair slower by the same factor."""
    return RopeConfig(tuple(f / factor for f in plain(theta, dim).frequencies))


def llama3(theta: float, dim: int, factor: float, low: float, high: float, original: int) -> RopeConfig:
    """Pairs that turn `high` times or more within `original` tokens stay, those up to `low` are slowed."""

    def scaled(f: float) -> float:
        turns = original * f / (2 * math.pi)
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        return f * (kept + (1 - kept) / factor)

    return RopeConfig(tuple(map(scaled, plain(theta, dim).frequencies)))


def yarn(
    theta: float,
    dim: int,
    factor: float,
    original: int,
    *,
    magnitude: float | None = None,
    fast: float = 32.0,
    slow: float = 1.0,
    whole: bool = True,
) -> RopeConfig:
    """Pairs that turn `fast` times or more within `original` tokens stay, those up to `slow` are slowed; the
    border pairs are rounded outwards to `whole` ones.
    """

    def pair(turns: float) -> float:
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first, last = pair(fast), pair(slow)
    if whole:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, dim - 1)
    width = last - first or 0.001
    slowed = [min(max((i - first) / width, 0.0), 1.0) for i in range(dim // 2)]
    frequencies = tuple(
        f * (1 - part + part / factor) for f, part in zip(plain(theta, dim).frequencies, slowed, strict=True)
    )
    return RopeConfig(frequencies, yarn_magnitude(factor) if magnitude is None else magnitude)


def yarn_magnitude(factor: float, scale: float = 1.0) -> float:
    """How much larger cosines and sines become in a stretched rope."""
    return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0


def longrope(
    theta: float, dim: int, short: Sequence[float], long: Sequence[float], original: int, magnitude: float
) -> RopeConfig:
    """Each pair slower by a factor of its own, from one of two lists."""
    base = plain(theta, dim).frequencies
    fast, slow = (tuple(f / x for f, x in zip(base, factors, strict=True)) for factors in (short, long))
    return RopeConfig(fast, magnitude, slow if slow != fast else (), original)


def longrope_magnitude(factor: float, original: int) -> float:
    """The same for longrope."""
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 < original else 1.0
