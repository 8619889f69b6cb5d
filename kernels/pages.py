"""How a block's bytes are read: as keys and values [layers, 2, kv heads, block_size * D] and, where these
have 8 bits, the float16 scales [layers, 2, kv heads, block_size] that follow, one for a token and head.

A block stays one run of bytes: copying, moving or saving it is one copy, scales and all.
"""

from __future__ import annotations

import torch
from torch import Tensor

SCALE_BYTES = 2


def head_bytes(head_dim: int, dtype: torch.dtype) -> int:
    """What a token's keys, or values, of one head take."""
    return head_dim * dtype.itemsize + (SCALE_BYTES if dtype.itemsize == 1 else 0)


def read_pool(
    pool: Tensor, layers: int, kv_heads: int, block_size: int, head_dim: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The values and the scales, if any, of a pool of bytes [blocks, bytes of a block], as views."""
    runs = layers * 2 * kv_heads * block_size
    values = pool[:, : runs * head_dim * dtype.itemsize].view(dtype)
    values = values.unflatten(1, (layers, 2, kv_heads, block_size * head_dim))
    if dtype.itemsize > 1:
        return values, None
    scales = pool[:, runs * head_dim :].view(torch.float16)
    return values, scales.unflatten(1, (layers, 2, kv_heads, block_size))
