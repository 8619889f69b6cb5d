"""Whole blocks from one pool to another: copy on write inside a pool, and between a card's pool and one in
pinned memory of the system. A block is one contiguous run of bytes, whatever lies in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..transfer import send
from .targets import Shipped

TILE = 2048  # words of 4 bytes, for one program


@triton.jit
def _copy(SOURCE, TARGET, PAIRS, num_pairs, words, source_stride, target_stride, TILE: tl.constexpr):
    """Grid (pair, tile). PAIRS: all sources, then all targets; a stride is a block's, in words."""
    source = tl.load(PAIRS + tl.program_id(0))
    target = tl.load(PAIRS + num_pairs + tl.program_id(0))
    i = tl.program_id(1) * TILE + tl.arange(0, TILE)
    values = tl.load(SOURCE + source * source_stride + i, mask=i < words)
    tl.store(TARGET + target * target_stride + i, values, mask=i < words)


def copy(from_pool: Tensor, to_pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
    """to_pool[target[i]] = from_pool[source[i]]. In one pool all blocks are read before any is written."""
    assert len(source) == len(target) == len(set(target)), (source, target)
    assert from_pool[0].is_contiguous() and to_pool[0].is_contiguous(), "a block is one run of bytes"
    if from_pool is to_pool and set(source) & set(target):
        to_pool[list(target)] = from_pool[list(source)]
        return
    device = to_pool.device if to_pool.is_cuda else from_pool.device
    words_from, words_to = _words(from_pool), _words(to_pool)
    pairs = torch.empty(2 * len(source), dtype=torch.int64, device=device)
    send(torch.tensor([*source, *target]), pairs)
    words = words_from.shape[1]
    _copy[(len(source), triton.cdiv(words, TILE))](
        words_from, words_to, pairs, len(source), words, words_from.stride(0), words_to.stride(0),
        TILE=TILE, num_warps=8,
    )  # fmt: skip


def _words(pool: Tensor) -> Tensor:
    """A pool as [blocks, words of 4 bytes]."""
    return pool.flatten(1).view(torch.int32)


SHIPPED = (
    Shipped(
        "copy blocks", _copy,
        {"SOURCE": "*i32", "TARGET": "*i32", "PAIRS": "*i64",
         **dict.fromkeys(("num_pairs", "words", "source_stride", "target_stride"), "i32")},
        {"TILE": TILE}, aligned=("words", "source_stride", "target_stride"), warps=8,
    ),
)  # fmt: skip
