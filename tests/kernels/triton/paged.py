"""Steps over paged memory for the kernels' tests: random contexts in scattered blocks, all else poisoned.

Whatever a kernel must not read is no number: blocks of nobody are NaN, unused ids point far outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import ForwardBatch, KVLayer
from kernels.pages import head_bytes, read_pool
from kernels.reference import attend, quantized

POISON = 2**30  # as a block id
LAYERS, LAYER = 2, 1


@dataclass(frozen=True, slots=True)
class Heads:
    """A layer's heads, and how it looks at keys."""

    queries: int = 8
    keys: int = 2
    dim: int = 64
    block_size: int = 64
    window: int = 0
    soft_cap: float = 0.0
    sinks: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A batch over filled pages, its queries, and what attention gives in float64."""

    batch: ForwardBatch
    kv: KVLayer
    q: Tensor
    wanted: Tensor


def make_pool(heads: Heads, num_blocks: int, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Values and scales, all NaN (integers: -128)."""
    size = LAYERS * 2 * heads.keys * heads.block_size * head_bytes(heads.dim, dtype)
    raw = torch.zeros(num_blocks, size, dtype=torch.uint8)
    values, scales = read_pool(raw, LAYERS, heads.keys, heads.block_size, heads.dim, dtype)
    values.copy_(torch.tensor(torch.nan if dtype.is_floating_point else -128).to(dtype).expand_as(values))
    if scales is not None:
        scales.fill_(torch.nan)
    return values, scales


def make_batch(tables: Tensor, new: Sequence[int], contexts: Sequence[int], block_size: int) -> ForwardBatch:
    """`new` tokens at the end of each context; buffers for one more sequence and token."""
    total = sum(new)
    cu_lens = torch.tensor([0, *new, 0]).cumsum(0)
    positions = torch.cat([torch.arange(n - m, n) for m, n in zip(new, contexts)])
    owner = torch.arange(len(new)).repeat_interleave(torch.tensor(new))
    slots = tables[owner, positions // block_size] * block_size + positions % block_size
    far = torch.tensor([POISON])
    return ForwardBatch(
        counts=torch.tensor([total, len(new), 0]),
        token_ids=torch.zeros(total + 1, dtype=torch.int64),
        positions=torch.cat([positions, far]),
        cu_lens=cu_lens,
        context_lens=torch.tensor([*contexts, POISON]),
        slots=(torch.cat([slots, far]),),
        block_tables=(torch.cat([tables, torch.full_like(tables[:1], POISON)]),),
        logit_rows=torch.zeros(1, dtype=torch.int64),
    )


def make_step(
    new: Sequence[int],
    contexts: Sequence[int],
    dtype: torch.dtype = torch.float32,
    heads: Heads = Heads(),
    kv_dtype: torch.dtype | None = None,
) -> Step:
    kv_dtype, size = kv_dtype or dtype, heads.block_size
    needed = [-(-n // size) for n in contexts]
    free = torch.randperm(sum(needed) + 2)  # two blocks are nobody's
    values, scales = make_pool(heads, len(free), kv_dtype)
    tables = torch.full((len(new), max(needed) + 1), POISON)
    for s, (table, length) in enumerate(zip(free.split([*needed, 2]), contexts)):
        tables[s, : len(table)] = table
        kept = torch.randn(2, heads.keys, length, heads.dim)
        if scales is not None:
            kept, some = quantized(kept, kv_dtype)
            _fill(scales, table, some[..., None], size, 1)
        _fill(values, table, kept, size, heads.dim)
        if heads.window:  # blocks that slid out are nobody's
            tables[s, : max(0, length - new[s] - heads.window + 1) // size] = POISON
    kv = KVLayer(
        values, LAYER, 0, size, heads.queries, heads.dim, heads.window, heads.soft_cap, scales=scales,
        sinks=torch.randn(heads.queries) if heads.sinks else None,
    )  # fmt: skip
    batch = make_batch(tables, new, contexts, size)
    q = torch.randn(sum(new) + 1, heads.queries * heads.dim).to(dtype)
    wanted = torch.zeros(q.shape, dtype=torch.float64)
    attend(batch, q, kv, wanted, torch.float64)
    return Step(batch, kv, q, wanted[:-1])


def _fill(pool: Tensor, table: Tensor, kept: Tensor, size: int, width: int) -> None:
    """A sequence's values [2, heads, tokens, width] into its blocks of a pool."""
    for place, block in enumerate(table.tolist()):
        part = kept[:, :, place * size : (place + 1) * size]
        into = pool[block, LAYER].unflatten(-1, (size, width))
        into[:, :, : part.shape[2]] = part.to(pool.dtype)
