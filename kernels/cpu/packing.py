"""From the canonical formats (kernels/weights.py) to the streams that the tiles read (layout.py).

Int4, Int4K, Int6 and Int8 keep their own bits: a packed matrix stands for the same numbers. Dense is rounded
to Int8 in groups of 32, an error of at most 1/254 of a group's largest value. A number of rows that is no
multiple of 32, and a Dense width that is none, are filled up with zeros. A slice of rows is packed at a time:
beside the result, packing needs little memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..weights import Dense, Int4, Int4K, Int6, Int8, Weight
from .layout import GROUP, INT4, INT4K, INT6, INT8, PAIR, ROWS, SCALES, SPAN, STRIP, SUPER

SLICE = 1 << 20  # weights packed at once
AHEAD = 24576  # bytes fetched in advance, into L2: hardware alone reaches two thirds of the bandwidth
FORMATS: dict[type, int] = {Int4: INT4, Int4K: INT4K, Int6: INT6, Int8: INT8, Dense: INT8}
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one format: one stream."""

    fmt: int
    data: NDArray[np.uint8]  # [pairs, supers, SUPER]
    rows: int  # how many of them are real
    groups: int  # of a row's inputs

    @property
    def ahead(self) -> int:
        """How far to fetch in advance; less where a small matrix would mostly be fetched past its end."""
        return min(AHEAD, self.data.nbytes // 4096 * 64)


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """What CpuOps.pack returns. Gated: one part with gate and up interleaved by pairs, or two parts where
    their formats differ.
    """

    parts: tuple[Part, ...]
    bias: Array  # float32, filled up to whole pairs; gated: gate and up interleaved by pairs
    shape: tuple[int, int]  # rows, inputs
    gated: bool


def pack(weights: Sequence[Weight], bias: torch.Tensor | None, gated: bool) -> PackedLinear:
    """See Ops.pack. Neighbours of one format become one stream."""
    rows, width = sum(w.shape[0] for w in weights), weights[0].shape[1]
    assert all(w.shape[1] == width for w in weights), "stacked matrices have one input"
    runs: list[list[Weight]] = []
    for weight in weights:
        before = runs[-1] if runs and FORMATS[type(runs[-1][0])] == FORMATS[type(weight)] else None
        if before and (gated or before[-1].shape[0] % ROWS == 0):
            before.append(weight)
        else:
            runs.append([weight])
    parts = tuple(_stream(run, gated and len(run) == 2) for run in runs)
    given = np.zeros(rows, np.float32) if bias is None else bias.float().numpy()
    if gated:
        assert len(weights) == 2 and weights[0].shape == weights[1].shape, "gate and up have one shape"
        filled = np.zeros((2, -(-rows // 2 // ROWS) * ROWS), np.float32)
        filled[:, : rows // 2] = given.reshape(2, -1)
        laid = np.ascontiguousarray(filled.reshape(2, -1, ROWS).swapaxes(0, 1))
    else:
        laid = np.append(given, np.zeros(ROWS, np.float32))
    return PackedLinear(parts, laid, (rows, width), gated)


def _stream(weights: Sequence[Weight], interleaved: bool) -> Part:
    """Matrices of one format one below the other, or two of them pair by pair."""
    fmt, groups = FORMATS[type(weights[0])], -(-weights[0].shape[1] // GROUP)
    pairs = [-(-w.shape[0] // ROWS) for w in weights]
    data = _aligned(sum(pairs), groups // SPAN[fmt], SUPER[fmt])
    begin = 0
    for i, weight in enumerate(weights):
        _pack_matrix(data[i::2] if interleaved else data[begin : begin + pairs[i]], weight)
        begin += pairs[i]
    return Part(fmt, data, sum(w.shape[0] for w in weights), groups)


def _aligned(*shape: int) -> NDArray[np.uint8]:
    """Zeros from a 64-byte border on, so that no vector straddles two cache lines."""
    size = int(np.prod(shape))
    raw = np.zeros(size + 64, np.uint8)
    return raw[-raw.ctypes.data % 64 :][:size].reshape(shape)


def _pack_matrix(out: Array, weight: Weight) -> None:
    """out [pairs, supers, SUPER] = a whole matrix."""
    fmt, step = FORMATS[type(weight)], max(1, SLICE // weight.shape[1] // ROWS)
    for pair in range(0, len(out), step):
        some = out[pair : pair + step]
        lo, hi = pair * ROWS, min(weight.shape[0], (pair + len(some)) * ROWS)
        words, scales, shared = _take(weight, lo, hi)
        _fill(fmt, some, words, scales, shared)


def _take(weight: Weight, lo: int, hi: int) -> tuple[Array, list[Array], list[Array]]:
    """Rows lo to hi: values as uint32 [n, words], scales [n, groups] and shared scales [n, supers] in the
    order of the layout.
    """

    def arrays(*names: str) -> list[Array]:
        return [getattr(weight, name)[lo:hi].numpy() for name in names]

    match weight:
        case Int4():
            return _words(weight.packed[lo:hi]), arrays("scale", "minimum"), []
        case Int4K():
            scale, minimum = arrays("super_scale", "super_minimum")
            return _words(weight.packed[lo:hi]), arrays("scale", "minimum"), [scale, -minimum]  # tiles add
        case Int6():
            (scale,) = arrays("scale")
            return _words(weight.values[lo:hi]), [scale[:, 0::2], scale[:, 1::2]], arrays("super_scale")
        case Int8():
            return _words(weight.values[lo:hi]), arrays("scale"), []
        case Dense():
            values, scale = _round_to_int8(weight.values[lo:hi])
            return values.view(np.uint32), [scale], []


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
    if fmt in (INT4, INT4K):
        out[...] = words
    elif fmt == INT8:
        np.bitwise_xor(words, np.uint32(0x80808080), out=out)
    else:
        low, high = words & np.uint32(0x0F0F0F0F), words >> np.uint32(4) & np.uint32(0x03030303)
        out[..., :4, :] = low[..., 0::2, :] | low[..., 1::2, :] << np.uint32(4)
        out[..., 4:, :] = high[..., 0::4, :]
        for j in (1, 2, 3):
            out[..., 4:, :] |= high[..., j::4, :] << np.uint32(2 * j)
