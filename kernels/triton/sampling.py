"""From logits to tokens on the device, as engine/running/sampler.py defines it, without sorting a vocabulary.

    sampler = Sampler(device, rows, vocabulary, slots)   static buffers: a recorded step replays it
    sampler.set([Draw(...), ...])                        what each row is drawn with, from the host
    sampler.sample(logits, out)                          float32 [R, V] -> int64 [R]; -1: no numbers

Three kernels: `survey` finds each tile's largest logit and sum, `gather` the few tokens that are not
unlikely, `choose` sorts those and draws. Where they are too few or too many for what is asked, `choose` looks
at the whole row again and is exact all the same. A weight is exp((logit - largest) / temperature). Knows no
sequences: `share` is made from (seed, position) by the host, so that randomness has one source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops import Draw as Draw
from ..transfer import send

TILE = 4096  # logits a program looks at
GROUP = 64  # of which one largest is kept
MOST = 1024  # candidates that are sorted
COLDEST = tl.constexpr(1e-5)  # below this temperature the likeliest token is taken
UNLIKELY = tl.constexpr(1e-4)  # candidates are likelier, measured by the likeliest
ONE = tl.constexpr(0x3F800000)  # the bits of 1.0, the largest weight
SEARCH = tl.constexpr(30)  # halvings that find one of as many bit patterns
UNDECIDED = tl.constexpr(-2)
BROKEN = tl.constexpr(-1)
NUMBERS = tl.constexpr(6)  # float32 a row: temperature, top_p, min_p, repetition, frequency, presence
ROW_BYTES = 8 + 4 * NUMBERS.value + 2 * 4  # of what a row is told: its share, these, top-k and slot
FILL_TILE = 512  # token ids


@triton.jit
def logits_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V):
    """A row's logits at i less their penalties, -inf beyond the vocabulary. A count is twice how often the
    answer has a token, and one more if the prompt has it.
    """
    logits = tl.load(LOGITS + row * V + i, mask=i < V, other=float("-inf"))
    slot = tl.load(WHOLE + 2 * row + 1).to(tl.int64)
    if slot >= 0:
        at = NUMBER + NUMBERS * row
        repetition, frequency, presence = tl.load(at + 3), tl.load(at + 4), tl.load(at + 5)
        count = tl.load(COUNTS + slot * V + i, mask=i < V, other=0)
        punished = tl.where(logits > 0, logits / repetition, logits * repetition)
        logits = tl.where(count > 0, punished, logits)
        answer = (count >> 1).to(tl.float32)
        logits = tl.where(count > 1, logits - (frequency * answer + presence), logits)
    return logits


@triton.jit
def weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V, peak):
    """The weights of a row's tokens i."""
    temperature = tl.load(NUMBER + NUMBERS * row)
    return tl.exp((logits_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V) - peak) / temperature)


