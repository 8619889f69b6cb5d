"""Attention over pages.

A sequence is cut into segments of SEGMENT tokens from position 0. A segment's partial result for a query row
(D values, their peak, their sum) is computed from nothing and joined to those before it, left to right,
always with the same arithmetic: so a token has the same bits in a prompt, where one task walks all segments,
and in decoding, where threads share them. A query tile is some tokens of a sequence with the heads of one kv
head.
"""

# Keys lie [D, 16] and values [16, D] per 16 tokens, float16 or (`small`) int8, which scores and weights are
# multiplied by the scales of; queries [kv heads, tokens * group, D] float32,
# scaled so that scores are powers of two. A partial row is D values, peak, sum, padded to D + 16 floats.
# Partial rows lie [tokens * heads, parts]; the number of parts of this step stands before them, in a header.

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numba import njit, types

from .emit import F32, I32, I64, LANES, V16F32, V16I8, V16I32, Emitter, Value, emitted
from .layout import ACT, GROUP
from .machine import FEATURES, as_float, f32, i64, unpack
from .rows import LOG2_E, quantize

SEGMENT = 256
TILE_ROWS = 48  # query rows of a task; more only where a group is larger
MASKED = -1e30
HEADER = 64  # bytes before the partial rows
# A task's lists of addresses, for each block of 16 tokens: keys, values, and the scales of both.
LIST, LISTS = 256, 1024  # bytes of one and of all
ARGUMENTS = 24
# Query rows of a register tile, blocks of 16 keys and strips of 16 values beside them: for 32 registers of 16
# floats, and for less.
SHAPES = ((6, 2, 4), (3, 4, 4), (1, 4, 4)) if "avx512f" in FEATURES else ((3, 1, 1), (1, 4, 4))


def _row_tiles(e: Emitter, rows: Value, sizes: Sequence[int], body: Callable[[int, Value], None]) -> None:
    """body(size, first row) over all rows, in tiles of the largest size that still fits."""
    start = e.value(I64, 0)
    for size in sizes:
        count, first = (rows - start) / size, start

        def tile(i: Value, _: list[Value], size: int = size, first: Value = first) -> None:
            body(size, first + i * size)

        e.loop(count, [], tile)
        start = start + count * size


def _load(e: Emitter, small: int, address: Value) -> Value:
    """16 numbers of the cache as float32."""
    return e.load(address, V16I8).to("sext", V16I32).to("sitofp", V16F32) if small else e.load_half(address)


