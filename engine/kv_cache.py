"""The memory behind the blocks: one pool of bytes per page kind, in which a block is one contiguous run.

    pool [num_blocks, layers, K | V, kv heads, block_size * head_dim]

so that copying, moving or saving a block is one copy of one run. Block 0 is never given to a sequence:
padding may point at it. Which block belongs to whom is the block pool's affair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernels import KVLayer, Ops

from .models import ModelConfig


@dataclass(frozen=True, slots=True)
class KVCache:
    """The pools, and each layer's view of its own."""

    pools: tuple[Tensor, ...]  # one per page kind
    layers: tuple[KVLayer, ...]
    block_size: int


def bytes_per_token(config: ModelConfig, dtype: torch.dtype) -> int:
    """What one token's keys and values take over all layers."""
    return config.num_layers * 2 * config.num_kv_heads * config.head_dim * dtype.itemsize


def make_kv_cache(config: ModelConfig, ops: Ops, num_blocks: int, block_size: int) -> KVCache:
    """Pools of zeros; a processor's take up memory only as blocks are first written."""
    shape = (num_blocks, config.num_layers, 2, config.num_kv_heads, block_size * config.head_dim)
    if ops.device.type == "cpu":
        pool = untouched(shape, ops.kv_dtype)
    else:
        pool = torch.zeros(shape, dtype=ops.kv_dtype, device=ops.device)
    layers = tuple(
        KVLayer(pool, i, 0, block_size, config.num_heads, config.head_dim) for i in range(config.num_layers)
    )
    return KVCache((pool,), layers, block_size)


def untouched(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros that the system provides page by page, on a 64-byte border. torch.zeros would write them all."""
    num_bytes = math.prod(shape) * dtype.itemsize
    raw = np.zeros(num_bytes + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return torch.from_numpy(raw[begin : begin + num_bytes]).view(dtype).view(shape)
