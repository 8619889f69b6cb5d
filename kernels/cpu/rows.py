"""One token at a time: embedding, norm, quantized activations, gates, rotary embedding, writing the cache.

A token's row is handled whole by one thread, with code that does not depend on its neighbours. Words and
numbers are layout.py's. Scores are powers of two: queries are scaled by log2(e) / sqrt(D) here, attend.py
needs no e.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from .emit import F32, I32, V16F32, V16I8, V16I32, Emitter, Value, emitted
from .layout import (
    ACT,
    FP4,
    GROUP,
    INT2K,
    INT3K,
    INT4,
    INT4K,
    INT4Z,
    INT5,
    INT5K,
    INT6,
    INT8,
    IQ4,
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
from .machine import as_float, f32, half, i64, s8, to_half, u8, u16, unpack

LOG2_E = 1.4426950408889634
LARGEST_INT8, LEAST_SCALE = np.float32(127), np.float32(6e-8)  # the latter: float16's least above 0
TABLED_ROWS = np.array([TABLED[IQ4], TABLED[FP4]], np.int8)


@emitted()
def quantize_group(e: Emitter, source: Value, target: Value) -> None:
    """32 floats -> an activation group. The scale loses its last four bits: MAGIC * scale is exact."""
    halves = [e.load(source + 64 * h, V16F32) for h in (0, 1)]
    peak = e.reduce(e.largest(e.magnitude(halves[0]), e.magnitude(halves[1])), e.largest)
    scale = ((peak * (1 / 127)).to("bitcast", I32) & -16).to("bitcast", F32)
    some, nothing = e.compare(">", peak, e.value(F32, 1e-30)), e.value(F32, 0.0)
    inverse = e.splat(e.select(some, e.value(F32, 1.0) / scale, nothing))
    numbers = [e.round(x * inverse).to("fptosi", V16I32) for x in halves]
    sums = [e.reduce(q, lambda x, y: x + y) for q in numbers]
    for h in (0, 1):
        e.store(numbers[h].to("trunc", V16I8), target + 16 * h)
        e.store(sums[h] * -32 + MAGIC_BITS, target + (Act.HALVES + 4 * h))
    total = sums[0] + sums[1]
    e.store(total * -128 + MAGIC_BITS, target + Act.WHOLE)
    e.store(scale, target + Act.SCALE)
    e.store(scale * -MAGIC, target + Act.MINUS)
    e.store(scale * total.to("sitofp", F32), target + Act.SUM)


@njit
def quantize(source: int, groups: int, target: int) -> None:
    """32 * groups floats -> as many activation groups. A function of its own, so that no fast-math enters."""
    for g in range(groups):
        quantize_group(source + g * (4 * GROUP), target + g * ACT)


@emitted()
def gate(e: Emitter, gate_up: Value, curve_at: Value) -> None:
    """32 gates and then 32 ups become 32 times gate / (1 + 2^x) * (up + lift), x = gate * (a + b * gate^2),
    the gate at most `limit`, up between -limit and limit: four floats stand at `curve_at`.
    SiLU is a = -log2(e), b = 0. GELU's tanh form, y (1 + tanh(u)) / 2, is y / (1 + e^-2u).
    """
    a, b, limit, lift = (e.load_splat(curve_at + offset, F32) for offset in (0, 4, 8, 12))
    most, least = e.value(V16F32, 126.0), e.value(V16F32, -126.0)
    for offset in (0, 64):
        raw, up = (e.smallest(e.load(gate_up + (offset + part), V16F32), limit) for part in (0, 128))
        up = e.largest(up, e.value(V16F32, 0.0) - limit) + lift
        y = e.largest(e.smallest(raw, most), least)  # beyond, nothing changes; and its square stays finite
        e.store(raw / (e.exp2(e.smallest(y * (a + b * (y * y)), most)) + 1.0) * up, gate_up + offset)


@njit(inline="always")
def inverse_root_mean_square(x: np.ndarray, width: int, eps: float) -> float:
    """By what RMSNorm multiplies."""
    total = np.float32(0)
    for k in range(width):
        total += x[k] * x[k]
    return np.float32(1) / np.sqrt(total / np.float32(width) + eps)


def make_norm() -> Callable[[int, int, int], None]:
    """RMSNorm of hidden[rows[i]], or hidden[i] where there is no such list, into activation groups; without
    gains, as it is.
    """

    def norm(args: int, thread: int, n: int) -> None:
        count_at, rows, hidden, hidden_step, width, gains, eps, act, act_step, mine, mine_step = unpack(
            args, 11
        )
        mine += thread * mine_step
        y, gain, padded = f32(mine), f32(gains), (width + GROUP - 1) // GROUP * GROUP
        for i in range(thread, i64(count_at)[0], n):
            x = f32(hidden + hidden_step * (i64(rows)[i] if rows else i))
            if gains:
                scale = inverse_root_mean_square(x, width, as_float(eps))
                for k in range(width):
                    y[k] = x[k] * scale * gain[k]
            else:
                for k in range(width):
                    y[k] = x[k]
            for k in range(width, padded):
                y[k] = np.float32(0)
            quantize(mine, padded // GROUP, act + i * act_step)

    return norm


def make_gates() -> Callable[[int, int, int], None]:
    """out[t] = act(x[t]) * up[t], in activation groups; `curve` is the address of act's four floats."""

    def gates(args: int, thread: int, n: int) -> None:
        count_at, rows, step, ups, up_step, width, curve, out, out_step, mine, mine_step = unpack(args, 11)
        groups, pair = (width + GROUP - 1) // GROUP, mine + thread * mine_step
        for item in range(thread, i64(count_at)[0] * groups, n):
            t, g = item // groups, item % groups
            x, up = f32(rows + t * step + g * 4 * GROUP), f32(ups + t * up_step + g * 4 * GROUP)
            both, there = f32(pair), min(GROUP, width - g * GROUP)
            for k in range(GROUP):
                both[k] = x[k] if k < there else np.float32(0)
                both[GROUP + k] = up[k] if k < there else np.float32(0)
            gate(pair, curve)
            quantize(pair, 1, out + t * out_step + g * ACT)

    return gates


