"""From a plan to the tensors of a step: the one place where slots and prefix sums are computed.

The buffers are static, so that a recorded forward pass finds every step's numbers at the same addresses; only
their first entries, told by `counts`, are valid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from kernels import ForwardBatch

from .plan import PlanItem


def make_batch(
    max_tokens: int, max_seqs: int, max_blocks: int, max_rows: int, num_kinds: int
) -> ForwardBatch:
    """Buffers of zeros for steps up to these sizes; `max_blocks` is a block table's length."""

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.int64)

    return ForwardBatch(
        counts=zeros(3),
        token_ids=zeros(max_tokens),
        positions=zeros(max_tokens),
        cu_lens=zeros(max_seqs + 1),
        context_lens=zeros(max_seqs),
        slots=tuple(zeros(max_tokens) for _ in range(num_kinds)),
        block_tables=tuple(zeros(max_seqs, max_blocks) for _ in range(num_kinds)),
        logit_rows=zeros(max_rows),
    )


def fill_batch(batch: ForwardBatch, items: Sequence[PlanItem], block_size: int) -> None:
    """Write a plan's items into the buffers, in order. Wanted are the rows of each item's last `samples`."""
    token_ids, positions, cu_lens, context_lens, logit_rows = (
        t.numpy()
        for t in (batch.token_ids, batch.positions, batch.cu_lens, batch.context_lens, batch.logit_rows)
    )
    slots, tables = ([t.numpy() for t in kinds] for kinds in (batch.slots, batch.block_tables))
    first = rows = 0
    for s, item in enumerate(items):
        last = first + item.num_tokens
        token_ids[first:last] = item.token_ids
        places = np.arange(item.start, item.start + item.num_tokens)
        positions[first:last] = places
        for kind, table in enumerate(item.sequence.block_tables):
            tables[kind][s, : len(table)] = table
            slots[kind][first:last] = tables[kind][s, places // block_size] * block_size + places % block_size
        cu_lens[s + 1], context_lens[s] = last, item.start + item.num_tokens
        logit_rows[rows : rows + item.samples] = np.arange(last - item.samples, last)
        first, rows = last, rows + item.samples
    batch.counts.numpy()[:] = first, len(items), rows
