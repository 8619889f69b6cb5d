"""Quantizing unquantized matrices when they are loaded: rounding to the nearest, with scales chosen well.

    int8   32 inputs share a scale, largest / 127: off by at most 1/254 of the largest
    int4   32 inputs share a scale and a minimum, fitted to them: see FITS
    fp8    a row shares a scale, largest / 448: off by at most 1/16 of each value

Some rows at a time: beside the matrix and the result, little memory is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kernels import Dense, Fp8, Int4, Int8, Weight, pack_nibbles

from .numbers import finite

GROUP = 32
SLICE = 1 << 17  # weights at once: they fit a cache
FITS = 2  # how often scale and minimum are fitted to the rounded numbers, and these rounded again
FP8_MAX = 448.0


def quantize(weight: Dense, to: str) -> Weight:
    """`to`: a name in QUANTIZERS. A width that groups of 32 do not fill stays as it is, for int4 and int8."""
    values = weight.values
    return quantize_rows(lambda rows: values[rows].float(), weight.shape, to)


def quantize_rows(rows: Callable[[slice], Tensor], shape: tuple[int, int], to: str) -> Weight:
    """The same for a matrix [N, K] that `rows` gives a few rows of, float32."""
    height, width = shape
    step = max(1, SLICE // width)
    if to != "fp8" and width % GROUP:
        return Dense(torch.cat([rows(slice(lo, lo + step)) for lo in range(0, height, step)]))
    make, convert = QUANTIZERS[to]
    parts = [convert(finite(rows(slice(lo, lo + step)), "weights")) for lo in range(0, height, step)]
    return make(*(torch.cat(tensors) for tensors in zip(*parts, strict=True)))


def _int8(x: Tensor) -> tuple[Tensor, Tensor]:
    groups = x.view(len(x), -1, GROUP)
    scale = (groups.abs().amax(-1) / 127).half()
    return _rounded(groups, scale, -127, 127).to(torch.int8).view(x.shape), scale


def _int4(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Scale and minimum start from the range, then are the best ones for the numbers that came out."""
    groups = x.view(len(x), -1, GROUP)
    minimum, scale = groups.amin(-1), (groups.amax(-1) - groups.amin(-1)) / 15
    mean = groups.mean(-1, keepdim=True)
    for _ in range(FITS):
        q = _rounded(groups - minimum[..., None], scale, 0, 15)
        centred = q - q.mean(-1, keepdim=True)
        spread = centred.square().sum(-1)
        scale = torch.where(spread > 0, (centred * (groups - mean)).sum(-1) / spread, scale)
        minimum = mean[..., 0] - scale * q.mean(-1)
    scale, minimum = scale.half(), minimum.half()
    q = _rounded(groups - minimum.float()[..., None], scale, 0, 15)
    return pack_nibbles(q.to(torch.uint8).view(x.shape)), scale, minimum


def _fp8(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(1, keepdim=True) / FP8_MAX
    return (x / torch.where(scale > 0, scale, 1)).to(torch.float8_e4m3fn), scale


def _rounded(groups: Tensor, scale: Tensor, least: int, most: int) -> Tensor:
    """groups [N, G, 32] in units of their scales [N, G]; all zero where a scale is."""
    inverse = torch.where(scale > 0, 1 / scale.float(), 0.0)
    return (groups * inverse[..., None]).round_().clamp_(least, most)


def _make_fp8(values: Tensor, scale: Tensor) -> Fp8:
    return Fp8(values, scale, (1, values.shape[1]))


# Name -> (makes the weight, what it is made of).
QUANTIZERS: dict[str, tuple[Callable[..., Weight], Callable[[Tensor], tuple[Tensor, ...]]]] = {
    "int4": (Int4, _int4),
    "int8": (Int8, _int8),
    "fp8": (_make_fp8, _fp8),
}
