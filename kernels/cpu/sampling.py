"""Tokens drawn from a step's logits, a row by one thread.

Candidates are engine/running/sampler.py's: after top-k, top-p and min-p, in this order, the heaviest first,
of equal ones those that come first in the vocabulary. Nothing is sorted: the weight that bounds them, and
that of the token drawn, are searched for bit by bit, among the likely ones or, where these do not suffice,
among all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from torch import Tensor

from ..ops import Draw
from .emit import F32, I32, I64, LANES, V16F32, V16I32, Emitter, Value, emitted
from .machine import as_float, compiled, f32, f64, i32, i64, unpack
from .packing import zeros
from .rows import LOG2_E
from .threads import CALL, Team

NAMES = ("temperature", "top_p", "min_p", "repetition", "frequency", "presence", "top_k", "slot", "share")
TEMPERATURE, TOP_P, MIN_P, REPETITION, FREQUENCY, PRESENCE, TOP_K, SLOT, SHARE = range(len(NAMES))
COLDEST = 1e-5  # below this temperature the likeliest token is taken
LIKELY = np.float32(1e-4)  # measured by the likeliest, whose weight is 1
ONE = 0x3F800000  # the bits of that
RUN = 512  # weights summed up before one is looked for among them
BROKEN = -1  # instead of a token: the logits are no numbers


@emitted()
def survey(e: Emitter, row: Value, blocks: Value, found: Value) -> None:
    """The largest of 16 * blocks logits -> the float at `found`; no number, if one of them is none."""

    def step(i: Value, state: list[Value]) -> list[Value]:
        x = e.load(row + i * 64, V16F32)
        # 0, or no number where x is infinity or no number; minus infinity only excludes a token
        return [e.largest(state[0], x), state[1] + e.largest(e.value(V16F32, -1.0), x) * 0.0]

    peak, wrong = e.loop(blocks, [e.value(V16F32, float("-inf")), e.value(V16F32, 0.0)], step)
    e.store(e.reduce(peak, e.largest) + e.reduce(wrong, lambda x, y: x + y), found)


@emitted()
def weigh(e: Emitter, row: Value, blocks: Value, numbers: Value, weights: Value) -> None:
    """weights = 2^((logits - peak) * factor), or 0 where that is next to nothing; peak and factor are the
    floats at `numbers`.
    """
    peak, factor = (e.load_splat(numbers + offset, F32) for offset in (0, 4))
    least, nothing = e.value(V16F32, -120.0), e.value(V16F32, 0.0)

    def step(i: Value, _: list[Value]) -> None:
        x = (e.load(row + i * 64, V16F32) - peak) * factor
        e.store(e.select(e.compare(">", x, least), e.exp2(x), nothing), weights + i * 64)

    e.loop(blocks, [], step)


@emitted(types.int64)
def first_of(e: Emitter, row: Value, blocks: Value, peak_at: Value) -> Value:
    """The place of the first of 16 * blocks floats that is the one at `peak_at`."""
    peak, lanes = e.load_splat(peak_at, F32), e.value(V16I32, [*range(LANES)])

    def step(i: Value, best: list[Value]) -> list[Value]:
        place = lanes + e.splat((i * 16).to("trunc", I32))
        same = e.compare("==", e.load(row + i * 64, V16F32), peak)
        return [e.smallest(best[0], e.select(same, place, e.value(V16I32, 2**31 - 1)))]

    (best,) = e.loop(blocks, [e.value(V16I32, 2**31 - 1)], step)
    return e.reduce(best, e.smallest).to("sext", I64)


def _total(e: Emitter, at: Value, n: Value, part: Callable[[Value], Value]) -> Value:
    """The sum of part(16 weights) over n weights and what fills the last vector; sums of sums, so that a
    float32 suffices.
    """
    vectors, nothing = (n + 15) / 16, e.value(V16F32, 0.0)

    def run(i: Value, total: list[Value]) -> list[Value]:
        begin, count = at + i * (RUN * 4), e.smallest(vectors - i * (RUN // 16), e.value(I64, RUN // 16))
        add = lambda k, mass: [mass[0] + part(e.load(begin + k * 64, V16F32))]  # noqa: E731
        return [total[0] + e.loop(count, [nothing], add)[0]]

    (total,) = e.loop((vectors + (RUN // 16 - 1)) / (RUN // 16), [nothing], run)
    return e.reduce(total, lambda x, y: x + y).to("fpext", ir.DoubleType())


@emitted(types.float64, bound=types.float32)
def mass_above(e: Emitter, at: Value, n: Value, bound: Value) -> Value:
    """The sum of those of n weights that are above a bound. What fills the last vector is 0."""
    least, nothing = e.splat(bound), e.value(V16F32, 0.0)
    return _total(e, at, n, lambda x: e.select(e.compare(">", x, least), x, nothing))


@emitted(types.float64, bound=types.float32)
def count_above(e: Emitter, at: Value, n: Value, bound: Value) -> Value:
    """How many they are."""
    least, one, nothing = e.splat(bound), e.value(V16F32, 1.0), e.value(V16F32, 0.0)
    return _total(e, at, n, lambda x: e.select(e.compare(">", x, least), one, nothing))


@njit
def bound_of(at: int, n: int, goal: float, counted: bool) -> float:
    """The least weight above which there are fewer than `goal`, or a lesser sum."""
    low, high = 0, ONE
    while low < high:
        middle = (low + high) // 2
        bound = as_float(middle)
        if (count_above(at, n, bound) if counted else mass_above(at, n, bound)) < goal:
            high = middle
        else:
            low = middle + 1
    return as_float(high)


@njit
def search(at: int, n: int, total: float, numbers: int) -> int:
    """Which of n weights is drawn; `total` is the sum of all there are."""
    x, of = f32(at), f64(numbers)
    bound, allowed, mass, top_k = np.float32(-1), n, total, int(of[TOP_K])
    if 0 < top_k <= n:  # top-p is a share of what top-k left
        bound = bound_of(at, n, top_k, True)
        allowed = top_k - int(count_above(at, n, bound))  # of the weight `bound`
        mass = mass_above(at, n, bound) + allowed * bound
    if of[TOP_P] < 1:
        goal = of[TOP_P] * mass
        weight = bound_of(at, n, goal, False)
        above = mass_above(at, n, weight)
        fit = int(np.ceil((goal - above) / weight))
        allowed = min(fit, allowed) if weight == bound else fit
        bound, mass = weight, above + allowed * weight
    least = np.float32(of[MIN_P])
    if bound < least and least > 0:
        mass = mass_above(at, n, np.nextafter(least, np.float32(0)))
    goal = of[SHARE] * mass
    weight = bound_of(at, n, goal, False)
    rank, found = int((goal - mass_above(at, n, weight)) / weight), 0
    for i in range(n):
        if x[i] == weight:
            found = i
            if rank == 0:
                break
            rank -= 1
    return found


@njit
def of_all(at: int, width: int, share: float) -> int:
    """Which weight is drawn where all may be, in the vocabulary's order."""
    x, found = f32(at), 0
    left = share * mass_above(at, width, np.float32(0))
    for first in range(0, width, RUN):
        n = min(RUN, width - first)
        mass = mass_above(at + 4 * first, n, np.float32(0))
        if mass > left or first + n == width:
            for i in range(first, first + n):
                if x[i] > 0:
                    found = i
                    left -= x[i]
                    if left < 0:
                        break
            break
        left -= mass
    return found


