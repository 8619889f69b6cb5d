"""Weight matrices as the engine hands them to a backend: plain tensors in one canonical layout per format.

A format says how a matrix lies in memory. A backend's `pack` turns these into whatever its kernels read
best; nothing else looks inside. Words: N output rows, K inputs, G groups of a row; the K / G inputs of a
group, a multiple of 32, share a scale: float16, or float32 where float16 would round it. A super-group is 256
inputs. All tensors are contiguous and on the processor. This file knows nothing of checkpoints:
engine/formats maps each source type to one of these, exactly where it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

GROUP = 32
# The sixteen values of IQ4_NL and IQ4_XS (llama.cpp, ggml-common.h), and twice those of a four-bit float (OCP
# Microscaling Formats 1.0, E2M1).
TABLES = {
    "iq4": (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113),
    "fp4": (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12),
}


def unpack_nibbles(packed: Tensor) -> Tensor:
    """uint8 [N, K / 2] -> uint8 [N, K]. Byte j of a group's 16 holds input j below and input 16 + j above."""
    groups = packed.view(packed.shape[0], -1, 1, GROUP // 2)
    return torch.cat([groups & 15, groups >> 4], 2).view(packed.shape[0], -1)


def pack_nibbles(values: Tensor) -> Tensor:
    """uint8 [N, K], 0 to 15 -> uint8 [N, K / 2], as unpack_nibbles reads it."""
    groups = values.view(values.shape[0], -1, 2, GROUP // 2)
    return (groups[:, :, 0] | groups[:, :, 1] << 4).view(values.shape[0], -1)


def per_input(values: Tensor, width: int) -> Tensor:
    """[N, groups] -> [N, width]: each value repeated for the inputs it belongs to."""
    return values.repeat_interleave(width // values.shape[1], 1)


class _Bytes:
    """A format with a byte or more for each weight."""

    __slots__ = ()
    values: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]


class _Nibbles:
    """A format with two weights in a byte."""

    __slots__ = ()
    packed: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.packed.shape[1] * 2


@dataclass(frozen=True, slots=True)
class Dense(_Bytes):
    """Unquantized values [N, K], float32, float16 or bfloat16."""

    values: Tensor

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return self.values.to(dtype)


@dataclass(frozen=True, slots=True)
class Int2K(_Bytes):
    """w = (super_scale * scale) * q - super_minimum * minimum, both per 16 inputs: Q2_K."""

    values: Tensor  # uint8 [N, K], 0 to 3
    scale: Tensor  # uint8 [N, K / 16], 4 bits used
    minimum: Tensor  # uint8 [N, K / 16], 4 bits used
    super_scale: Tensor  # float16 [N, K / 256]
    super_minimum: Tensor  # float16 [N, K / 256]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _two_levels(self, self.values, dtype)


@dataclass(frozen=True, slots=True)
class Int3K(_Bytes):
    """w = (super_scale * scale) * (q - 4), a scale per 16 inputs: Q3_K."""

    values: Tensor  # uint8 [N, K], 0 to 7
    scale: Tensor  # int8 [N, K / 16]
    super_scale: Tensor  # float16 [N, K / 256]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _centred(self, 4, dtype)


@dataclass(frozen=True, slots=True)
class Int4(_Nibbles):
    """w = scale * q + minimum: GGUF Q4_0 (minimum = -8 * scale) and Q4_1."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # [N, G]
    minimum: Tensor  # [N, G]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _affine(self, unpack_nibbles(self.packed), dtype)


@dataclass(frozen=True, slots=True)
class Int4T(_Nibbles):
    """w = scale * TABLES[table][q]: IQ4_NL, IQ4_XS, MXFP4."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # [N, G]
    table: str

    def as_int8(self) -> Int8:
        """The same numbers."""
        values = torch.tensor(TABLES[self.table], dtype=torch.int8)
        return Int8(values[unpack_nibbles(self.packed).long()], self.scale)

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return self.as_int8().dequantize(dtype)


@dataclass(frozen=True, slots=True)
class Int4Z(_Nibbles):
    """w = scale * (q - zero): GPTQ, AWQ, compressed-tensors. scale * zero has more digits than float16."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # [N, G]
    zero: Tensor  # uint8 [N, G], 0 to 16

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        values = unpack_nibbles(self.packed)
        scale, zero = (per_input(x.to(dtype), values.shape[1]) for x in (self.scale, self.zero))
        return scale * (values.to(dtype) - zero)


@dataclass(frozen=True, slots=True)
class Int4K(_Nibbles):
    """w = (super_scale * scale) * q - super_minimum * minimum, both per 32: Q4_K, 4.63 bits a weight."""

    packed: Tensor  # uint8 [N, K / 2], see unpack_nibbles
    scale: Tensor  # uint8 [N, K / 32], 6 bits used
    minimum: Tensor  # uint8 [N, K / 32], 6 bits used
    super_scale: Tensor  # float16 [N, K / 256]
    super_minimum: Tensor  # float16 [N, K / 256]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _two_levels(self, unpack_nibbles(self.packed), dtype)


@dataclass(frozen=True, slots=True)
class Int5(_Bytes):
    """w = scale * q + minimum: GGUF Q5_0 (minimum = -16 * scale) and Q5_1."""

    values: Tensor  # uint8 [N, K], 0 to 31
    scale: Tensor  # [N, G]
    minimum: Tensor  # [N, G]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _affine(self, self.values, dtype)


@dataclass(frozen=True, slots=True)
class Int5K(_Bytes):
    """w = (super_scale * scale) * q - super_minimum * minimum, both per 32: Q5_K."""

    values: Tensor  # uint8 [N, K], 0 to 31
    scale: Tensor  # uint8 [N, K / 32], 6 bits used
    minimum: Tensor  # uint8 [N, K / 32], 6 bits used
    super_scale: Tensor  # float16 [N, K / 256]
    super_minimum: Tensor  # float16 [N, K / 256]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _two_levels(self, self.values, dtype)


@dataclass(frozen=True, slots=True)
class Int6(_Bytes):
    """w = (super_scale * scale) * (q - 32), a scale per 16 inputs: Q6_K, 6.56 bits a weight once packed."""

    values: Tensor  # uint8 [N, K], 0 to 63
    scale: Tensor  # int8 [N, K / 16]
    super_scale: Tensor  # float16 [N, K / 256]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return _centred(self, 32, dtype)


@dataclass(frozen=True, slots=True)
class Int8(_Bytes):
    """w = scale * q: GGUF Q8_0, and whatever are 8-bit numbers; a group may be the whole row."""

    values: Tensor  # int8 [N, K]
    scale: Tensor  # [N, G]

    def dequantize(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """The true matrix [N, K]."""
        return self.values.to(dtype) * per_input(self.scale.to(dtype), self.values.shape[1])


@dataclass(frozen=True, slots=True)
class Fp8(_Bytes):
    """w = scale * value, one scale per block of rows and inputs: a tensor, a row, or 128 x 128."""

    values: Tensor  # float8_e4m3fn [N, K]
    scale: Tensor  # float32 [ceil(N / block[0]), ceil(K / block[1])]
    block: tuple[int, int]

    def dequantize(self, dtype: torch.dtype = torch.float32, rows: slice = slice(None)) -> Tensor:
        """The true matrix [N, K], or some rows of it."""
        height, width = self.block
        which = torch.arange(len(self.values))[rows] // height
        scale = self.scale[which].to(dtype).repeat_interleave(width, 1)[:, : self.values.shape[1]]
        return self.values[rows].to(dtype) * scale


Weight = Dense | Int2K | Int3K | Int4 | Int4T | Int4Z | Int4K | Int5 | Int5K | Int6 | Int8 | Fp8


@dataclass(frozen=True, slots=True)
class Pieces:
    """A matrix [N, K] that need not be in memory as a whole: its rows are made when they are packed."""

    shape: tuple[int, int]
    make: Callable[[int, int], Weight]  # the rows from one to before another


Matrix = Weight | Pieces


def whole(weight: Matrix) -> Weight:
    """A matrix at once, for backends that pack it so."""
    return weight.make(0, weight.shape[0]) if isinstance(weight, Pieces) else weight


def _affine(weight: Int4 | Int5, values: Tensor, dtype: torch.dtype) -> Tensor:
    scale, minimum = (per_input(x.to(dtype), values.shape[1]) for x in (weight.scale, weight.minimum))
    return values.to(dtype) * scale + minimum


def _two_levels(weight: Int2K | Int4K | Int5K, values: Tensor, dtype: torch.dtype) -> Tensor:
    width = values.shape[1]
    scale, minimum = (per_input(x.to(dtype), width) for x in (weight.scale, weight.minimum))
    first, second = (per_input(x.to(dtype), width) for x in (weight.super_scale, weight.super_minimum))
    return first * scale * values.to(dtype) - second * minimum


def _centred(weight: Int3K | Int6, zero: int, dtype: torch.dtype) -> Tensor:
    width = weight.values.shape[1]
    scale = per_input(weight.super_scale.to(dtype), width) * per_input(weight.scale.to(dtype), width)
    return (weight.values.to(dtype) - zero) * scale
