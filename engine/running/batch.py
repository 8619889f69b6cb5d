"""From a plan to the tensors of a step: the one place where slots and prefix sums are computed.

The buffers are static, so that a recorded forward pass finds every step's numbers at the same addresses; only
their first entries, told by `counts`, are valid. A card has copies of them: what is written here goes there
before the step is launched. On small models every call of numpy counts: there are few, and each is over the
whole step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence as Seq

import numpy as np
import torch
from torch import Tensor

from kernels import ForwardBatch, Ops, send

from ..scheduling.plan import UNKNOWN, PlanItem
from ..scheduling.sequence import Sequence


def make_batch(
    max_tokens: int,
    max_seqs: int,
    max_blocks: int,
    max_rows: int,
    num_kinds: int,
    card: torch.device | None = None,
) -> ForwardBatch:
    """Buffers of zeros for steps up to these sizes; `max_blocks` is a block table's length. With a card they
    lie there, and `host` has their twins here. All but the tables are parts of one tensor, which is copied.
    """
    tokens, tables = (max_tokens,) * num_kinds, ((max_seqs, max_blocks),) * num_kinds
    lengths = (3, max_tokens, max_tokens, max_seqs + 1, max_seqs, max_rows, *tokens)

    places = [-(-length // 8) * 8 for length in lengths]  # each begins on a 64-byte border

    def make(device: torch.device, host: ForwardBatch | None) -> ForwardBatch:
        def zeros(*shape: int) -> Tensor:
            return torch.zeros(shape, dtype=torch.int64, device=device)

        parts = zeros(sum(places)).split(places)
        counts, token_ids, positions, cu_lens, context_lens, rows, *slots = (
            part[:length] for part, length in zip(parts, lengths)
        )
        kinds = tuple(slots), tuple(zeros(*shape) for shape in tables)
        return ForwardBatch(counts, token_ids, positions, cu_lens, context_lens, *kinds, rows, host)

    host = make(torch.device("cpu"), None)
    return make(card, host) if card else host


def card_of(ops: Ops) -> torch.device | None:
    """Where a backend's batch lies, if not here."""
    return None if ops.device.type == "cpu" else ops.device


def is_sound(
    batch: ForwardBatch, vocab_size: int, num_blocks: Seq[int], block_size: int, awaited: int = 0
) -> bool:
    """Whether the tokens, slots and blocks that a step names are there: kernels do not look. For asserts.
    `awaited`: how many rows of tokens the step before it draws.
    """
    tokens, seqs = batch.counts[:2].tolist()
    checked = [(batch.token_ids[:tokens], -awaited, vocab_size)]
    checked += [(slots[:tokens], 0, n * block_size) for slots, n in zip(batch.slots, num_blocks)]
    checked += [(table[:seqs], 0, n) for table, n in zip(batch.block_tables, num_blocks)]
    return all(not len(ids) or first <= ids.min() <= ids.max() < end for ids, first, end in checked)


def whole(batch: ForwardBatch) -> Tensor:
    """All of a batch but its tables, as the one tensor that they are parts of."""
    return torch.empty(0, dtype=torch.int64, device=batch.counts.device).set_(batch.counts.untyped_storage())


class BatchWriter:
    """Writes plans into a batch. A block table that a row holds already is left as it is."""

    def __init__(self, batch: ForwardBatch, block_size: int) -> None:
        self._card = batch if batch.host else None
        batch = batch.host or batch
        self._whole = whole(batch)
        self._card_whole = whole(self._card) if self._card else None
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

    def write(self, items: Seq[PlanItem], rows_of: Mapping[Sequence, int] = {}) -> None:
        """A plan's items, in order. Wanted are the logits of each item's last `samples` tokens.

        A token that is unknown yet is written as -1 - r: what row r of the step before draws.
        """
        token_ids: list[int] = []
        positions: list[int] = []
        lens, context_lens, rows = [], [], list[int]()
        for s, item in enumerate(items):
            if rows_of and item.token_ids[0] == UNKNOWN:
                token_ids.append(-1 - rows_of[item.sequence])
            else:
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
        if self._card_whole is not None:
            send(self._whole, self._card_whole)

    def _write_tables(self, row: int, tables: tuple[list[int], ...]) -> None:
        for kind, (buffer, written, table) in enumerate(zip(self._tables, self._written, tables)):
            if written[row] != table:
                buffer[row, : len(table)] = table
                written[row] = table.copy()
                if self._card:
                    line = torch.from_numpy(buffer[row, : len(table)])
                    send(line, self._card.block_tables[kind][row, : len(table)])
