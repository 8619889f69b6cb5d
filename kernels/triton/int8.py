"""Eight-bit integers: how a kernel takes them apart, and activations made eight-bit for the units of
integers.

A byte becomes a float as a nibble does (int4.py): or-ed into a mantissa, less a constant. Int8 lies as it is;
Int5 and Int5K keep their numbers and get eight bits; formats with a scale per 16 inputs are rounded anew, by
at most 1/254 of the largest of 32. A row that shares one scale is also multiplied as integers: see
`quantize_rows`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..weights import Int2K, Int3K, Int5, Int5K, Int6, Int8, per_input
from .parts import CHUNK, HALF, Part, grouped, pad_inputs, swap_middle

_FP16 = """{ .reg .b32 t, m; mov.b32 m, 0x64806480; shr.b32 t, $2, 8;
lop3.b32 $0, $2, 0x00ff00ff, m, 0x6a; lop3.b32 $1, t, 0x00ff00ff, m, 0x6a;
sub.f16x2 $0, $0, m; sub.f16x2 $1, $1, m; }"""
_BF16 = """{ .reg .b32 t, m, s, n; mov.b32 m, 0x43004300; mov.b32 n, 0xbf80bf80; shr.b32 t, $2, 8;
lop3.b32 $0, $2, 0x007f007f, m, 0xea; lop3.b32 s, $2, 0x00800080, m, 0xea; fma.rn.bf16x2 $0, s, n, $0;
lop3.b32 $1, t, 0x007f007f, m, 0xea; lop3.b32 s, t, 0x00800080, m, 0xea; fma.rn.bf16x2 $1, s, n, $1; }"""
FP16, BF16 = tl.constexpr(_FP16), tl.constexpr(_BF16)
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}


@triton.jit
def whole(w, DT: tl.constexpr, ASM: tl.constexpr):
    """uint8 [rows, 32] that are int8 -> their values, exact, in DT."""
    if ASM:
        if tl.bfloat16 == DT:
            return tl.inline_asm_elementwise(BF16, "=r,=r,r", [w], dtype=tl.bfloat16, is_pure=True, pack=4)
        else:
            found = tl.inline_asm_elementwise(FP16, "=r,=r,r", [w], dtype=tl.float16, is_pure=True, pack=4)
            return found.to(DT)
    else:
        return w.to(tl.int8, bitcast=True).to(tl.float32).to(DT)


@triton.jit
def quantize_kernel(X, OUT, SCALE, K, KP: tl.constexpr, LARGEST: tl.constexpr, SWAPPED: tl.constexpr):
    """OUT[r] = X[r] / SCALE[r], of which the largest is LARGEST; in the order of weights that are SWAPPED."""
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, KP)
    x = tl.load(X + row * K + k, mask=k < K, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 0), 1e-30) / LARGEST
    tl.store(SCALE + row, scale)
    x = x / scale
    if OUT.dtype.element_ty == tl.int8:
        x += tl.where(x < 0, -0.5, 0.5)
    place = k
    if SWAPPED:
        place = (k & ~3) | ((k & 1) << 1) | ((k & 2) >> 1)
    tl.store(OUT + row * K + place, x.to(OUT.dtype.element_ty), mask=k < K)


def quantize_rows(x: Tensor, dtype: torch.dtype, swapped: bool) -> tuple[Tensor, Tensor]:
    """An activation [rows, K] as int8 or e4m3, and a float32 scale for each row."""
    out = torch.empty_like(x, dtype=dtype)
    scale = torch.empty(len(x), dtype=torch.float32, device=x.device)
    width = triton.next_power_of_2(x.shape[1])
    quantize_kernel[(len(x),)](
        x, out, scale, x.shape[1], KP=width, LARGEST=LARGEST[dtype], SWAPPED=swapped,
        num_warps=8 if width > 4096 else 4,
    )  # fmt: skip
    return out, scale


def pack_int8(weight: Int8, swapped: bool) -> Part:
    """As it is."""
    return _part(weight.values, swapped, **grouped(weight.shape[1], weight.scale))


def pack_int5(weight: Int5, swapped: bool) -> Part:
    """Its numbers in eight bits, its scales and minimums."""
    scales = grouped(weight.shape[1], weight.scale, weight.minimum)
    return _part(weight.values, swapped, mode="minimum", **scales)


def pack_int5k(weight: Int5K, swapped: bool) -> Part:
    """The same, with both levels of scales multiplied out."""
    groups = weight.scale.shape[1]
    scale = per_input(weight.super_scale.float(), groups) * weight.scale
    minimum = per_input(weight.super_minimum.float(), groups) * weight.minimum
    return _part(weight.values, swapped, mode="minimum", **grouped(weight.shape[1], scale, -minimum))


def pack_rounded(weight: Int2K | Int3K | Int6, swapped: bool) -> Part:
    """Rounded anew, with a scale per 32."""
    groups = weight.dequantize().unflatten(1, (-1, HALF))
    scale = (groups.abs().amax(-1) / LARGEST[torch.int8]).clamp_min(1e-30)
    values = (groups / scale[..., None]).round().to(torch.int8).flatten(1)
    return _part(values, swapped, **grouped(weight.shape[1], scale))


def _part(values: Tensor, swapped: bool, **scales: Any) -> Part:
    data = pad_inputs(values.view(torch.uint8), CHUNK)
    return Part("int8", swap_middle(data) if swapped else data, values.shape[1], swapped=swapped, **scales)
