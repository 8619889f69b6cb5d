"""From the canonical formats (kernels/weights.py) to the streams that the tiles read (layout.py).

Integers keep their own bits: a packed matrix stands for the same numbers. Only a float32 scale is rounded to
float16, by at most 1/2048. Dense and Fp8 are rounded to Int8 in groups of 32, an error of at most 1/254 of a
group's largest value. A number of rows that is no multiple of 32, and a width of those two that is none, are
filled up with zeros. The loops of the usual formats are compiled (streams.py) and leave the interpreter to
other threads: a loader packs several matrices at once; plain_packing.py does the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..ops import Stored
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
    Matrix,
    Pieces,
    Weight,
)
from .layout import (
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
    ROWS,
    SPAN,
    SUPER,
)
from .machine import SOURCES, compiled
from .plain_packing import fill_plainly
from .streams import BFLOAT16, FLOAT16, FLOAT32, make_fill, make_round

FORMATS: dict[type, int] = {
    **{Int4: INT4, Int4K: INT4K, Int6: INT6, Int8: INT8, Dense: INT8, Fp8: INT8},
    **{Int4Z: INT4Z, Int5: INT5, Int5K: INT5K, Int2K: INT2K, Int3K: INT3K},
}
TABLED = {"iq4": IQ4, "fp4": FP4}
# what a matrix may consist of, in the order in which streams.py takes their addresses
TENSORS = ("packed", "values", "scale", "minimum", "super_scale", "super_minimum")
DTYPES = {torch.float32: FLOAT32, torch.float16: FLOAT16, torch.bfloat16: BFLOAT16}  # of Dense matrices
PIECE = 1 << 22  # values of a matrix that are in memory twice while it is packed
OWN_MAPPING = 1 << 20  # bytes from which zeros are not of the heap
FILL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)  # without the interpreter's lock
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one format: one stream."""

    fmt: int
    data: NDArray[np.uint8]  # [pairs, supers, SUPER]
    rows: int  # how many of them are real
    groups: int  # of a row's inputs

    @property
    def pair_size(self) -> int:
        """Bytes of a pair of strips."""
        return self.groups // SPAN[self.fmt] * SUPER[self.fmt]


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """What CpuOps.pack returns. Gated: one part with gate and up interleaved by pairs, or two parts where
    their formats differ.
    """

    parts: tuple[Part, ...]
    bias: Array  # float32, filled up to whole pairs; gated: gate and up interleaved by pairs
    shape: tuple[int, int]  # rows, inputs
    gated: bool


def format_of(weight: Matrix) -> int:
    """What a matrix becomes."""
    if isinstance(weight, Pieces):
        weight = weight.make(0, 1)
    return TABLED[weight.table] if isinstance(weight, Int4T) else FORMATS[type(weight)]


