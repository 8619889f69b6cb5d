"""Packing by numpy, a slice of rows at a time: every format, slowly.

streams.py has compiled loops for the usual ones, which the tests hold to this, bit for bit. A slice's values
and scales are put into the order of layout.py by transposing; a few bits of a byte are then folded together
where a format keeps them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..weights import (
    Dense,
    Fp8,
    Int2K,
    Int3K,
    Int4,
    Int4K,
    Int4T,
    Int4Z,
    Int5,
    Int5K,
    Int6,
    Int8,
    Weight,
)
from .layout import (
    FP4,
    GROUP,
    INT3K,
    INT4,
    INT4K,
    INT4Z,
    INT5,
    INT5K,
    INT6,
    INT8,
    IQ4,
    PAIR,
    ROWS,
    SCALES,
    SPAN,
    STRIP,
)

SLICE = 1 << 20  # weights packed at once
TOP = np.uint32(0x80808080)  # adds 128 to four signed bytes
Array = NDArray[Any]


def fill_plainly(fmt: int, out: Array, weight: Weight) -> None:
    """out [pairs, supers, SUPER] = a whole matrix; the pairs need not be neighbours."""
    step = max(1, SLICE // weight.shape[1] // ROWS)
    for pair in range(0, len(out), step):
        some = out[pair : pair + step]
        lo, hi = pair * ROWS, min(weight.shape[0], (pair + len(some)) * ROWS)
        _fill(fmt, some, *_take(weight, lo, hi))


def _take(weight: Weight, lo: int, hi: int) -> tuple[Array, list[Array], list[Array]]:
    """Rows lo to hi: unsigned values as uint32 [n, words], scales [n, groups] and shared scales [n, supers],
    in the order of the layout.
    """

    def arrays(*names: str) -> list[Array]:
        return [getattr(weight, name)[lo:hi].numpy() for name in names]

    def shared() -> list[Array]:
        scale, minimum = arrays("super_scale", "super_minimum")
        return [scale, -minimum]  # tiles add

    def by_group(*names: str) -> list[Array]:
        """float16, one per group of 32."""
        groups = weight.shape[1] // GROUP
        return [np.repeat(x, groups // x.shape[1], 1).astype(np.float16) for x in arrays(*names)]

    match weight:
        case Int4():
            return _words(weight.packed[lo:hi]), by_group("scale", "minimum"), []
        case Int4T():
            return _words(weight.packed[lo:hi]), by_group("scale"), []
        case Int4Z():
            scale, zero = by_group("scale", "zero")
            return _words(weight.packed[lo:hi]), [scale, -zero], []
        case Int4K():
            return _words(weight.packed[lo:hi]), arrays("scale", "minimum"), shared()
        case Int5():
            return _words(weight.values[lo:hi]), by_group("scale", "minimum"), []
        case Int5K():
            return _words(weight.values[lo:hi]), arrays("scale", "minimum"), shared()
        case Int2K():
            scale, minimum = arrays("scale", "minimum")
            both = scale | minimum << 4
            return _words(weight.values[lo:hi]), [both[:, 0::2], both[:, 1::2]], shared()
        case Int3K() | Int6():
            (scale,) = arrays("scale")
            return _words(weight.values[lo:hi]), [scale[:, 0::2], scale[:, 1::2]], arrays("super_scale")
        case Int8():
            return _words(weight.values[lo:hi]) ^ TOP, by_group("scale"), []
        case Dense():
            values, scale = _round_to_int8(weight.values[lo:hi])
            return values.view(np.uint32) ^ TOP, [scale], []
        case Fp8():
            values, scale = _round_to_int8(weight.dequantize(rows=slice(lo, hi)))
            return values.view(np.uint32) ^ TOP, [scale], []


def _words(values: torch.Tensor) -> Array:
    return values.contiguous().numpy().view(np.uint32)


def _round_to_int8(values: torch.Tensor) -> tuple[Array, Array]:
    """Rows [n, K] of any float type -> int8 [n, K filled up], float16 scales [n, groups]."""
    rows, width = values.shape
    x = np.zeros((rows, -(-width // GROUP), GROUP), np.float32)
    x.reshape(rows, -1)[:, :width] = values.float().numpy()
    scale = (np.abs(x).max(-1) / 127).astype(np.float16)
    step = np.where(scale > 0, scale, np.inf).astype(np.float32)[..., None]
    return np.clip(np.rint(x / step), -127, 127).astype(np.int8).reshape(rows, -1), scale


def _fill(fmt: int, out: Array, words: Array, scales: Sequence[Array], shared: Sequence[Array]) -> None:
    """Write some pairs of a stream."""
    (pairs, supers, _), span = out.shape, SPAN[fmt]
    body = out[..., : span * PAIR[fmt]].reshape(pairs, supers, span, PAIR[fmt])

    def by_pair(rows: Array, *inner: int) -> Array:
        """[rows, ...] -> [pairs, 2, 16, ...], missing rows zero."""
        missing = np.zeros((pairs * ROWS - len(rows), *rows.shape[1:]), rows.dtype)
        return (np.concatenate([rows, missing]) if len(missing) else rows).reshape(pairs, 2, 16, *inner)

    # [pair, super, group, strip, word, row]
    words = by_pair(words, supers, span, -1).transpose(0, 3, 4, 1, 5, 2)
    values = body[..., : 2 * STRIP[fmt]].view(np.uint32).reshape(pairs, supers, span, 2, -1, 16)
    _fill_values(fmt, values, words)
    at = SCALES[fmt]
    for scale in scales:
        end = at + ROWS * scale.itemsize
        target = body[..., at:end].view(scale.dtype).reshape(pairs, supers, span, 2, 16)
        target[...] = by_pair(scale, supers, span).transpose(0, 3, 4, 1, 2)
        at = end
    at = span * PAIR[fmt]
    for scale in shared:
        target = out[..., at : at + 2 * ROWS].view(np.float16).reshape(pairs, supers, 2, 16)
        target[...] = by_pair(scale, supers).transpose(0, 3, 1, 2)
        at += 2 * ROWS


def _fill_values(fmt: int, out: Array, words: Array) -> None:
    """Four inputs of a row are a word, or eight where they are nibbles; six bits are split into 4 and 2."""

    def bits(at: int, width: int) -> Array:
        """The bits of every byte from `at` on."""
        return words >> np.uint32(at) & np.uint32(0x01010101 * (2**width - 1))

    if fmt in (INT4, INT4K, INT4Z, INT8, IQ4, FP4):
        out[...] = words
    elif fmt in (INT5, INT5K):
        low = bits(0, 4)
        out[..., :4, :] = low[..., :4, :] | low[..., 4:, :] << np.uint32(4)
        _fold(out[..., 4:, :], bits(4, 1), 8)
    elif fmt == INT6:
        _fold(out[..., :4, :], bits(0, 4), 2)
        _fold(out[..., 4:, :], bits(4, 2), 4)
    else:
        _fold(out[..., :2, :], bits(0, 2), 4)
        if fmt == INT3K:
            _fold(out[..., 2:, :], bits(2, 1), 8)


def _fold(out: Array, words: Array, count: int) -> None:
    """As many neighbouring words become one, each in the next bits of its bytes."""
    out[...] = words[..., 0::count, :]
    for j in range(1, count):
        out[...] |= words[..., j::count, :] << np.uint32(8 // count * j)
