"""The compiled half of packing: rows of a canonical format to pairs of a stream (layout.py draws both ends).

A kernel here fills the pairs `first`, `first + step`, ... of one matrix. What a row's missing neighbours
would hold stays as it is, zero. Knows no tensors: packing.py gives addresses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from .layout import GROUP, INT4, INT4K, INT6, INT8, MAGIC, PAIR, ROWS, SCALES, SPAN, STRIP, SUPER, TABLED
from .machine import as_float, f32, half, to_half, u8, u16, u32, unpack

FLOAT32, FLOAT16, BFLOAT16 = range(3)
LOW, HIGH, TOP = np.uint32(0x0F0F0F0F), np.uint32(0x03030303), np.uint32(0x80808080)
SIGN = np.uint16(0x8000)
LARGEST_INT8, ROUND = np.float32(127), np.float32(MAGIC)


def make_fill(fmt: int) -> Callable[[int, int, int], None]:
    """Int4, Int4T, Int4K, Int6 or Int8: values and scales change places, no bit of them is lost."""
    span, pair_bytes, super_bytes, strip, at = SPAN[fmt], PAIR[fmt], SUPER[fmt], STRIP[fmt], SCALES[fmt]
    nibbled, half_scaled = fmt in (INT4, INT4K, *TABLED), fmt in (INT4, INT8, *TABLED)
    width = 4 if nibbled else 8  # words of a group

    def fill(args: int, first: int, step: int) -> None:
        out, pair_step, rows, groups, nibbles, whole, scales, minima, shared, shared_minima = unpack(args, 10)
        values = nibbles + whole  # a format has one of them, the other is 0
        supers = groups // span
        for pair in range(first, (rows + ROWS - 1) // ROWS, step):
            for g in range(groups):
                super_at = out + pair * pair_step + g // span * super_bytes
                group = super_at + g % span * pair_bytes
                for r in range(min(ROWS, rows - pair * ROWS)):
                    row = pair * ROWS + r
                    x = u32(values + (row * groups + g) * 4 * width)
                    to = u32(group + r // 16 * strip + r % 16 * 4)
                    if nibbled:
                        for j in range(4):
                            to[16 * j] = x[j]
                    elif fmt == INT8:
                        for j in range(8):
                            to[16 * j] = x[j] ^ TOP
                    else:
                        for j in range(4):
                            to[16 * j] = x[2 * j] & LOW | (x[2 * j + 1] & LOW) << 4
                        for h in range(2):
                            bits = x[4 * h] >> 4 & HIGH
                            for j in range(1, 4):
                                bits |= (x[4 * h + j] >> 4 & HIGH) << 2 * j
                            to[64 + 16 * h] = bits
                    if half_scaled:
                        u16(group + at)[r] = u16(scales)[row * groups + g]
                    if fmt == INT4:
                        u16(group + at)[ROWS + r] = u16(minima)[row * groups + g]
                    if fmt == INT4K:
                        u8(group + at)[r] = u8(scales)[row * groups + g]
                        u8(group + at)[ROWS + r] = u8(minima)[row * groups + g]
                    if fmt == INT6:
                        u8(group + at)[r] = u8(scales)[2 * (row * groups + g)]
                        u8(group + at)[ROWS + r] = u8(scales)[2 * (row * groups + g) + 1]
                    if span > 1 and g % span == 0:
                        both = u16(super_at + span * pair_bytes)
                        both[r] = u16(shared)[row * supers + g // span]
                        if fmt == INT4K:  # tiles add it
                            both[ROWS + r] = u16(shared_minima)[row * supers + g // span] ^ SIGN

    return fill


def make_round(dtype: int) -> Callable[[int, int, int], None]:
    """Rows of floats to Int8: a group's scale is its largest magnitude / 127, as float16."""
    pair_bytes, strip, at = PAIR[INT8], STRIP[INT8], SCALES[INT8]
    size = 4 if dtype == FLOAT32 else 2

    def round_rows(args: int, first: int, step: int) -> None:
        out, pair_step, rows, groups, width, values = unpack(args, 6)
        for pair in range(first, (rows + ROWS - 1) // ROWS, step):
            for g in range(groups):
                group = out + pair * pair_step + g * pair_bytes
                count = min(GROUP, width - g * GROUP)
                for r in range(min(ROWS, rows - pair * ROWS)):
                    x = values + ((pair * ROWS + r) * width + g * GROUP) * size
                    largest = np.float32(0)
                    for k in range(count):
                        magnitude = abs(_value(dtype, x, k))
                        largest = magnitude if magnitude > largest else largest
                    u16(group + at)[r] = to_half(largest / LARGEST_INT8)
                    scale = half(group + at + 2 * r)
                    if scale == 0:
                        scale = np.float32(np.inf)
                    to = u8(group + r // 16 * strip + r % 16 * 4)
                    for k in range(GROUP):
                        q = _value(dtype, x, k) / scale if k < count else np.float32(0)
                        q = min(max(q, -LARGEST_INT8), LARGEST_INT8)
                        to[k // 4 * 64 + k % 4] = np.int32(q + ROUND - ROUND) + 128

    return round_rows


@njit
def _value(dtype: int, at: int, k: int) -> float:
    """Float k from an address on."""
    if dtype == FLOAT32:
        return f32(at)[k]
    if dtype == FLOAT16:
        return half(at + 2 * k)
    return as_float(np.int64(u16(at)[k]) << 16)