@emitted(literals=1)
def scores(
    e: Emitter, small: int, rows: Value, q: Value, q_step: Value, keys: Value, blocks: Value, depth: Value,
    out: Value, out_step: Value,
) -> None:  # fmt: skip
    """out[rows, 16 * blocks] = q[rows, depth] @ keys. `keys` begins the lists, filled up to a multiple of
    four blocks.
    """
    width = {size: blocks for size, blocks, _ in SHAPES}
    line_depth = 4 if small else 2  # of a cache line of keys

    def tile(size: int, first: Value) -> None:
        sources = [e.opaque(q + q_step * (first + r)) for r in range(size)]
        both = [(r, b) for r in range(size) for b in range(width[size])]

        def some(i: Value, _: list[Value]) -> None:
            begin = i * width[size]
            at = [keys + (begin + b) * 8 for b in range(width[size])]
            pages = [e.load(place, I64) for place in at]
            # a page is as long as hardware fetches ahead: what is read next is asked for here
            soon = [e.load(place + 8 * width[size], I64) for place in at]
            soon += [e.load(place + LIST, I64) for place in at]

            def step(line: Value, sums: list[Value]) -> list[Value]:
                for page in soon:
                    e.prefetch(page + line * 64)
                for d in (line * line_depth + i for i in range(line_depth)):
                    found = [_load(e, small, page + d * (64 // line_depth)) for page in pages]
                    spread = [e.load_splat(source + d * 4, F32) for source in sources]
                    sums = [e.fma(spread[r], found[b], sums[n]) for n, (r, b) in enumerate(both)]
                return sums

            sums = e.loop(depth / line_depth, [e.value(V16F32, 0.0)] * len(both), step)
            if small:
                scales = [e.load_half(e.load(place + 2 * LIST, I64)) for place in at]
                sums = [value * scales[b] for value, (_, b) in zip(sums, both, strict=True)]
            for (r, b), value in zip(both, sums, strict=True):
                e.store(value, out + out_step * (first + r) + (begin + b) * 64)

        e.loop((blocks + (width[size] - 1)) / width[size], [], some)

    _row_tiles(e, rows, list(width), tile)


@emitted(literals=1)
def values(
    e: Emitter, small: int, rows: Value, p: Value, p_step: Value, pages: Value, count: Value, depth: Value,
    out: Value, out_step: Value,
) -> None:  # fmt: skip
    """out[rows, depth] = p[rows, count] @ values. Reads no value beyond `count`: what is there may be
    anything.
    """
    width = {size: strips for size, _, strips in SHAPES}
    size_of = 1 if small else 2  # bytes of a value

    def tile(size: int, first: Value) -> None:
        sources = [e.opaque(p + p_step * (first + r)) for r in range(size)]

        def columns(strips: int, begin: Value) -> None:
            both = [(r, s) for r in range(size) for s in range(strips)]

            def block(i: Value, sums: list[Value]) -> list[Value]:
                page, left, full = (
                    e.load(pages + i * 8, I64) + begin * size_of,
                    count - i * 16,
                    e.value(I64, 16),
                )

                def key(k: Value, sums: list[Value]) -> list[Value]:
                    at = page + k * (depth * size_of)
                    found = [_load(e, small, at + 16 * size_of * s) for s in range(strips)]
                    spread = [e.load_splat(source + (i * 16 + k) * 4, F32) for source in sources]
                    return [e.fma(spread[r], found[s], sums[n]) for n, (r, s) in enumerate(both)]

                return e.loop(e.smallest(left, full), sums, key)

            sums = e.loop((count + 15) / 16, [e.value(V16F32, 0.0)] * len(both), block)
            for (r, s), value in zip(both, sums, strict=True):
                e.store(value, out + out_step * (first + r) + begin * 4 + 64 * s)

        strips = width[size]
        whole = depth / (16 * strips)
        e.loop(whole, [], lambda i, _: columns(strips, i * (16 * strips)))
        if strips > 1:
            done = whole * (16 * strips)
            e.loop((depth - done) / 16, [], lambda i, _: columns(1, done + i * 16))

    _row_tiles(e, rows, list(width), tile)


@emitted(cap_value=types.float32)
def cap_scores(e: Emitter, row: Value, blocks: Value, cap_value: Value) -> None:
    """Each score becomes cap * tanh(score / cap), as tanh(y) = 1 - 2 / (1 + 2^(2 y log2 e))."""
    cap, most = e.splat(cap_value), e.value(V16F32, 60.0)

    def step(i: Value, _: list[Value]) -> None:
        x = e.smallest(e.load(row + i * 64, V16F32) / cap * 2.885390043258667, most)
        e.store(cap - cap * 2.0 / (e.exp2(x) + 1.0), row + i * 64)

    e.loop(blocks, [], step)


@emitted()
def soften(e: Emitter, row: Value, blocks: Value, lower: Value, upper: Value, stats: Value) -> None:
    """Scores lower to upper - 1 become 2^(score - peak), all others 0; peak and sum go to `stats`."""
    lanes, masked, nothing = e.value(V16I32, [*range(LANES)]), e.value(V16F32, MASKED), e.value(V16F32, 0.0)
    first, width = e.splat(lower.to("trunc", I32)), e.splat((upper - lower).to("trunc", I32))

    def seen(i: Value) -> Value:  # one unsigned comparison: what lies before `lower` is very large
        return e.compare("<", lanes + e.splat((i * 16).to("trunc", I32)) - first, width)

    def highest(i: Value, peak: list[Value]) -> list[Value]:
        return [e.largest(peak[0], e.select(seen(i), e.load(row + i * 64, V16F32), masked))]

    peak = e.reduce(e.loop(blocks, [masked], highest)[0], e.largest)
    spread = e.splat(peak)

    def power(i: Value, total: list[Value]) -> list[Value]:
        x = e.select(seen(i), e.exp2(e.load(row + i * 64, V16F32) - spread), nothing)
        e.store(x, row + i * 64)
        return [total[0] + x]

    total = e.loop(blocks, [nothing], power)[0]
    e.store(peak, stats)
    e.store(e.reduce(total, lambda x, y: x + y), stats + 4)


@emitted()
def weigh(e: Emitter, row: Value, blocks: Value, scales: Value) -> None:
    """Each weight is multiplied by the scale of its value; `scales` lists the blocks' addresses. A
    weight of 0 stays 0, whatever a place that was never written holds.
    """
    nothing = e.value(V16F32, 0.0)

    def step(i: Value, _: list[Value]) -> None:
        weights = e.load(row + i * 64, V16F32)
        scaled = weights * e.load_half(e.load(scales + i * 8, I64))
        e.store(e.select(e.compare(">", weights, nothing), scaled, nothing), row + i * 64)

    e.loop(blocks, [], step)


@emitted()
def join(e: Emitter, target: Value, source: Value, depth: Value) -> None:
    """Join the partial row at `source` to the one at `target`. One that saw nothing changes no bit of
    another.
    """
    peaks, totals = (
        [e.load_splat(row + depth * 4 + offset, F32) for row in (target, source)] for offset in (0, 4)
    )
    peak = e.largest(*peaks)
    shrink = [e.exp2(p - peak) for p in peaks]

    def step(i: Value, _: list[Value]) -> None:
        mine, other = (e.load(row + i * 64, V16F32) for row in (target, source))
        e.store(e.fma(mine, shrink[0], other * shrink[1]), target + i * 64)

    e.loop(depth / 16, [], step)
    e.store(e.first(peak), target + depth * 4)
    e.store(e.first(e.fma(totals[0], shrink[0], totals[1] * shrink[1])), target + depth * 4 + 4)


@emitted()
def finish(e: Emitter, row: Value, depth: Value, out: Value) -> None:
    """out[D] = a partial row's values by its sum."""
    share = e.value(V16F32, 1.0) / e.load_splat(row + depth * 4 + 4, F32)
    e.loop(depth / 16, [], lambda i, _: e.store(e.load(row + i * 64, V16F32) * share, out + i * 64))


@emitted()
def sink_in(e: Emitter, row: Value, depth: Value, sink_at: Value) -> None:
    """A score that takes weight and gives nothing joins a partial row's sum."""
    peak, total = (e.load(row + depth * 4 + offset, F32) for offset in (0, 4))
    beyond = e.load(sink_at, F32) * LOG2_E - peak
    power = e.first(e.exp2(e.splat(e.smallest(beyond, e.value(F32, 126.0)))))
    e.store(total + power, row + depth * 4 + 4)


@emitted()
def copy_row(e: Emitter, target: Value, source: Value, depth: Value) -> None:
    """A partial row, its peak and sum with it."""
    e.loop(depth / 16 + 1, [], lambda i, _: e.store(e.load(source + i * 64, V16F32), target + i * 64))


@njit
def first_seen(position: int, window: int) -> int:
    """The first position that a token there looks at."""
    return max(0, position - window + 1) if window else 0


@njit(inline="always")
def attend_tile(
    small: int,
    args: int,
    mine: int,
    sequence: int,
    first: int,
    tokens: int,
    head: int,
    begin: int,
    end: int,
    parts: int,
) -> None:
    """Query rows of `tokens` tokens from `first` on, one kv head, against segments begin to end - 1."""
    (_, _, positions_at, tables, table_step, q, q_step, pool, block_step, kv_step, head_step, block_size,
     heads, kv_heads, depth, scales, scales_kv_step, scales_head_step, window, cap, partials, _, _,
     _) = unpack(args, ARGUMENTS)  # fmt: skip
    positions, table, page = i64(positions_at), i64(tables + sequence * table_step), pool + head * head_step
    group, stride, width = heads // kv_heads, (depth + 16) * 4, SEGMENT * 4
    rows, q_rows = tokens * group, q + head * q_step + first * group * depth * 4
    keys, pages, most = i64(mine), i64(mine + LIST), max(TILE_ROWS, group)
    key_scales, value_scales = i64(mine + 2 * LIST), i64(mine + 3 * LIST)
    found = mine + LISTS  # [most, SEGMENT] scores, then two of [most, stride] partial rows
    whole, partial = found + most * width, found + most * (width + stride)
    lowest, last = first_seen(positions[first], window), positions[first + tokens - 1]
    for segment in range(begin, end):
        base = segment * SEGMENT + max(0, lowest - segment * SEGMENT) // 16 * 16  # whole blocks of 16
        count = min((segment + 1) * SEGMENT, last + 1) - base
        blocks, out = (count + 15) // 16, whole if segment == begin else partial
        for b in range((blocks + 3) // 4 * 4):
            token = base + 16 * min(b, blocks - 1)
            block, place = table[token // block_size] * block_step, token % block_size
            keys[b] = page + block + place * depth * (1 if small else 2)
            pages[b] = keys[b] + kv_step
            if small:
                key_scales[b] = scales + block + head * scales_head_step + place * 2
                value_scales[b] = key_scales[b] + scales_kv_step
        scores(small, rows, q_rows, depth * 4, mine, blocks, depth, found, width)
        for r in range(rows):
            position = positions[first + r // group]
            lower, upper = max(0, first_seen(position, window) - base), min(count, position + 1 - base)
            if cap:
                cap_scores(found + r * width, blocks, as_float(cap))
            soften(found + r * width, blocks, lower, max(lower, upper), out + r * stride + depth * 4)
            if small:
                weigh(found + r * width, blocks, mine + 3 * LIST)
        values(small, rows, found, width, mine + LIST, count, depth, out, stride)
        if segment > begin:
            for r in range(rows):
                join(whole + r * stride, partial + r * stride, depth)
    for r in range(rows):
        token = first + r // group
        part = begin - first_seen(positions[token], window) // SEGMENT if parts > 1 else 0
        if part >= 0 and (parts == 1 or begin <= positions[token] // SEGMENT):
            place = (token * heads + head * group + r % group) * parts + part
            copy_row(partials + HEADER + place * stride, whole + r * stride, depth)


def make_attend(small: int) -> Callable[[int, int, int], None]:
    """All query tiles against their segments. A task is a tile with all of them; where that makes few tasks,
    a tile with one of them, whose result is a part of its own.
    """

    def attend(args: int, thread: int, n: int) -> None:
        (counts, cu_lens_at, positions_at, _, _, _, _, _, _, _, _, _, heads, kv_heads, _, _, _, _, window, _,
         partials, capacity, mine, mine_step) = unpack(args, ARGUMENTS)  # fmt: skip
        tokens, sequences, cu_lens, positions = (
            i64(counts)[0],
            i64(counts)[1],
            i64(cu_lens_at),
            i64(positions_at),
        )
        size, tiles, parts, task = max(1, TILE_ROWS // (heads // kv_heads)), 0, 1, 0
        for s in range(sequences):
            start, stop = cu_lens[s], cu_lens[s + 1]
            if stop > start:
                tiles += (stop - start + size - 1) // size
                seen = positions[stop - 1] // SEGMENT - first_seen(positions[start], window) // SEGMENT + 1
                parts = max(parts, seen)
        if tiles * kv_heads >= 4 * n or tokens * heads * parts > capacity:
            parts = 1
        if thread == 0:
            i64(partials)[0] = parts
        for s in range(sequences):
            for first in range(cu_lens[s], cu_lens[s + 1], size):
                some = min(size, cu_lens[s + 1] - first)
                begin = first_seen(positions[first], window) // SEGMENT
                end = positions[first + some - 1] // SEGMENT + 1
                length = 1 if parts > 1 else end - begin
                for head in range(kv_heads):
                    for segment in range(begin, end, length):
                        if task % n == thread:
                            own = mine + thread * mine_step
                            attend_tile(
                                small, args, own, s, first, some, head, segment, segment + length, parts
                            )
                        task += 1

    return attend


def make_merge() -> Callable[[int, int, int], None]:
    """Join each token's and head's parts, left to right: out [tokens, heads * D] in activation groups."""

    def merge(args: int, thread: int, n: int) -> None:
        (count_at, positions, heads, depth, window, sinks, partials, out, out_step, mine,
         mine_step) = unpack(args, 11)  # fmt: skip
        together = 1 if depth % GROUP == 0 else heads  # heads whose values fill whole groups
        groups, stride, parts = (together * depth + GROUP - 1) // GROUP, (depth + 16) * 4, i64(partials)[0]
        mine += thread * mine_step
        row, items = mine + groups * GROUP * 4, heads // together
        for item in range(thread, i64(count_at)[0] * items, n):
            token, head = item // items, item % items * together
            position = i64(positions)[token]
            seen = position // SEGMENT - first_seen(position, window) // SEGMENT + 1
            for h in range(together):
                at = partials + HEADER + (token * heads + head + h) * parts * stride
                copy_row(row, at, depth)
                for part in range(1, min(seen, parts)):
                    join(row, at + part * stride, depth)
                if sinks:
                    sink_in(row, depth, sinks + (head + h) * 4)
                finish(row, depth, mine + h * depth * 4)
            for k in range(together * depth, groups * GROUP):
                f32(mine)[k] = np.float32(0)
            quantize(mine, groups, out + token * out_step + head * depth // GROUP * ACT)

    return merge