@triton.jit
def survey(
    LOGITS, COUNTS, NUMBER, WHOLE, PEAKS, BESTS, SUMS, GROUPS, FOUND, V,
    TILE: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Of each tile the largest logit (nan if any is), its place, the sum of weights measured by it, and the
    largest of each group. Grid (rows, tiles).
    """
    row, tile, tiles = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    logits = logits_at(LOGITS, COUNTS, NUMBER, WHOLE, row, tile * TILE + tl.arange(0, TILE), V)
    temperature = tl.maximum(tl.load(NUMBER + NUMBERS * row), COLDEST)
    broken = tl.max((logits != logits).to(tl.int32), 0)
    logits = tl.where(logits != logits, float("-inf"), logits)  # what a maximum makes of nan differs
    peak = tl.max(logits, 0)
    shifted = tl.where(logits > float("-inf"), (logits - peak) / temperature, float("-inf"))
    place = row * tiles + tile
    tl.store(PEAKS + place, tl.where(broken > 0, float("nan"), peak))
    tl.store(BESTS + place, tile * TILE + tl.argmax(logits, 0))
    tl.store(SUMS + place, tl.sum(tl.exp(shifted), 0))
    largest = tl.max(tl.reshape(logits, [TILE // GROUP, GROUP]), 1)
    tl.store(GROUPS + place * (TILE // GROUP) + tl.arange(0, TILE // GROUP), largest)
    if tile == 0:
        tl.store(FOUND + row, 0)


@triton.jit
def peak_of(PEAKS, row, tiles, TP: tl.constexpr):
    """The largest logit of a row, nan if any is, and those of its tiles."""
    t = tl.arange(0, TP)
    peaks = tl.load(PEAKS + row * tiles + t, mask=t < tiles, other=float("-inf"))
    broken = tl.max((peaks != peaks).to(tl.int32), 0)
    largest = tl.max(tl.where(peaks != peaks, float("-inf"), peaks), 0)
    return tl.where(broken > 0, float("nan"), largest), peaks


@triton.jit
def takes_all(NUMBER, WHOLE, row, V):
    """Whether a row is drawn from every token."""
    top_k, at = tl.load(WHOLE + 2 * row), NUMBER + NUMBERS * row
    return ((top_k == 0) | (top_k >= V)) & (tl.load(at + 1) == 1.0) & (tl.load(at + 2) == 0.0)


@triton.jit
def keep(KEYS, row, weights, i, chosen, first, MOST: tl.constexpr):
    """Add what is chosen to a row's candidates, from place `first` on. Keys sort by weight, then by token."""
    ones = chosen.to(tl.int32)
    place = first + tl.cumsum(ones, 0) - ones
    keys = (weights.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (0x7FFFFFFF - i).to(tl.int64)
    tl.store(KEYS + row * MOST + place, keys, mask=chosen & (place < MOST))


@triton.jit
def gather(
    LOGITS, COUNTS, NUMBER, WHOLE, PEAKS, KEYS, FOUND, V,
    TILE: tl.constexpr, TP: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """The candidates of each tile, for rows that are drawn from the likely. Grid (rows, tiles)."""
    row, tile, tiles = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    temperature = tl.load(NUMBER + NUMBERS * row)
    if temperature < COLDEST or takes_all(NUMBER, WHOLE, row, V):
        return
    peak, _ = peak_of(PEAKS, row, tiles, TP)
    own = tl.load(PEAKS + row * tiles + tile)
    if tl.exp((own - peak) / temperature) > UNLIKELY:
        i = tile * TILE + tl.arange(0, TILE)
        weights = weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V, peak)
        chosen = weights > UNLIKELY
        first = tl.atomic_add(FOUND + row, tl.sum(chosen.to(tl.int32), 0))
        keep(KEYS, row, weights, i, chosen, first, MOST)


@triton.jit
def gather_again(
    LOGITS, COUNTS, NUMBER, WHOLE, GROUPS, KEYS, row, tiles, top_k, V, peak,
    TILE: tl.constexpr, GROUP: tl.constexpr, GP: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """Candidates that contain the top_k likeliest, by one program; how many they are.

    The weight that top_k groups reach is one that at least as many tokens reach, and few more.
    """
    g = tl.arange(0, GP)
    inside = g < tiles * (TILE // GROUP)
    groups = tl.load(GROUPS + row * tiles * (TILE // GROUP) + g, mask=inside, other=float("-inf"))
    bits = tl.exp((groups - peak) / tl.load(NUMBER + NUMBERS * row)).to(tl.int32, bitcast=True)
    low, high = tl.zeros([], tl.int32) + 1, tl.zeros([], tl.int32) + ONE
    for _ in range(SEARCH):
        middle = (low + high) // 2
        few = tl.sum((bits > middle).to(tl.int32), 0) < top_k
        high = tl.where(few, middle, high)
        low = tl.where(few, low, tl.minimum(middle + 1, high))
    count = tl.zeros([], tl.int32)
    for tile in range(tiles):
        i = tile * TILE + tl.arange(0, TILE)
        weights = weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V, peak)
        chosen = weights.to(tl.int32, bitcast=True) >= high
        keep(KEYS, row, weights, i, chosen, count, MOST)
        count += tl.sum(chosen.to(tl.int32), 0)
    tl.debug_barrier()  # what one thread wrote, another reads
    return count


@triton.jit
def draw_sorted(KEYS, row, n, top_k, top_p, min_p, total, share, sure, MOST: tl.constexpr):
    """A token of n candidates; UNDECIDED where these are too few to tell and not `sure` to be all that
    matter.
    """
    j = tl.arange(0, MOST)
    keys = tl.sort(tl.load(KEYS + row * MOST + j, mask=j < n, other=-1), descending=True)
    inside = (j < n) & ((top_k == 0) | (j < top_k))
    weights = tl.where(inside, (keys >> 32).to(tl.int32).to(tl.float32, bitcast=True), 0.0).to(tl.float64)
    mass = tl.sum(weights, 0)
    limited = (top_k > 0) & (n >= top_k)
    # top-p is a share of what top-k left
    goal = top_p.to(tl.float64) * tl.where(limited, mass, total)
    kept = inside & (tl.cumsum(weights, 0) - weights < goal) & (weights >= min_p)
    weights = tl.where(kept, weights, 0.0)
    below = (tl.cumsum(weights, 0) <= share * tl.sum(weights, 0)) & (j < n)
    index = tl.minimum(tl.sum(below.to(tl.int32), 0), tl.max(tl.where(kept, j, 0), 0))
    token = 0x7FFFFFFF - tl.sum(tl.where(j == index, keys & 0x7FFFFFFF, 0), 0)
    enough = sure | limited | (mass >= goal) | (min_p > UNLIKELY)
    return tl.where(enough, token, UNDECIDED)


@triton.jit
def draw_of_all(
    LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, sums, share, TILE: tl.constexpr, TP: tl.constexpr
):
    """A token of all, in the vocabulary's order: first a tile by the tiles' sums, then a token in it."""
    t, j = tl.arange(0, TP), tl.arange(0, TILE)
    until = tl.cumsum(sums, 0)
    goal = share * tl.max(until, 0)
    tile = tl.minimum(tl.sum((until <= goal).to(tl.int32), 0), tl.max(tl.where(sums > 0, t, 0), 0))
    before = tl.sum(tl.where(t < tile, sums, 0.0), 0)
    part = (goal - before) / tl.sum(tl.where(t == tile, sums, 0.0), 0)
    weights = weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, tile * TILE + j, V, peak).to(tl.float64)
    inside = tl.cumsum(weights, 0)
    index = tl.sum((inside <= part * tl.max(inside, 0)).to(tl.int32), 0)
    return tile * TILE + tl.minimum(index, tl.max(tl.where(weights > 0, j, 0), 0))


@triton.jit
def heavier(LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, bits, TILE: tl.constexpr):
    """Of the weights of a row with a higher bit pattern: how many, and their sum."""
    count, mass = tl.zeros([], tl.int32), tl.zeros([], tl.float64)
    for first in range(0, V, TILE):
        i = first + tl.arange(0, TILE)
        weights = weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V, peak)
        above = weights.to(tl.int32, bitcast=True) > bits
        count += tl.sum(above.to(tl.int32), 0)
        mass += tl.sum(tl.where(above, weights, 0.0).to(tl.float64), 0)
    return count, mass


@triton.jit
def draw_by_search(
    LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, top_k, top_p, min_p, share, TILE: tl.constexpr
):  # fmt: skip
    """A token of any number of candidates: the weights that bound them are searched for, the row read again
    and again. Of tokens with one weight, those that come first in the vocabulary are taken, as many as still
    fit.

    Stages: 0 the sum of all; 1 top-k, 2 top-p, 3 min-p make it the sum of what may be drawn; 4 the draw. A
    search finds the least bit pattern above which there are less weights, or is a lesser sum, than the goal.
    """
    bound, bits = tl.zeros([], tl.int32) - 1, tl.zeros([], tl.int32)
    mass, above, goal = tl.zeros([], tl.float64), tl.zeros([], tl.float64), tl.zeros([], tl.float64)
    allowed = tl.zeros([], tl.float64)  # how many of weight `bound`
    limited = (top_k > 0) & (top_k < V)
    for stage in range(5):
        bits = tl.where(stage == 3, min_p.to(tl.int32, bitcast=True), tl.zeros([], tl.int32)) - 1
        goal = tl.where(
            stage == 1, top_k.to(tl.float64), mass * tl.where(stage == 2, top_p.to(tl.float64), share)
        )
        searched = ((stage == 1) & limited) | ((stage == 2) & (top_p < 1.0)) | (stage == 4)
        if searched | (stage == 0) | ((stage == 3) & (min_p > 0.0)):
            low, high = tl.zeros([], tl.int32), tl.zeros([], tl.int32) + ONE
            for _ in range(tl.where(searched, SEARCH, 0)):
                middle = (low + high) // 2
                count, above = heavier(LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, middle, TILE)
                less = tl.where(stage == 1, count.to(tl.float64), above) < goal
                high = tl.where(less, middle, high)
                low = tl.where(less, low, tl.minimum(middle + 1, high))
            bits = tl.where(searched, high, bits)
            count, above = heavier(LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, bits, TILE)
            weight = bits.to(tl.float32, bitcast=True).to(tl.float64)
            fit = tl.ceil(((goal - above) / weight).to(tl.float32)).to(tl.float64)
            if stage == 0:
                mass = above
            elif stage == 1:
                allowed, bound = top_k.to(tl.float64) - count, bits
                mass = above + allowed * weight
            elif stage == 2:
                allowed = tl.where(bits == bound, tl.minimum(fit, allowed), fit)
                mass, bound = above + allowed * weight, bits
            elif stage == 3:
                mass = tl.where(bits >= bound, above, mass)
    rank = tl.floor(((goal - above) / bits.to(tl.float32, bitcast=True)).to(tl.float32)).to(tl.int32)
    token, seen = tl.zeros([], tl.int64), tl.zeros([], tl.int32)
    for first in range(0, V, TILE):
        i = first + tl.arange(0, TILE)
        weights = weights_at(LOGITS, COUNTS, NUMBER, WHOLE, row, i, V, peak)
        same = ((weights.to(tl.int32, bitcast=True) == bits) & (i < V)).to(tl.int32)
        order = seen + tl.cumsum(same, 0) - same
        token = tl.maximum(token, tl.max(tl.where((same > 0) & (order <= rank), i, 0), 0).to(tl.int64))
        seen += tl.sum(same, 0)
    return token


@triton.jit
def choose(
    LOGITS, COUNTS, NUMBER, WHOLE, SHARES, PEAKS, BESTS, SUMS, GROUPS, KEYS, FOUND, OUT, tiles, V,
    TILE: tl.constexpr, GROUP: tl.constexpr, TP: tl.constexpr, GP: tl.constexpr, MOST: tl.constexpr,
):  # fmt: skip
    """One token a row. Grid (rows)."""
    row = tl.program_id(0).to(tl.int64)
    at = NUMBER + NUMBERS * row
    temperature, top_p, min_p = tl.load(at), tl.load(at + 1), tl.load(at + 2)
    top_k, share = tl.load(WHOLE + 2 * row), tl.load(SHARES + row)
    peak, peaks = peak_of(PEAKS, row, tiles, TP)
    t = tl.arange(0, TP)
    if not (tl.abs(peak) < float("inf")):
        tl.store(OUT + row, BROKEN)
    elif temperature < COLDEST:
        best = tl.argmax(peaks, 0)
        tl.store(OUT + row, tl.load(BESTS + row * tiles + best).to(tl.int64))
    else:
        sums = tl.load(SUMS + row * tiles + t, mask=t < tiles, other=0.0)
        sums = tl.where(sums > 0, sums * tl.exp((peaks - peak) / temperature), 0.0).to(tl.float64)
        if takes_all(NUMBER, WHOLE, row, V):
            of_all = draw_of_all(LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, sums, share, TILE, TP)
            tl.store(OUT + row, of_all.to(tl.int64))
        else:
            total = tl.sum(sums, 0)
            token = tl.zeros([], tl.int64) + UNDECIDED
            n = tl.load(FOUND + row)
            for again in range(2):
                if token == UNDECIDED:
                    if again == 1:
                        n = MOST + 1
                        if (top_k > 0) & (top_k <= MOST // 2):
                            n = gather_again(
                                LOGITS, COUNTS, NUMBER, WHOLE, GROUPS, KEYS, row, tiles, top_k, V, peak,
                                TILE, GROUP, GP, MOST,
                            )  # fmt: skip
                    if n <= MOST:
                        token = draw_sorted(
                            KEYS, row, n, top_k, top_p, min_p, total, share, again == 1, MOST
                        ).to(tl.int64)  # fmt: skip
            if token == UNDECIDED:
                token = draw_by_search(
                    LOGITS, COUNTS, NUMBER, WHOLE, row, V, peak, top_k, top_p, min_p, share, TILE
                )  # fmt: skip
            tl.store(OUT + row, token)


@triton.jit
def count_drawn(COUNTS, WHOLE, OUT, V):
    """The token of each row is one more of its slot's answer. Grid (rows)."""
    row = tl.program_id(0).to(tl.int64)
    slot, token = tl.load(WHOLE + 2 * row + 1).to(tl.int64), tl.load(OUT + row)
    if (slot >= 0) & (token >= 0):
        at = COUNTS + slot * V + token
        tl.store(at, tl.load(at) + 2)


@triton.jit
def fill_drawn(IDS, OUT, tokens, TILE: tl.constexpr):
    """IDS of -1 - r become OUT[r], or 0 where that is no token. Grid (tiles)."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    ids = tl.load(IDS + i, mask=i < tokens, other=0)
    drawn = tl.load(OUT + (-1 - ids), mask=ids < 0, other=0)
    tl.store(IDS + i, tl.maximum(drawn, 0), mask=ids < 0)


class Sampler:
    """Draws on one device, for steps of up to `rows` rows; `slots` sequences may have penalties at once."""

    def __init__(
        self,
        device: torch.device,
        rows: int,
        vocabulary: int,
        slots: int = 1,
        tile: int = TILE,
        most: int = MOST,
        group: int = GROUP,
    ) -> None:
        def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.vocabulary, self.tile, self.most, self.group = vocabulary, tile, most, group
        self.tiles = triton.cdiv(vocabulary, tile)
        self._told = make(rows * ROW_BYTES, dtype=torch.uint8)  # the next three, told in one piece
        shares, numbers, whole = self._told.split([8 * rows, 4 * NUMBERS.value * rows, 8 * rows])
        self.shares, self.numbers = shares.view(torch.float64), numbers.view(torch.float32).view(rows, -1)
        self.whole = whole.view(torch.int32).view(rows, 2)
        self.counts = make(slots, vocabulary, dtype=torch.int32)
        self._peaks, self._sums = make(rows, self.tiles), make(rows, self.tiles)
        self._bests, self._found = make(rows, self.tiles, dtype=torch.int32), make(rows, dtype=torch.int32)
        self._groups = make(rows, self.tiles * (tile // group))
        self._keys = make(rows, most, dtype=torch.int64)

    def begin(self, slot: int, prompt: Sequence[int], answer: Sequence[int] = ()) -> None:
        """See Sampler.begin in kernels/ops.py."""
        counts = np.bincount(np.asarray(answer, np.int64), minlength=self.vocabulary).astype(np.int32) * 2
        counts[np.asarray(prompt, np.int64)] |= 1
        send(torch.from_numpy(counts), self.counts[slot])

    def count(self, out: Tensor) -> None:
        """See Sampler.count in kernels/ops.py."""
        count_drawn[(len(out),)](self.counts, self.whole, out, self.vocabulary, num_warps=1)

    def fill(self, token_ids: Tensor, out: Tensor) -> None:
        """See Sampler.fill in kernels/ops.py."""
        tiles = triton.cdiv(len(token_ids), FILL_TILE)
        fill_drawn[(tiles,)](token_ids, out, len(token_ids), TILE=FILL_TILE, num_warps=4)

    def set(self, draws: Sequence[Draw]) -> None:
        """What the first rows are drawn with."""
        values = np.array([astuple(draw) for draw in draws])
        told = np.zeros(len(self._told), np.uint8)
        shares, numbers, whole = np.split(told, [8 * len(self.shares), -8 * len(self.shares)])
        shares.view(np.float64)[: len(draws)] = values[:, 8]
        numbers.view(np.float32).reshape(-1, NUMBERS.value)[: len(draws)] = values[:, :6]
        whole.view(np.int32).reshape(-1, 2)[: len(draws)] = values[:, 6:8]
        send(torch.from_numpy(told), self._told)

    def sample(self, logits: Tensor, out: Tensor) -> None:
        """out[r]: a token of row r, int64. Raises ValueError for tensors that do not fit."""
        rows = len(logits)
        fits = logits.shape == (rows, self.vocabulary) and logits.dtype == torch.float32
        if not (fits and logits.is_contiguous() and out.shape == (rows,) and rows <= len(self.numbers)):
            raise ValueError(
                f"Up to {len(self.numbers)} rows of {self.vocabulary} float32 can be sampled, "
                f"not {tuple(logits.shape)} {logits.dtype} to {tuple(out.shape)}."
            )
        source = (logits, self.counts, self.numbers, self.whole)
        width = triton.next_power_of_2(self.tiles)
        survey[(rows, self.tiles)](
            *source, self._peaks, self._bests, self._sums, self._groups, self._found, self.vocabulary,
            TILE=self.tile, GROUP=self.group, num_warps=8,
        )  # fmt: skip
        gather[(rows, self.tiles)](
            *source, self._peaks, self._keys, self._found, self.vocabulary,
            TILE=self.tile, TP=width, MOST=self.most, num_warps=8,
        )  # fmt: skip
        choose[(rows,)](
            *source, self.shares, self._peaks, self._bests, self._sums, self._groups, self._keys, self._found,
            out, self.tiles, self.vocabulary, TILE=self.tile, GROUP=self.group, TP=width,
            GP=triton.next_power_of_2(self._groups.shape[1]), MOST=self.most, num_warps=8,
        )  # fmt: skip