@njit
def penalize(row: int, width: int, padded: int, counts: int, numbers: int, out: int) -> None:
    """The logits less their penalties; without counts as they are. Filled up with excluded ones."""
    x, y, of = f32(row), f32(out), f64(numbers)
    repetition = np.float32(of[REPETITION])
    for i in range(width):
        y[i] = x[i]
    for i in range(width, padded):
        y[i] = -np.inf
    if counts:
        count = i32(counts)  # twice the answer's, and 1 where the prompt has the token
        for i in range(width):
            if count[i]:
                y[i] = x[i] / repetition if x[i] > 0 else x[i] * repetition
            if count[i] > 1:
                y[i] -= np.float32(of[FREQUENCY] * (count[i] >> 1) + of[PRESENCE])


@njit
def draw(row: int, width: int, padded: int, peak: float, numbers: int, spare: int) -> int:
    """The token that a row's numbers draw from its logits. `spare`: room for three times `padded` floats."""
    of, likely, ids, weights = f64(numbers), spare, spare + 4 * padded, spare + 8 * padded
    f32(spare)[0] = peak
    if of[TEMPERATURE] < COLDEST:
        return first_of(row, padded // 16, spare)
    f32(spare)[1] = LOG2_E / of[TEMPERATURE]
    weigh(row, padded // 16, spare, weights)
    top_k = int(of[TOP_K])
    if (top_k == 0 or top_k >= width) and of[TOP_P] == 1 and of[MIN_P] == 0:
        return of_all(weights, width, of[SHARE])
    total = mass_above(weights, width, np.float32(0))
    x, y, z, n, mass = f32(weights), f32(likely), i32(ids), 0, 0.0
    for i in range(width):
        if x[i] > LIKELY:
            y[n], z[n] = x[i], i
            mass += x[i]
            n += 1
    for i in range(n, (n + 15) // 16 * 16):
        y[i] = 0
    if 0 < top_k <= n or mass >= of[TOP_P] * total or of[MIN_P] > LIKELY:
        return z[search(likely, n, total, numbers)]
    return search(weights, width, total, numbers)


def make_sample() -> Callable[[int, int, int], None]:
    """out[r] = a token of row r."""

    def sample(args: int, thread: int, n: int) -> None:
        rows, logits, step, out, width, numbers, counts, mine, mine_step = unpack(args, 9)
        padded, mine = (width + 15) // 16 * 16, mine + thread * mine_step
        values, spare = mine, mine + 4 * padded
        for r in range(thread, rows, n):
            row, own = logits + r * step, numbers + r * (8 * len(NAMES))
            slot = int(f64(own)[SLOT])
            if slot >= 0 or width < padded:
                penalize(row, width, padded, counts + slot * width * 4 if slot >= 0 else 0, own, values)
                row = values
            survey(row, padded // 16, spare)
            peak = f32(spare)[0]
            i64(out)[r] = draw(row, width, padded, peak, own, spare) if abs(peak) < np.inf else BROKEN

    return sample


class CpuSampler:
    """See kernels.ops.Sampler."""

    SPARE = 16  # bytes for each thread and token

    def __init__(self, team: Team, rows: int, vocabulary: int, slots: int) -> None:
        self._team, self._kernel, self._width = team, compiled(make_sample), vocabulary
        self._here = CALL(self._kernel)
        self._numbers = np.zeros((rows, len(NAMES)))
        self.counts = zeros(slots, 4 * vocabulary).view(np.int32)
        self._spare = zeros(team.count, self.SPARE * (vocabulary + 32)).view(np.float32)
        memory = self._numbers.ctypes.data, self.counts.ctypes.data, self._spare.ctypes.data
        self._arguments = np.array([0, 0, 0, 0, vocabulary, *memory, self._spare.strides[0]])

    def set(self, draws: Sequence[Draw]) -> None:
        """See Sampler.set in kernels/ops.py."""
        self._numbers[: len(draws)] = [*map(attrgetter(*NAMES), draws)]

    def sample(self, logits: Tensor, out: Tensor) -> None:
        """See Sampler.sample in kernels/ops.py."""
        assert logits.dtype == torch.float32 and logits.stride(1) == 1 and out.is_contiguous()
        arguments = self._arguments
        arguments[:4] = len(logits), logits.data_ptr(), logits.stride(0) * 4, out.data_ptr()
        if len(logits) > 1 and self._numbers[: len(logits), TEMPERATURE].max() >= COLDEST:
            self._team.run(self._kernel, arguments.ctypes.data)
        else:  # it takes less time than to wake the others
            self._here(arguments.ctypes.data, 0, 1)

    def begin(self, slot: int, prompt: Sequence[int], answer: Sequence[int]) -> None:
        """See Sampler.begin in kernels/ops.py."""
        self.counts[slot] = 2 * np.bincount(np.asarray(answer, np.int64), minlength=self._width)
        self.counts[slot, np.asarray(prompt, np.int64)] |= 1

    def count(self, out: Tensor) -> None:
        """See Sampler.count in kernels/ops.py."""
        for token, slot in zip(out.tolist(), self._numbers[:, SLOT].astype(np.int64)):
            if slot >= 0 and token >= 0:
                self.counts[slot, token] += 2

    def fill(self, token_ids: Tensor, out: Tensor) -> None:
        """See Sampler.fill in kernels/ops.py."""
        unknown = token_ids < 0
        token_ids[unknown] = out[-1 - token_ids[unknown]].clamp(min=0)
