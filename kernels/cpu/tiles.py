"""The matrix product: a few tokens' int8 activations against 32 rows of weights (layout.py draws both).

The sums stay in registers. A group's dot product is one of integers and exact, so any instruction may compute
it; then sum = scale_w * (scale_x * dot) + (minimum * sum_x + sum), group by group, in fused multiply-adds. So
a token's result has the same bits whatever tile it falls into, and whatever the `way` to the dot product
(dots.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .dots import AVX2, AVX512_VNNI, AVX_VNNI, PLAIN, Dots, look_up
from .emit import F32, I32, I64, V16F32, V16I8, V16I32, Emitter, Value, emitted
from .layout import (
    ACT,
    AHEAD,
    INT2K,
    INT3K,
    INT4,
    INT4K,
    INT4Z,
    INT5,
    INT5K,
    INT6,
    INT8,
    LARGEST,
    MAGIC,
    MAGIC_BITS,
    PAIR,
    SCALES,
    SPAN,
    STRIP,
    SUPER,
    TABLED,
    Act,
)
from .machine import unpack

# Tokens of the two largest tiles (0: none), as many as the registers hold; the others have 2 and 1.
SIZES = {AVX512_VNNI: (6, 4), AVX_VNNI: (0, 0), AVX2: (0, 4), PLAIN: (0, 0)}
# Where one token's tile reads in order and has nothing fetched by instructions: a group's lines wait in
# registers, of which the others have too few.
IN_ORDER = (AVX512_VNNI,)
Load = Callable[[int], Value]  # 64 bytes from a place of a strip on
# What a group adds: which halves of its inputs, where their dot products start from, the weights' scales.
Terms = list[tuple[tuple[int, ...], list[Value], list[Value]]]
# What shared scales and minima are multiplied by: INT3K's values are read times eight; INT2K's minima meet
# the activation's HALVES, which are -32 times the sums of a half.
SHARED = {INT3K: (1 / 8,), INT2K: (1.0, -1 / 32)}


def _strip(e: Emitter, at: Value, size: int, in_order: bool) -> Load:
    """What gives 64 bytes of a strip, loaded where they are used, or all of them here, in order: hardware
    fetches a stream ahead that is read from its begin to its end.
    """
    if not in_order:
        return lambda place: e.load(at + place, V16I32)
    words = list[Value]()
    for place in range(0, size, 64):
        words.append(e.load(at + place, V16I32))
        e.in_order()
    return lambda place: words[place // 64]


def _bytes(e: Emitter, fmt: int, way: int, strip: Load, half: int, j: int) -> Value:
    """64 unsigned bytes as 16 x int32: inputs 16 * half + 4j to 4j + 3 of 16 rows."""

    def bits(at: int, place: int, to: int, mask: int) -> Value:
        """The bits of every byte that begin at `place`, moved to `to`."""
        word, up = strip(at), to - place
        return (word << up if up >= 0 else word >> -up) & mask * 0x01010101

    if fmt == INT8:
        return strip(256 * half + 64 * j)
    if fmt in (INT2K, INT3K):
        two = bits(64 * half, 2 * j, 3 if fmt == INT3K else 0, 0x18 if fmt == INT3K else 3)
        return two | bits(128, 4 * half + j, 5, 0x20) if fmt == INT3K else two
    at, shift = (128 * half + 64 * (j // 2), j % 2) if fmt == INT6 else (64 * j, half)
    nibbles = strip(at)  # shifted as words: shifts of bytes compete with the dot products
    low = (nibbles >> 4 if shift else nibbles) & 0x0F0F0F0F
    if fmt in TABLED:
        return look_up(e, way, low, [128 + value for value in TABLED[fmt]])
    if fmt in (INT5, INT5K):
        return low | bits(256, 4 * half + j, 4, 0x10)
    return low | bits(256 + 64 * half, 2 * j, 4, 0x30) if fmt == INT6 else low


def _terms(
    e: Emitter, fmt: int, sources: Sequence[Value], scales: Value, shared: Sequence[Value]
) -> tuple[Terms, list[Value]]:
    """What a group adds, and its minima if the format has any (INT2K: the first half's, then the second's);
    scales and minima one vector per strip.
    """

    def halfs(where: int) -> list[Value]:
        return [e.load_half(scales + (where + 32 * r)) for r in (0, 1)]

    def small(where: int, widen: str, times: Sequence[Value]) -> list[Value]:
        loaded = (e.load(scales + (where + 16 * r), V16I8).to(widen, V16I32) for r in (0, 1))
        return [x.to("sitofp", V16F32) * shared for x, shared in zip(loaded, times, strict=True)]

    def nibbles(where: int, mask: int, down: int, times: Sequence[Value]) -> list[Value]:
        loaded = [e.load(scales + (where + 16 * r), V16I8).to("zext", V16I32) for r in (0, 1)]
        return [((x & mask) >> down).to("sitofp", V16F32) * by for x, by in zip(loaded, times, strict=True)]

    def start(where: int) -> list[Value]:
        return [e.load_splat(source + where, I32) for source in sources]

    plain = [e.value(V16I32, MAGIC_BITS)] * len(sources)
    if fmt in (INT4, INT5):
        return [((0, 1), plain, halfs(0))], halfs(64)
    if fmt == INT4Z:
        scale, zero = halfs(0), halfs(64)
        return [((0, 1), plain, scale)], [s * z for s, z in zip(scale, zero, strict=True)]
    if fmt in (INT4K, INT5K):
        return [((0, 1), plain, small(0, "zext", shared[:2]))], small(32, "zext", shared[2:])
    if fmt in (INT3K, INT6):
        return [((h,), start(Act.HALVES + 4 * h), small(32 * h, "sext", shared)) for h in (0, 1)], []
    if fmt == INT2K:
        terms: Terms = [((h,), plain, nibbles(32 * h, 15, 0, shared[:2])) for h in (0, 1)]
        return terms, [m for h in (0, 1) for m in nibbles(32 * h, 240, 4, shared[2:])]
    return [((0, 1), start(Act.WHOLE), halfs(0))], []


@emitted(literals=3)
def tile(
    e: Emitter, fmt: int, way: int, tokens: int, w: Value, fetch: Value, lines: Value, end: Value,
    jump: Value, x: Value, x_step: Value, groups: Value, bias: Value, add: Value, out: Value, out_step: Value,
) -> None:  # fmt: skip
    """out[t, 32 rows] = bias + weights @ activations (+ out[t], if `add`): one pair, `tokens` tokens.

    With each group, so many `lines` of the stream are fetched from `fetch` on; past the stream's `end`, what
    lies at a distance of `jump`.
    """
    if not tokens:  # a size this way has no tile for: compiled, never reached
        return
    both = [(t, r) for t in range(tokens) for r in (0, 1)]
    xs = [e.opaque(x + x_step * t) for t in range(tokens)]

    def products(
        strips: list[Load], sources: list[Value], halves: Sequence[int], begin: list[Value]
    ) -> list[Value]:
        """MAGIC + dot product, as floats, one vector of rows per (token, strip)."""
        dots = Dots(e, way, LARGEST[fmt], [begin[t] for t, _ in both])
        for j in range(4):
            weights = {(h, r): _bytes(e, fmt, way, strips[r], h, j) for h in halves for r in (0, 1)}
            for h in halves:
                for t in range(tokens):
                    inputs = e.load_splat(sources[t] + (16 * h + 4 * j), I32)
                    for r in (0, 1):
                        dots.add(2 * t + r, weights[h, r], inputs)
        return [total.to("bitcast", V16F32) for total in dots.result()]

    def group(at: Value, index: Value, sums: list[Value], shared: list[Value]) -> list[Value]:
        ahead = fetch + index * lines * 64
        ahead = e.select(e.compare("<", ahead, end), ahead, ahead + jump)
        e.loop(lines, [], lambda line, _: e.prefetch(ahead + line * 64))
        in_order, sources = tokens == 1 and way in IN_ORDER, [p + index * ACT for p in xs]
        strips = [_strip(e, at + STRIP[fmt] * r, STRIP[fmt], in_order) for r in (0, 1)]
        terms, minima = _terms(e, fmt, sources, at + SCALES[fmt], shared)
        scale, minus, total = (
            [e.load_splat(source + where, F32) for source in sources]
            for where in (Act.SCALE, Act.MINUS, Act.SUM)
        )
        for h in range(len(minima) // 2):
            if fmt == INT2K:  # (MAGIC - 32 * sum) * scale - MAGIC * scale
                halves_at = Act.HALVES + 4 * h
                starts = [e.load_splat(source + halves_at, F32) for source in sources]
                total = [e.fma(x, scale[t], minus[t]) for t, x in enumerate(starts)]
            sums = [e.fma(minima[2 * h + r], total[t], sums[i]) for i, (t, r) in enumerate(both)]
        if len(terms) == 1:
            ((halves, begin, factor),) = terms
            found = products(strips, sources, halves, begin)
            # (MAGIC + dot) * scale - MAGIC * scale, rounded once; the last term is exact (quantize_group)
            for i, (t, r) in enumerate(both):
                sums[i] = e.fma(factor[r], e.fma(found[i], scale[t], minus[t]), sums[i])
            return sums
        # two scales in a group: one multiplication less if MAGIC is subtracted, which costs no multiplier
        scaled: list[Value] = []
        for halves, begin, factor in terms:
            dots = [x - MAGIC for x in products(strips, sources, halves, begin)]
            if scaled:
                scaled = [e.fma(d, factor[r], s) for d, s, (_, r) in zip(dots, scaled, both, strict=True)]
            else:
                scaled = [d * factor[r] for d, (_, r) in zip(dots, both, strict=True)]
        return [e.fma(x, scale[t], s) for x, s, (t, _) in zip(scaled, sums, both, strict=True)]

    def super_group(s: Value, sums: list[Value]) -> list[Value]:
        at, first = w + s * SUPER[fmt], s * SPAN[fmt]
        if SPAN[fmt] == 1:
            return group(at, first, sums, [])
        count = 4 if fmt in (INT2K, INT4K, INT5K) else 2
        shared = [e.load_half(at + (SPAN[fmt] * PAIR[fmt] + 32 * i)) for i in range(count)]
        if fmt in SHARED:
            shared = [x * SHARED[fmt][i // 2] for i, x in enumerate(shared)]
        body = lambda g, sums: group(at + g * PAIR[fmt], first + g, sums, shared)  # noqa: E731
        return e.loop(e.value(I64, SPAN[fmt]), sums, body)

    sums = e.loop(groups / SPAN[fmt], [e.load(bias + 64 * r, V16F32) for _, r in both], super_group)
    adding, nothing = e.compare("!=", add, e.value(I64, 0)), e.value(V16F32, 0.0)
    for (t, r), value in zip(both, sums, strict=True):
        address = out + out_step * t + 64 * r
        e.store(value + e.select(adding, e.load(address, V16F32), nothing), address)


def make_matmul(fmt: int, way: int) -> Callable[[int, int, int], None]:
    """Pairs lo to hi of out = bias + x @ w.T (+ out), for some tokens at a time. Steps are in bytes."""
    most, more = SIZES[way]
    span, size, line_count, in_order = SPAN[fmt], SUPER[fmt], PAIR[fmt] // 64, way in IN_ORDER

    def matmul(args: int, lo: int, hi: int) -> None:
        w, end, jump, groups, x, x_step, count, bias, add, out, out_step = unpack(args, 11)
        length = groups // span * size
        alone = count in (1, 2, more, most)
        for pair in range(lo, hi):
            wp, bp, t = w + pair * length, bias + pair * 128, 0
            # one tile fetches a little ahead, unless it reads in order; of several, the first two fetch half
            # of the next pair each
            soon, each, left = wp + AHEAD, 0 if count == 1 and in_order else line_count, 1
            if not alone:
                soon, each, left = wp + length, (line_count + 1) // 2, 2
            while t < count:
                todo, xp, op = count - t, x + t * x_step, out + pair * 128 + t * out_step
                if most and todo >= most and todo != 8:  # 4 + 4 beats 6 + 2
                    tile(fmt, way, most, wp, soon, each, end, jump, xp, x_step, groups, bp, add, op, out_step)
                    t += most
                elif more and todo >= more:
                    tile(fmt, way, more, wp, soon, each, end, jump, xp, x_step, groups, bp, add, op, out_step)
                    t += more
                elif todo >= 2:
                    tile(fmt, way, 2, wp, soon, each, end, jump, xp, x_step, groups, bp, add, op, out_step)
                    t += 2
                else:
                    tile(fmt, way, 1, wp, soon, each, end, jump, xp, x_step, groups, bp, add, op, out_step)
                    t += 1
                left -= 1
                soon += length // 2
                if left == 0:
                    each = 0

    return matmul
