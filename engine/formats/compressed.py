"""compressed-tensors: integers of 4 and 8 bits, packed or as bytes, and 8-bit floats with their scales.

    pack-quantized    weight_packed [N, K * bits / 32] int32, weight_scale [N, G], weight_zero_point
                      [N * bits / 32, G] int32, weight_g_idx [K]; 2^(bits - 1) was added to values and zeros
    int-quantized     weight int8 [N, K], weight_scale [1], [N, 1] or [N, G], weight_zero_point as that
    float-quantized   weight float8 [N, K], weight_scale [1], [N, 1] or one per block

Published in https://github.com/vllm-project/compressed-tensors. How activations were quantized is not looked
at: backends choose that. The FP8 of DeepSeek and Qwen is read here too; its scales are "weight_scale_inv".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernels import Fp8, Weight

from ..errors import BadCheckpoint
from .integers import from_integers, unpack
from .numbers import finite, sound
from .stored import FLOATS, Stored

FP8_SCALES = (".weight_scale_inv", ".weight_scale")


def from_packed(stored: Stored) -> Weight:
    """pack-quantized."""
    rows, inputs = stored.num_rows, stored.shape[1]
    packed = stored.tensor(".weight_packed", ("I32",), (rows, None))
    bits = next((b for b in (4, 8) if packed.shape[1] == -(-inputs * b // 32)), 0)
    if not bits:
        raise stored.refuse(f"has {packed.shape[1]} words for {inputs} inputs; 4 and 8 bits are served")
    scale = stored.tensor(".weight_scale", FLOATS, (len(packed), None))
    zero = torch.full(scale.shape, 2 ** (bits - 1), dtype=torch.uint8)
    if stored.has(".weight_zero_point"):
        words = -(-len(packed) * bits // 32)
        zeros = stored.tensor(".weight_zero_point", ("I32",), (words, scale.shape[1]))
        zero = unpack(zeros.T, bits).T[: len(packed)]
    group_of = None
    if stored.has(".weight_g_idx"):
        group_of = stored.tensor(".weight_g_idx", ("I32", "I64"), (inputs,))
        group_of = None if bool((group_of == -1).all()) else group_of
    values = unpack(stored.picked(packed), bits)[:, :inputs].contiguous()
    return from_integers(values, stored.picked(scale), stored.picked(zero), bits, group_of)


def from_bytes(stored: Stored) -> Weight:
    """int-quantized: 8 bits, or 4 in bytes, per tensor, row or group."""
    values = stored.tensor(".weight", ("I8",), (stored.num_rows, stored.shape[1]))
    scale = _by_row(stored, ".weight_scale", FLOATS, len(values))
    zero = torch.zeros(scale.shape, dtype=torch.int16)
    if stored.has(".weight_zero_point"):
        zero = _by_row(stored, ".weight_zero_point", ("I8",), len(values)).short().expand(scale.shape)
    unsigned = stored.picked(values).view(torch.uint8) ^ 128
    return from_integers(unsigned, stored.picked(scale), stored.picked(zero + 128), 8)


def _by_row(stored: Stored, ending: str, types: tuple[str, ...], rows: int) -> Tensor:
    """[N, G]; one number for all is repeated."""
    shape = _shape(stored, ending)
    if shape in ((), (1,)):
        return stored.tensor(ending, types, shape).reshape(1, 1).expand(rows, 1)
    return stored.tensor(ending, types, (rows,) if len(shape) == 1 else (rows, None)).reshape(rows, -1)


def from_fp8(stored: Stored) -> Weight:
    """float-quantized, and DeepSeek's and Qwen's blocks."""
    values = stored.tensor(".weight", ("F8_E4M3",), (stored.num_rows, stored.shape[1]))
    sound(values, f"weights of {stored.name}")
    ending = next((ending for ending in FP8_SCALES if stored.has(ending)), FP8_SCALES[1])
    height, width = block = _block(stored, ending, values.shape[0], values.shape[1])
    shape = -(-len(values) // height), -(-values.shape[1] // width)
    flat = _shape(stored, ending)
    scale = stored.tensor(ending, FLOATS, shape if len(flat) == 2 else flat).reshape(shape)
    scale = finite(scale.float())
    if stored.rows is not None:  # rows of several blocks: each gets the scales of its own
        block = 1, width
        scale = stored.picked(scale.repeat_interleave(height, 0)[: len(values)])
    return Fp8(stored.picked(values.view(torch.uint8)).view(torch.float8_e4m3fn), scale, block)


def _block(stored: Stored, ending: str, rows: int, inputs: int) -> tuple[int, int]:
    """How many rows and inputs share a scale, by the scales' shape and what the checkpoint says."""
    shape = _shape(stored, ending)
    if shape in ((), (1,), (1, 1)):
        return rows, inputs
    if shape in ((rows,), (rows, 1)):
        return 1, inputs
    config = stored.quantization
    block = config.get("weight_block_size")
    for group in _table(config.get("config_groups")).values():
        block = block or _table(_table(group).get("weights")).get("block_structure")
    if not (isinstance(block, list) and len(block) == 2 and all(type(x) is int and x > 0 for x in block)):
        raise stored.refuse(f"has {list(shape)} scales for {[rows, inputs]} weights and names no block size")
    return block[0], block[1]


def _table(value: Any) -> dict[str, Any]:
    """What should be one and may be anything."""
    return value if isinstance(value, dict) else {}


def _shape(stored: Stored, ending: str) -> tuple[int, ...]:
    info = stored.checkpoint.tensors.get(stored.name + ending)
    if info is None:
        raise BadCheckpoint(
            f"{stored.checkpoint.path.name} has no tensor {stored.name}{ending}; the file is incomplete."
        )
    return info.shape[1:] if stored.expert is not None else info.shape