@njit
def _write(small: int, x: np.ndarray, depth: int, step: int, at: int, scale_at: int) -> None:
    """D floats into the cache, `step` numbers apart: as float16, or as int8 with their scale."""
    if not small:
        for i in range(depth):
            u16(at)[i * step] = to_half(x[i])
        return
    largest = np.float32(0)
    for i in range(depth):
        largest = max(largest, abs(x[i]))
    u16(scale_at)[0] = to_half(max(largest / LARGEST_INT8, LEAST_SCALE))
    scale = half(scale_at)
    for i in range(depth):
        s8(at)[i * step] = np.int8(min(max(np.rint(x[i] / scale), -LARGEST_INT8), LARGEST_INT8))


def make_rope(small: int) -> Callable[[int, int, int], None]:
    """Queries turned, scaled and gathered by kv head into q [kv heads, tokens * group, D] float32; keys
    turned, and with the values written to their slots, float16 or (`small`) int8. The first `items` heads of
    a row: all, or the queries'.
    """
    size = 1 if small else 2  # bytes of a number in the cache

    def rope(args: int, thread: int, n: int) -> None:
        (count_at, positions, slots, qkv, qkv_step, cos, sin, turned, q, q_step, pool, block_step, kv_step,
         head_step, block_size, heads, kv_heads, depth, scales, scales_kv_step, scales_head_step,
         scale_bits, items) = unpack(args, 23)  # fmt: skip
        group, scale = heads // kv_heads, as_float(scale_bits)
        for item in range(thread, i64(count_at)[0] * items, n):
            t, h = item // items, item % items
            x, angles = f32(qkv + t * qkv_step + h * depth * 4), i64(positions)[t] * turned * 4
            c, s = f32(cos + angles), f32(sin + angles)
            block, place = i64(slots)[t] // block_size * block_step, i64(slots)[t] % block_size
            page = pool + block
            if h < heads:
                to = f32(q + h // group * q_step + (t * group + h % group) * depth * 4)
                for i in range(turned):
                    to[i] = (x[i] * c[i] - x[i + turned] * s[i]) * scale
                    to[i + turned] = (x[i + turned] * c[i] + x[i] * s[i]) * scale
                for i in range(2 * turned, depth):
                    to[i] = x[i] * scale
            elif h < heads + kv_heads:
                head, at = h - heads, place // 16 * depth * 16 + place % 16  # 16 keys lie [D, 16]
                for i in range(turned):
                    low, high = x[i], x[i + turned]
                    x[i] = low * c[i] - high * s[i]
                    x[i + turned] = high * c[i] + low * s[i]
                key = page + head * head_step + at * size
                _write(small, x, depth, 16, key, scales + block + head * scales_head_step + place * 2)
            else:
                head = h - heads - kv_heads
                value = page + kv_step + head * head_step + place * depth * size
                scale_at = scales + block + scales_kv_step + head * scales_head_step + place * 2
                _write(small, x, depth, 1, value, scale_at)

    return rope


@njit
def _value(fmt: int, values: np.ndarray, b: int, k: int) -> int:
    """Input k of a group as the unsigned number that is stored, in byte b of a strip's words."""
    h, j = k // 16, k % 16 // 4
    if fmt in (INT2K, INT3K):
        two = values[64 * h + b] >> 2 * j & 3
        return (values[128 + b] >> (4 * h + j) & 1) << 2 | two if fmt == INT3K else two
    if fmt == INT6:
        low = values[128 * h + 64 * (j // 2) + b] >> 4 * (j % 2) & 15
        return (values[256 + 64 * h + b] >> 2 * j & 3) << 4 | low
    low = values[64 * j + b] >> 4 * h & 15
    return (values[256 + b] >> (4 * h + j) & 1) << 4 | low if fmt in (INT5, INT5K) else low


@njit
def _weight(fmt: int, group: int, super_scales: int, strip: int, lane: int, k: int) -> float:
    """Input k of a group, in a row's lane of a strip, as the number it was before packing."""
    values, scales, row = u8(group + strip * STRIP[fmt]), group + SCALES[fmt], strip * 16 + lane
    h, b, shared = k // 16, lane * 4 + k % 4, super_scales + 2 * row
    if fmt == INT8:
        q = np.float32(values[256 * h + 64 * (k % 16 // 4) + b]) - np.float32(128)
        return half(scales + 2 * row) * q
    q = np.float32(_value(fmt, values, b, k))
    if fmt in (IQ4, FP4):
        return half(scales + 2 * row) * np.float32(TABLED_ROWS[fmt - IQ4, int(q)])
    if fmt in (INT4, INT5):
        return half(scales + 2 * row) * q + half(scales + 64 + 2 * row)
    if fmt == INT4Z:
        return half(scales + 2 * row) * (q + half(scales + 64 + 2 * row))
    if fmt in (INT4K, INT5K):
        scale, minimum = np.float32(u8(scales)[row]), np.float32(u8(scales)[32 + row])
        return half(shared) * scale * q + half(shared + 64) * minimum
    if fmt == INT2K:
        scale, minimum = u8(scales)[32 * h + row] & 15, u8(scales)[32 * h + row] >> 4
        return half(shared) * np.float32(scale) * q + half(shared + 64) * np.float32(minimum)
    zero = np.float32(4 if fmt == INT3K else 32)
    return half(shared) * np.float32(s8(scales)[32 * h + row]) * (q - zero)


def make_embed() -> Callable[[int, int, int], None]:
    """hidden[t] = scale * row token_ids[t] of a packed table."""

    def embed(args: int, thread: int, n: int) -> None:
        count_at, ids, table, fmt, groups, hidden, hidden_step, width, scale = unpack(args, 9)
        span, by = SPAN[fmt], as_float(scale)
        for t in range(thread, i64(count_at)[0], n):
            row, out = i64(ids)[t], f32(hidden + t * hidden_step)
            for k in range(width):
                g = k // GROUP
                at = table + (row // 32 * (groups // span) + g // span) * SUPER[fmt]
                group = at + g % span * PAIR[fmt]
                weight = _weight(fmt, group, at + span * PAIR[fmt], row // 16 % 2, row % 16, k % GROUP)
                out[k] = weight * by

    return embed
