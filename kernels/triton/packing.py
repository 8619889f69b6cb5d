"""From the formats of kernels/weights.py to what the kernels read: one table says what becomes what.

    Dense                   dense, in the activations' type
    Int4, Int4Z, Int4K      int4, exactly
    Int8, Int4T             int8, exactly
    Int5, Int5K             int8, exactly (the scales of Int5K multiplied out in float32)
    Int6, Int3K, Int2K      int8, rounded anew: their scales belong to 16 inputs, a kernel's to at least 32
    Fp8                     fp8, exactly

Matrices stacked by rows stay apart where their formats differ, each a launch of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

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
    Weight,
    whole,
)
from .fp8 import pack_fp8
from .int4 import pack_int4, pack_int4k, pack_int4z
from .int8 import pack_int5, pack_int5k, pack_int8, pack_rounded
from .parts import CHUNK, Part, interleave, pad_inputs, stack

PACKERS: dict[type, Callable[[Any, bool], Part]] = {
    Int4: pack_int4,
    Int4Z: pack_int4z,
    Int4K: pack_int4k,
    Int4T: lambda weight, swapped: pack_int8(weight.as_int8(), swapped),
    Int8: pack_int8,
    Int5: pack_int5,
    Int5K: pack_int5k,
    Int6: pack_rounded,
    Int3K: pack_rounded,
    Int2K: pack_rounded,
    Fp8: pack_fp8,
}


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """Matrices of one input stacked by rows [N, K]; gate and up row by row."""

    parts: tuple[Part, ...]
    bias: Tensor | None  # float32 [N]
    gated: bool

    @property
    def shape(self) -> tuple[int, int]:
        return sum(part.shape[0] for part in self.parts), self.parts[0].width


def pack_part(weight: Weight, dtype: torch.dtype, swapped: bool) -> Part:
    """One matrix; `dtype` is the activations'."""
    if isinstance(weight, Dense):
        values = weight.values.to(dtype)
        return Part("dense", pad_inputs(values, CHUNK).contiguous(), values.shape[1])
    return PACKERS[type(weight)](weight, swapped)


def pack(
    matrices: Sequence[Matrix],
    bias: Tensor | None,
    gated: bool,
    *,
    dtype: torch.dtype,
    swapped: bool,
    device: torch.device,
) -> PackedMatrix:
    """See Ops.pack. `swapped`: the kernels take bytes apart by inline assembly. A gate and an up that differ
    in format become dense. Raises ValueError where widths differ.
    """
    weights = [whole(matrix) for matrix in matrices]
    widths = {weight.shape[1] for weight in weights}
    if len(widths) != 1:
        raise ValueError(f"Matrices with {sorted(widths)} inputs cannot be stacked; they need the same.")
    parts = [pack_part(weight, dtype, swapped) for weight in weights]
    if gated:
        gate, up = parts
        if gate.kind != up.kind:
            gate, up = (pack_part(Dense(weight.dequantize(dtype)), dtype, swapped) for weight in weights)
        joined = [interleave(gate, up)]
        bias = None if bias is None else bias.view(2, -1).T.flatten()
    else:
        joined = [stack(list(alike)) for _, alike in groupby(parts, key=lambda part: part.kind)]
    placed = tuple(part.change(lambda tensor, _: tensor.to(device)) for part in joined)
    return PackedMatrix(placed, None if bias is None else bias.to(device, torch.float32).contiguous(), gated)
