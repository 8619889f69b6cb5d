"""Integers with scales and zero points, from whatever scheme stored them, to the kernels' formats.

    w[n, k] = scale[n, g] * (q[n, k] - zero[n, g]), g the group that input k is in

Exact where a group is a stretch of 32, 64, ... inputs and, with 8 bits, q - zero fits a signed byte. Else
(inputs grouped by importance: "act-order") the matrix becomes 8-bit numbers in groups of 32, off by at most
1/254 of a group's largest value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernels import Int4Z, Int8, Weight, pack_nibbles

from ..errors import BadCheckpoint
from .numbers import as_stored
from .quantize import quantize_rows

GROUP = 32


def unpack(words: Tensor, bits: int) -> Tensor:
    """int32 [n, words] -> uint8 [n, words * 32 / bits], the lowest bits of a word first. 4 or 8 bits."""
    values = words.contiguous().view(torch.uint8)
    return values if bits == 8 else torch.stack([values & 15, values >> 4], -1).flatten(1)


def from_integers(
    values: Tensor, scale: Tensor, zero: Tensor, bits: int, group_of: Tensor | None = None
) -> Weight:
    """values uint8 [N, K], scale [N, G], zero whole [N, G]; group_of [K]: where groups are no stretches."""
    width, groups = values.shape[1], scale.shape[1]
    if width % groups:
        raise BadCheckpoint(f"The model is damaged: {groups} groups do not divide {width} inputs.")
    scale, stretches = as_stored(scale.contiguous()), torch.arange(width) // (width // groups)
    if group_of is None:
        group_of = stretches
    elif int(group_of.min()) < 0 or int(group_of.max()) >= groups:
        lowest, highest = int(group_of.min()), int(group_of.max())
        raise BadCheckpoint(f"The model is damaged: groups {lowest} to {highest} are named, it has {groups}.")
    if torch.equal(group_of.long(), stretches) and width // groups % GROUP == 0:
        if bits == 4:
            return Int4Z(pack_nibbles(values), scale, zero.to(torch.uint8).contiguous())
        signed = _signed(values, zero, width // groups)
        if signed is not None:
            return Int8(signed, scale)
    which = group_of.long()

    def true_rows(rows: slice) -> Tensor:
        return scale[rows][:, which].float() * (values[rows].float() - zero[rows][:, which].float())

    return quantize_rows(true_rows, (len(values), width), "int8")


def _signed(values: Tensor, zero: Tensor, size: int) -> Tensor | None:
    """values - zero as int8, if that is what they are."""
    if bool((zero == 128).all()):
        return (values ^ 128).view(torch.int8)
    centred = values.short() - zero.short().repeat_interleave(size, 1)
    fits = int(centred.min()) >= -128 and int(centred.max()) <= 127
    return centred.to(torch.int8) if fits else None