def pack(weights: Sequence[Matrix], bias: torch.Tensor | None, gated: bool) -> PackedLinear:
    """See Ops.pack. Neighbours of one format become one stream."""
    rows, width = sum(w.shape[0] for w in weights), weights[0].shape[1]
    assert all(w.shape[1] == width for w in weights), "stacked matrices have one input"
    runs: list[tuple[int, list[Matrix]]] = []
    for weight in weights:
        fmt, before = format_of(weight), runs[-1] if runs else None
        if before and before[0] == fmt and (gated or before[1][-1].shape[0] % ROWS == 0):
            before[1].append(weight)
        else:
            runs.append((fmt, [weight]))
    parts = tuple(_stream(fmt, run, gated and len(run) == 2) for fmt, run in runs)
    given = np.zeros(rows, np.float32) if bias is None else bias.float().numpy()
    if gated:
        assert len(weights) == 2 and weights[0].shape == weights[1].shape, "gate and up have one shape"
        filled = np.zeros((2, -(-rows // 2 // ROWS) * ROWS), np.float32)
        filled[:, : rows // 2] = given.reshape(2, -1)
        laid = np.ascontiguousarray(filled.reshape(2, -1, ROWS).swapaxes(0, 1))
    else:
        laid = np.append(given, np.zeros(ROWS, np.float32))
    return PackedLinear(parts, laid, (rows, width), gated)


def _stream(fmt: int, weights: Sequence[Matrix], interleaved: bool) -> Part:
    """Matrices of one format one below the other, or two of them pair by pair."""
    groups = -(-weights[0].shape[1] // GROUP)
    pairs = [-(-w.shape[0] // ROWS) for w in weights]
    data = zeros(sum(pairs), groups // SPAN[fmt], SUPER[fmt], filled=True)
    begin = 0
    for i, weight in enumerate(weights):
        out = data[i::2] if interleaved else data[begin : begin + pairs[i]]
        for first, piece in _pieces(weight):
            _fill(out[first // ROWS : -(-(first + piece.shape[0]) // ROWS)], piece, groups)
        begin += pairs[i]
    return Part(fmt, data, sum(w.shape[0] for w in weights), groups)


def _pieces(weight: Matrix) -> Iterator[tuple[int, Weight]]:
    """A matrix, or its rows as many at a time as make PIECE values, and where each piece begins."""
    if not isinstance(weight, Pieces):
        yield 0, weight
        return
    rows, width = weight.shape
    step = max(1, PIECE // (width * ROWS)) * ROWS
    for begin in range(0, rows, step):
        yield begin, weight.make(begin, min(begin + step, rows))


def zeros(*shape: int, filled: bool = False) -> NDArray[np.uint8]:
    """Zero bytes from a 64-byte border on, so that no vector straddles two cache lines. Large ones are a
    mapping of their own: they take no memory until they are written, and leave no hole behind. The heap would
    give what was used before, and write it. `filled`: all of them will be written, so large pages are best.
    """
    size = int(np.prod(shape))
    if size < OWN_MAPPING:
        raw = np.zeros(size + 64, np.uint8)
        return raw[-raw.ctypes.data % 64 :][:size].reshape(shape)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    mapped = mmap.mmap(-1, size, **private)
    if filled and hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # small pages do as well, a little slower
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, np.uint8).reshape(shape)


def _fill(out: Array, weight: Weight, groups: int) -> None:
    """out [pairs, supers, SUPER] = a whole matrix; the pairs need not be neighbours."""
    rows, width = weight.shape
    tensors = [getattr(weight, name, None) for name in TENSORS]
    addresses = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
    match weight:
        case Dense():
            kernel = compiled(make_round, DTYPES[weight.values.dtype])
            addresses[0] = width  # it takes that where the others take `packed`, which Dense has not
        case Int4() | Int4T() | Int8() if _is_fine(weight.scale, groups):
            kernel = compiled(make_fill, format_of(weight))
        case Int4K() | Int6():
            kernel = compiled(make_fill, format_of(weight))
        case _:
            fill_plainly(format_of(weight), out, weight)
            return
    assert all(tensor is None or tensor.is_contiguous() for tensor in tensors), weight
    args = np.array([out.ctypes.data, out.strides[0], rows, groups, *addresses], np.int64)
    FILL(kernel)(args.ctypes.data, 0, 1)


def _is_fine(scale: torch.Tensor, groups: int) -> bool:
    """Whether scales are those of a stream, one for each group."""
    return scale.dtype == torch.float16 and scale.shape[1] == groups


class PackedStorage:
    """See Storage."""

    layout = f"cpu {SOURCES}"

    def take_apart(self, packed: PackedLinear) -> Stored:
        parts = [(part.fmt, part.rows, part.groups) for part in packed.parts]
        facts = {"parts": parts, "shape": packed.shape, "gated": packed.gated}
        return Stored(facts, (packed.bias, *(part.data for part in packed.parts)))

    def put_together(self, stored: Stored) -> PackedLinear:
        facts, (bias, *streams) = stored.facts, stored.arrays
        parts = []
        for (fmt, rows, groups), data in zip(facts["parts"], streams, strict=True):
            shape = data.shape[0], groups // SPAN[fmt], SUPER[fmt]
            if data.shape != shape or data.shape[0] * ROWS < rows:
                raise ValueError(f"{rows} rows of {groups} groups in an array of {data.shape}")
            parts.append(Part(fmt, data, rows, groups))
        return PackedLinear(tuple(parts), bias, tuple(facts["shape"]), facts["gated"])
