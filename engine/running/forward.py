"""A model's forward pass without scheduler, service or sampling: tokens in, logits of every position out.

It is the pass that answers come from, on a pool of its own. Scores texts, and is what tests hold to other
programs' logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence as Seq
from pathlib import Path

from torch import Tensor

from kernels import Ops

from ..checkpoints import open_checkpoint
from ..models import Buffers, Model, load_decoder, read_config
from ..scheduling.plan import PlanItem
from ..scheduling.sequence import Sequence
from .batch import BatchWriter, card_of, make_batch
from .graphs import recorded
from .kv_cache import make_kv_cache

MAX_SEQS = 16


class Forward:
    """A loaded model; a sequence's blocks are 1, 2, 3 ... unless told otherwise, the same of every kind."""

    def __init__(self, model: Model, ops: Ops, max_tokens: int, num_blocks: int) -> None:
        self.model, self.ops = model, ops
        self.block_size, self.max_tokens = ops.block_size, max_tokens
        self.num_kinds = len(model.config.windows)  # each has a pool of its own
        self.cache = make_kv_cache(model.config, ops, [num_blocks] * self.num_kinds, self.block_size)
        self.batch = make_batch(max_tokens, MAX_SEQS, num_blocks, max_tokens, self.num_kinds, card_of(ops))
        self.writer = BatchWriter(self.batch, self.block_size)
        self.buffers = Buffers.make(model.config, ops, max_tokens, max_tokens)

        def forward() -> None:
            model.forward(ops, self.batch, self.cache.layers, self.buffers)

        self.replay = recorded(ops, forward, self.batch, 0)

    @staticmethod
    def of(path: Path, ops: Ops, max_tokens: int = 512, num_blocks: int = 96) -> Forward:
        """That of a file or folder."""
        with open_checkpoint(path) as checkpoint:
            positions = num_blocks * ops.block_size
            model = load_decoder(checkpoint, read_config(checkpoint), ops, positions, lambda part: None)
        return Forward(model, ops, max_tokens, num_blocks)

    def __call__(self, *parts: tuple[Seq[int], int, Seq[int]]) -> list[Tensor]:
        """One step over (new token ids, tokens already computed, block table) of each -> its logits."""
        items = []
        for token_ids, start, table in parts:
            sequence = Sequence("", [], block_tables=(list(table),) * self.num_kinds)
            items.append(PlanItem(sequence, start, tuple(token_ids), (), len(token_ids)))
        self.writer.write(items)
        self.model.reach(max(item.start + item.num_tokens for item in items))
        self.replay()
        lens = [item.num_tokens for item in items]
        return list(self.buffers.logits[: sum(lens)].clone().split(lens))

    def read(self, token_ids: Seq[int]) -> Iterator[Tensor]:
        """One sequence from its beginning, in steps of up to `max_tokens`: their logits [T, vocabulary]."""
        blocks = range(1, 1 - (-len(token_ids) // self.block_size))
        for first in range(0, len(token_ids), self.max_tokens):
            yield self((token_ids[first : first + self.max_tokens], first, blocks))[0]
