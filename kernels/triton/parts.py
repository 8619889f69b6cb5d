"""What packed matrices are to the kernels: `Part`, rows of one format that one launch multiplies.

Weights are taken 64 inputs at a time, a chunk, in two halves of 32. Scales and offsets lie group by group,
[groups, N], so that the rows of a tile read theirs side by side. Where inline assembly takes bytes apart, the
middle two of each four are swapped: two instructions then give the halves of registers in order.

    centred    w = scale * (q - 8) for int4, scale * q for int8 and fp8
    zero       w = scale * (q - offset), offset a whole number
    minimum    w = scale * q + offset
    two_level  w = (coarse[0] * scale) * q - (coarse[1] * offset), coarse per 256 inputs: Q4_K as it is
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

CHUNK, HALF = 64, 32
SUPER = 256  # inputs that share a coarse scale
ROW = 0  # the group of scales that are a whole row's
ROW_DIMENSION = {"values": 0, "scale": -1, "offset": -1, "coarse": -1}  # where a part's tensors have its rows
Format = Literal["dense", "int4", "int8", "fp8"]
Mode = Literal["centred", "zero", "minimum", "two_level"]


@dataclass(frozen=True, slots=True)
class Part:
    """Matrix rows [N, K] of one format. Widths are filled up with zeros to a multiple of 64."""

    format: Format
    values: Tensor  # [N, padded K], of int4 [N, padded K / 2]
    width: int  # K
    mode: Mode = "centred"
    group: int = ROW  # 32 or a multiple of 64 inputs share a scale, or the row
    scale: Tensor | None = None  # [groups, N]: float32 or float16; two_level: uint8
    offset: Tensor | None = None  # [groups, N]
    coarse: Tensor | None = None  # float16 [2, supers, N]
    swapped: bool = False  # the middle two of each four bytes

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.width

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Those there are, by name."""
        found = {name: getattr(self, name) for name in ROW_DIMENSION}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    @property
    def kind(self) -> tuple[object, ...]:
        """Parts that agree in this can be stacked."""
        dtypes = tuple((name, tensor.dtype) for name, tensor in self.tensors.items())
        return self.format, self.width, self.mode, self.group, self.swapped, dtypes

    def change(self, function: Callable[[Tensor, int], Tensor]) -> Part:
        """function(tensor, dimension of its rows) for each tensor."""
        return self.having({n: function(t, ROW_DIMENSION[n]).contiguous() for n, t in self.tensors.items()})

    def having(self, tensors: dict[str, Any]) -> Part:
        """The same with other tensors."""
        return replace(self, **tensors)


def stack(parts: Sequence[Part]) -> Part:
    """Parts of one kind as one."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: [part.tensors[name] for part in parts] for name in parts[0].tensors}
    return parts[0].having({n: torch.cat(tensors, ROW_DIMENSION[n]) for n, tensors in columns.items()})


def interleave(gate: Part, up: Part) -> Part:
    """Two parts of one kind, row by row: a tile then has a gate and what it is for."""

    def mix(tensor: Tensor, rows: int) -> Tensor:
        halves = tensor.unflatten(rows, (2, -1))
        return halves.transpose(0, 1).flatten(0, 1) if rows == 0 else halves.transpose(-1, -2).flatten(-2)

    return stack([gate, up]).change(mix)


def grouped(width: int, scale: Tensor, offset: Tensor | None = None) -> dict[str, Any]:
    """A part's scales and offsets from those of a weight [N, groups]: groups that are neither 32 nor a
    multiple of 64 inputs are taken as several, a last half chunk gets zeros.
    """
    group = width // scale.shape[1]
    if scale.shape[1] == 1 and offset is None:
        return {"group": ROW, "scale": scale.T.contiguous()}
    times = 1 if group % CHUNK == 0 else group // HALF
    group //= times

    def lay(values: Tensor) -> Tensor:
        repeated = values.repeat_interleave(times, 1)
        return pad_inputs(repeated, max(1, CHUNK // group)).T.contiguous()

    return {"group": group, "scale": lay(scale), "offset": None if offset is None else lay(offset)}


def swap_middle(values: Tensor) -> Tensor:
    """uint8 [N, K], the middle two of each four bytes exchanged."""
    return values.unflatten(-1, (-1, 4))[..., [0, 2, 1, 3]].flatten(-2)


def pad_inputs(values: Tensor, multiple: int) -> Tensor:
    """[N, K] filled up with zeros on the right."""
    return torch.nn.functional.pad(values, (0, -values.shape[-1] % multiple))
