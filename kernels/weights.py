"""Weight matrices as the engine hands them to a backend: plain tensors in one canonical layout per format.

A format says how a matrix lies in memory. A backend's `pack` turns these into whatever its kernels read
best; nothing else looks inside. Words: N output rows, K inputs; a group is 32 inputs of one row, a
super-group 256. All tensors are contiguous and on the processor. This file knows nothing of checkpoints:
engine/formats maps each source type to one of these, exactly where the source allows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

GROUP, SUPER_GROUP = 32, 256


def unpack_nibbles(packed: Tensor) -> Tensor:
    """uint8 [N, K / 2] -> uint8 [N, K]. Byte j of a group's 16 holds input j below and input 16 + j above."""
    groups = packed.view(packed.shape[0], -1, 1, GROUP // 2)
    return torch.cat([groups & 15, groups >> 4], 2).view(packed.shape[0], -1)


def per_input(values: Tensor, width: int) -> Tensor:
    """[N, K / width] -> [N, K]: each value repeated for the inputs it belongs to."""
    return values.repeat_interleave(width, 1)


@dataclass(frozen=True, slots=True)
class Dense:
    """Unquantized values [N, K], float32, float16 or bfloat16."""

    values: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return self.values.to(dtype)


@dataclass(frozen=True, slots=True)
class Int4:
    """w = scale * q + minimum, per group of 32: GGUF Q4_0 (minimum = -8 * scale) and Q4_1."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # float16 [N, K / 32]
    minimum: Tensor  # float16 [N, K / 32]

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.packed.shape[1] * 2

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        scale, minimum = (per_input(x.to(dtype), GROUP) for x in (self.scale, self.minimum))
        return unpack_nibbles(self.packed).to(dtype) * scale + minimum


@dataclass(frozen=True, slots=True)
class Int4K:
    """w = (super_scale * scale) * q - super_minimum * minimum: Q4_K's two levels kept, 4.63 bits a weight."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # uint8 [N, K / 32], 6 bits used
    minimum: Tensor  # uint8 [N, K / 32], 6 bits used
    super_scale: Tensor  # float16 [N, K / 256]
    super_minimum: Tensor  # float16 [N, K / 256]

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.packed.shape[1] * 2

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        scale, minimum = (per_input(x.to(dtype), GROUP) for x in (self.scale, self.minimum))
        first, second = (per_input(x.to(dtype), SUPER_GROUP) for x in (self.super_scale, self.super_minimum))
        return first * scale * unpack_nibbles(self.packed).to(dtype) - second * minimum


@dataclass(frozen=True, slots=True)
class Int6:
    """w = (super_scale * scale) * (q - 32), a scale per 16 inputs: Q6_K, 6.56 bits a weight once packed."""

    values: Tensor  # uint8 [N, K], 0 to 63
    scale: Tensor  # int8 [N, K / 16]
    super_scale: Tensor  # float16 [N, K / 256]

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        scale = per_input(self.scale.to(dtype), GROUP // 2)
        return (self.values.to(dtype) - 32) * (per_input(self.super_scale.to(dtype), SUPER_GROUP) * scale)


@dataclass(frozen=True, slots=True)
class Int8:
    """w = scale * q, per group of 32: GGUF Q8_0."""

    values: Tensor  # int8 [N, K]
    scale: Tensor  # float16 [N, K / 32]

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return self.values.to(dtype) * per_input(self.scale.to(dtype), GROUP)


Weight = Dense | Int4 | Int4K | Int6 | Int8
