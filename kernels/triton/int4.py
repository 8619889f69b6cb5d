"""Four-bit weights: how they lie, and how a kernel takes them apart.

Byte j of a chunk's 32 holds input j below and input 32 + j above. A nibble becomes a float without a
conversion: or-ed into the mantissa of 1024 (float16) or 128 (bfloat16) it is that number more, and one
subtraction, which a zero point shares, is left. Packers take kernels/weights.py's Int4, Int4Z and Int4K.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..weights import Int4, Int4K, Int4Z, unpack_nibbles
from .parts import CHUNK, HALF, Part, grouped, pad_inputs, swap_middle

_RAW_FP16 = """{ .reg .b32 t, m; mov.b32 m, 0x64006400; shr.b32 t, $4, 8;
lop3.b32 $0, $4, 0x000f000f, m, 0xea; lop3.b32 $1, t, 0x000f000f, m, 0xea;
lop3.b32 $2, $4, 0x00f000f0, m, 0xea; lop3.b32 $3, t, 0x00f000f0, m, 0xea; }"""
_RAW_BF16 = """{ .reg .b32 t, m; mov.b32 m, 0x43004300;
lop3.b32 $0, $4, 0x000f000f, m, 0xea; shr.b32 t, $4, 4; lop3.b32 $2, t, 0x000f000f, m, 0xea;
shr.b32 t, $4, 8; lop3.b32 $1, t, 0x000f000f, m, 0xea;
shr.b32 t, $4, 12; lop3.b32 $3, t, 0x000f000f, m, 0xea; }"""
RAW_FP16, RAW_BF16 = tl.constexpr(_RAW_FP16), tl.constexpr(_RAW_BF16)


@triton.jit
def less_zero(w, low_zero, high_zero, DT: tl.constexpr, ASM: tl.constexpr):
    """uint8 [rows, 32] -> the low and the high nibbles less their zeros, exact, in DT."""
    if tl.bfloat16 == DT:
        if ASM:
            low, high = tl.inline_asm_elementwise(
                RAW_BF16, "=r,=r,=r,=r,r", [w], dtype=(tl.bfloat16, tl.bfloat16), is_pure=True, pack=4
            )
        else:
            low = ((w & 0x0F).to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True)
            high = ((w >> 4).to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True)
        return low - (128.0 + low_zero), high - (128.0 + high_zero)
    else:
        if ASM:
            low, high = tl.inline_asm_elementwise(
                RAW_FP16, "=r,=r,=r,=r,r", [w], dtype=(tl.float16, tl.float16), is_pure=True, pack=4
            )
        else:
            low = ((w & 0x0F).to(tl.uint16) | 0x6400).to(tl.float16, bitcast=True)
            high = ((w & 0xF0).to(tl.uint16) | 0x6400).to(tl.float16, bitcast=True)
        return low.to(DT) - (1024.0 + low_zero), high.to(DT) * 0.0625 - (64.0 + high_zero)


def pack_int4(weight: Int4, swapped: bool) -> Part:
    """Centred if every minimum is -8 times its scale, as Q4_0's are: no third tensor is read."""
    scale, offset = weight.scale, weight.minimum
    if torch.equal(offset, -8 * scale):
        return _part(weight.packed, swapped, **grouped(weight.shape[1], scale))
    return _part(weight.packed, swapped, mode="minimum", **grouped(weight.shape[1], scale, offset))


def pack_int4z(weight: Int4Z, swapped: bool) -> Part:
    """Whole zero points; centred if all are 8."""
    if bool((weight.zero == 8).all()):
        return _part(weight.packed, swapped, **grouped(weight.shape[1], weight.scale))
    zero = weight.zero.half()
    return _part(weight.packed, swapped, mode="zero", **grouped(weight.shape[1], weight.scale, zero))


def pack_int4k(weight: Int4K, swapped: bool) -> Part:
    """As it is, 4.63 bits a weight."""
    coarse = torch.stack([weight.super_scale.T, weight.super_minimum.T])
    scales = {"scale": weight.scale.T.contiguous(), "offset": weight.minimum.T.contiguous(), "coarse": coarse}
    return _part(weight.packed, swapped, mode="two_level", group=HALF, **scales)


def _part(packed: Tensor, swapped: bool, **scales: Any) -> Part:
    values = unpack_nibbles(packed)
    chunks = pad_inputs(values, CHUNK).view(len(values), -1, 2, HALF)
    data = (chunks[:, :, 0] | chunks[:, :, 1] << 4).flatten(1)
    return Part("int4", swap_middle(data) if swapped else data, values.shape[1], swapped=swapped, **scales)
