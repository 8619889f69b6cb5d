"""Eight-bit floats, e4m3: how a kernel takes them apart on any card.

Its sign, exponent and mantissa, moved to where a wider float has them, are the value times a power of two:
2^-8 in float16, 2^-120 in bfloat16, whose exponents count from elsewhere. Numbers too small for e4m3's normal
form come out right as well, as the wider type's. Scales of a tensor, of rows or of blocks of rows and inputs
become scales of each row, for all inputs or those of a block.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..weights import Fp8
from .parts import CHUNK, ROW, Part, pad_inputs, swap_middle

_FP16 = """{ .reg .b32 t, h, m; mov.b32 m, 0x5c005c00;
shl.b32 h, $2, 8; shr.b32 t, h, 1; and.b32 t, t, 0x3f803f80; lop3.b32 $0, h, 0x80008000, t, 0xea;
shr.b32 t, $2, 1; and.b32 t, t, 0x3f803f80; lop3.b32 $1, $2, 0x80008000, t, 0xea;
mul.f16x2 $0, $0, m; mul.f16x2 $1, $1, m; }"""
_BF16 = """{ .reg .b32 t, h, m, z; mov.b32 m, 0x7b807b80; mov.b32 z, 0x80008000;
shl.b32 h, $2, 8; shr.b32 t, h, 4; and.b32 t, t, 0x07f007f0; lop3.b32 $0, h, 0x80008000, t, 0xea;
shr.b32 t, $2, 4; and.b32 t, t, 0x07f007f0; lop3.b32 $1, $2, 0x80008000, t, 0xea;
fma.rn.bf16x2 $0, $0, m, z; fma.rn.bf16x2 $1, $1, m, z; }"""
FP16, BF16 = tl.constexpr(_FP16), tl.constexpr(_BF16)


@triton.jit
def small_float(w, DT: tl.constexpr, ASM: tl.constexpr):
    """uint8 [rows, 32] that are e4m3 -> their values, exact, in DT."""
    if tl.bfloat16 == DT:
        if ASM:
            return tl.inline_asm_elementwise(BF16, "=r,=r,r", [w], dtype=tl.bfloat16, is_pure=True, pack=4)
        else:
            bits = ((w & 0x80).to(tl.uint16) << 8) | ((w & 0x7F).to(tl.uint16) << 4)
            return bits.to(tl.bfloat16, bitcast=True) * 1.329227995784916e36  # 2^120
    else:
        if ASM:
            found = tl.inline_asm_elementwise(FP16, "=r,=r,r", [w], dtype=tl.float16, is_pure=True, pack=4)
        else:
            bits = ((w & 0x80).to(tl.uint16) << 8) | ((w & 0x7F).to(tl.uint16) << 7)
            found = bits.to(tl.float16, bitcast=True) * 256.0
        return found.to(DT)


def pack_fp8(weight: Fp8, swapped: bool) -> Part:
    """Scales spread to rows. A block of inputs that is no multiple of 64 is a ValueError."""
    rows, width = weight.shape
    height, across = weight.block
    scale = weight.scale.repeat_interleave(height, 0)[:rows].T.contiguous()  # [blocks, N]
    whole_row = scale.shape[0] == 1
    if not whole_row and across % CHUNK:
        raise ValueError(
            f"FP8 scales for blocks of {across} inputs: only multiples of {CHUNK} are supported."
        )
    data = pad_inputs(weight.values.view(torch.uint8), CHUNK)
    data = swap_middle(data) if swapped else data
    return Part("fp8", data, width, group=ROW if whole_row else across, scale=scale, swapped=swapped)
