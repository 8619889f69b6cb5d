"""From a plan to the tensors of a step: the one place where slots and prefix sums are computed.

The buffers are static, so that a recorded forward pass finds every step's numbers at the same addresses; only
their first entries, told by `counts`, are valid. On small models every call of numpy counts: there are few,
and each is over the whole step.
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


class BatchWriter:
    """Writes plans into a batch. A block table that a row holds already is left as it is."""

    def __init__(self, batch: ForwardBatch, block_size: int) -> None:
        self._counts, self._token_ids, self._positions, self._cu_lens, self._context_lens, self._rows = (
            tensor.numpy()
            for tensor in (
                batch.counts,
                batch.token_ids,
                batch.positions,
                batch.cu_lens,
                batch.context_lens,
                batch.logit_rows,
            )
        )
        self._slots = [tensor.numpy() for tensor in batch.slots]
        self._tables = [tensor.numpy() for tensor in batch.block_tables]
        self._written: list[list[list[int]]] = [[[] for _ in table] for table in self._tables]
        self._block_size = block_size

    def write(self, items: Sequence[PlanItem]) -> None:
        """A plan's items, in order. Wanted are the logits of each item's last `samples` tokens."""
        token_ids: list[int] = []
        positions: list[int] = []
        lens, context_lens, rows = [], [], list[int]()
        for s, item in enumerate(items):
            token_ids += item.token_ids
            count, end = item.num_tokens, item.start + item.num_tokens
            positions += range(item.start, end)
            lens.append(count)
            context_lens.append(end)
            rows += range(len(token_ids) - item.samples, len(token_ids))
            self._write_tables(s, item.sequence.block_tables)
        total, num_items = len(token_ids), len(items)
        self._counts[:] = total, num_items, len(rows)
        self._token_ids[:total] = token_ids
        self._positions[:total] = positions
        np.cumsum(lens, out=self._cu_lens[1 : num_items + 1])
        self._context_lens[:num_items] = context_lens
        self._rows[: len(rows)] = rows
        index, offset = np.divmod(self._positions[:total], self._block_size)
        owner = np.repeat(np.arange(num_items), lens)
        for slots, table in zip(self._slots, self._tables):
            slots[:total] = table[owner, index] * self._block_size + offset

    def _write_tables(self, row: int, tables: tuple[list[int], ...]) -> None:
        for buffer, written, table in zip(self._tables, self._written, tables):
            if written[row] != table:
                buffer[row, : len(table)] = table
                written[row] = table.copy()
