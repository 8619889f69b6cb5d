"""What kernels take as integers: floats as their bits; of a norm, a layer's queries and its pages, where they
lie and how far it is from one to the next, in bytes.
"""

from __future__ import annotations

import math
import struct

import numpy as np
import torch
from torch import Tensor

from ..ops import KVLayer, Norm
from . import rows
from .record import Record

# gate / (1 + 2^(gate * (a + b * gate^2))) * (up + lift), neither beyond a limit: a, b, limit, lift
CURVES = {
    name: np.array(numbers, np.float32)
    for name, numbers in (
        ("silu", (-rows.LOG2_E, 0.0, math.inf, 0.0)),
        ("gelu_tanh", (*(-rows.LOG2_E * math.sqrt(8 / math.pi) * x for x in (1.0, 0.044715)), math.inf, 0.0)),
        ("clamped_swiglu", (-rows.LOG2_E * 1.702, 0.0, 7.0, 1.0)),
    )
}


def bits(x: float) -> int:
    """A float32 as the integer that machine.as_float reads."""
    return int.from_bytes(struct.pack("<f", x), "little")


def gains(r: Record, norm: Norm | None) -> tuple[int, int]:
    """A norm's gains and eps; no gains, no norm."""
    return (r.at(norm.gain), bits(norm.eps)) if norm else (0, 0)


def queries(r: Record, q: Tensor, kv: KVLayer) -> tuple[int, int]:
    """Where the queries of the first kv head lie, and the step to the next one's."""
    return r.at(q), len(q) * kv.num_heads // kv.num_kv_heads * kv.head_dim * 4


def pages(r: Record, kv: KVLayer) -> tuple[int, ...]:
    """A layer's part of the pool: address; steps to the next block, the values, the next head; shapes; the
    scales' address, their steps to those of the values, the next head.
    """
    pool, heads, scales = kv.pool, kv.num_kv_heads, kv.scales
    assert kv.head_dim % 16 == 0 and kv.block_size % 16 == 0 and kv.num_heads % heads == 0
    assert pool.shape[4] == kv.block_size * kv.head_dim
    block, layer, values, head = (pool.element_size() * step for step in pool.stride()[:4])
    shapes = kv.block_size, kv.num_heads, heads, kv.head_dim
    scaling = 0, 0, 0
    if scales is not None:
        assert pool.dtype == torch.int8 and 2 * scales.stride(0) == block
        scaling = r.at(scales) + 2 * kv.layer * scales.stride(1), 2 * scales.stride(2), 2 * scales.stride(3)
    return r.at(pool) + kv.layer * layer, block, values, head, *shapes, *scaling
