"""A model's forward pass without scheduler, service or sampling: tokens in, logits of every position out.

It is the pass that answers come from, on a pool of its own. Scores texts, and is what tests hold to other
programs' logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from kernels import Ops

from .batch import make_batch
from .checkpoints import open_checkpoint
from .kv_cache import make_kv_cache
from .models import Buffers, load_decoder, read_config

MAX_SEQS = 16


class Forward:
    """A loaded decoder; a sequence's blocks are 1, 2, 3 ... unless told otherwise, the same of every kind."""

    def __init__(
        self,
        path: Path,
        ops: Ops,
        max_tokens: int = 512,
        num_blocks: int = 96,
        quantization: str = "auto",
        on_progress: Callable[[float], None] = lambda part: None,
    ) -> None:
        with open_checkpoint(path) as checkpoint:
            config = read_config(checkpoint)
            positions = num_blocks * ops.block_size
            self.model = load_decoder(checkpoint, config, ops, positions, on_progress, quantization)
        self.ops, self.block_size, self.max_tokens = ops, ops.block_size, max_tokens
        kinds = len(config.windows)
        self.cache = make_kv_cache(config, ops, [num_blocks] * kinds, self.block_size)
        self.batch = make_batch(max_tokens, MAX_SEQS, num_blocks, max_tokens, kinds)
        self.buffers = Buffers.make(config, ops, max_tokens, max_tokens)
        self.replay = ops.record(lambda: self.model.forward(ops, self.batch, self.cache.layers, self.buffers))

    def __call__(self, *parts: tuple[Sequence[int], int, Sequence[int]]) -> list[Tensor]:
        """One step over (new token ids, tokens already computed, block table) of each -> its logits."""
        batch, first = self.batch, 0
        for s, (token_ids, start, table) in enumerate(parts):
            last = first + len(token_ids)
            places, blocks = torch.arange(start, start + len(token_ids)), torch.tensor(table)
            batch.token_ids[first:last], batch.positions[first:last] = torch.tensor(token_ids), places
            slots = blocks[places // self.block_size] * self.block_size + places % self.block_size
            for kind in range(len(batch.slots)):  # each has a pool of its own
                batch.block_tables[kind][s, : len(blocks)] = blocks
                batch.slots[kind][first:last] = slots
            batch.cu_lens[s + 1], batch.context_lens[s] = last, start + len(token_ids)
            first = last
        batch.logit_rows[:first] = torch.arange(first)
        batch.counts[:] = torch.tensor([first, len(parts), first])
        self.replay()
        return list(self.buffers.logits[:first].clone().split([len(ids) for ids, _, _ in parts]))

    def read(self, token_ids: Sequence[int]) -> Iterator[Tensor]:
        """One sequence from its beginning, in steps of up to `max_tokens`: their logits [T, vocabulary]."""
        blocks = range(1, 1 - (-len(token_ids) // self.block_size))
        for first in range(0, len(token_ids), self.max_tokens):
            yield self((token_ids[first : first + self.max_tokens], first, blocks))[0]
