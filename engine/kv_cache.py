"""The memory behind the blocks: one pool of bytes per page kind, in which a block is one contiguous run.

    pool [num_blocks, layers, K | V, kv heads, block_size * head_dim]

so that copying, moving or saving a block is one copy of one run. Block 0 is never given to a sequence:
padding may point at it. Which block belongs to whom is the block pool's affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernels import KVLayer, Ops

from .memory_plan import KindFacts
from .models import ModelConfig


@dataclass(frozen=True, slots=True)
class KVCache:
    """The pools, and each layer's view of its own."""

    pools: tuple[Tensor, ...]  # one per page kind
    layers: tuple[KVLayer, ...]
    block_size: int


def kind_facts(config: ModelConfig, dtype: torch.dtype) -> tuple[KindFacts, ...]:
    """The page kinds of a model: layers with one window keep memory alike."""
    facts = []
    for window in config.windows:
        layers = tuple(i for i, layer in enumerate(config.layers) if layer.window == window)
        num_bytes = len(layers) * 2 * config.num_kv_heads * config.head_dim * dtype.itemsize
        facts.append(KindFacts("window" if window else "full", layers, num_bytes, window))
    return tuple(facts)


def make_kv_cache(config: ModelConfig, ops: Ops, num_blocks: Sequence[int], block_size: int) -> KVCache:
    """A pool of zeros for each page kind; a processor's take up memory only as blocks are first written."""
    places: dict[int, tuple[Tensor, int, int]] = {}  # layer -> its pool, its place in there, its kind
    pools = []
    for kind, (facts, blocks) in enumerate(zip(kind_facts(config, ops.kv_dtype), num_blocks, strict=True)):
        shape = (blocks, len(facts.layers), 2, config.num_kv_heads, block_size * config.head_dim)
        if ops.device.type == "cpu":
            pool = untouched(shape, ops.kv_dtype)
        else:
            pool = torch.zeros(shape, dtype=ops.kv_dtype, device=ops.device)
        pools.append(pool)
        places |= {layer: (pool, place, kind) for place, layer in enumerate(facts.layers)}
    layers = tuple(
        KVLayer(
            *places[i],
            block_size,
            config.num_heads,
            config.head_dim,
            window=layer.window,
            soft_cap=config.score_cap,
            scale=config.score_scale,
        )
        for i, layer in enumerate(config.layers)
    )
    return KVCache(tuple(pools), layers, block_size)


def untouched(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros that the system provides page by page, on a 64-byte border. torch.zeros would write them all."""
    num_bytes = math.prod(shape) * dtype.itemsize
    raw = np.zeros(num_bytes + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return torch.from_numpy(raw[begin : begin + num_bytes]).view(dtype).view(shape)
