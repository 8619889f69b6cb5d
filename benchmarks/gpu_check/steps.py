"""Steps over paged memory, made of numbers alone: so many new tokens at the end of each context, in blocks
that lie scattered; pools of random keys and values; a sampler; a model's pass over such a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import torch
from torch import Tensor

from engine.models.decoder import Buffers, Decoder
from engine.running.kv_cache import make_kv_cache
from kernels import ForwardBatch, KVLayer, head_bytes, read_pool
from kernels.triton.sampling import Draw, Sampler

from .setup import Setup


def on_device(batch: ForwardBatch, device: torch.device) -> ForwardBatch:
    """The same with its numbers on the card, and kept on the host."""
    if device.type == "cpu":
        return batch

    def moved(value: object) -> object:
        return tuple(map(moved, value)) if isinstance(value, tuple) else value.to(device)

    names = [each.name for each in fields(batch) if each.name != "host"]
    return replace(batch, **{name: moved(getattr(batch, name)) for name in names}, host=batch)


def make_batch(
    setup: Setup, new: Sequence[int], contexts: Sequence[int], vocabulary: int = 1, block_size: int = 64
) -> tuple[ForwardBatch, int]:
    """A step whose sequences' blocks lie scattered, and how many blocks there are. Logits of each last
    token.
    """
    needed = [-(-n // block_size) for n in contexts]
    blocks = torch.randperm(sum(needed)) + 1
    tables = torch.zeros(len(new), max(needed), dtype=torch.int64)
    for table, some in zip(tables, blocks.split(needed)):
        table[: len(some)] = some
    positions = torch.cat([torch.arange(n - m, n) for m, n in zip(new, contexts)])
    owner = torch.arange(len(new)).repeat_interleave(torch.tensor(new))
    ends = torch.tensor(new).cumsum(0)
    batch = ForwardBatch(
        counts=torch.tensor([sum(new), len(new), len(new)]),
        token_ids=torch.randint(0, vocabulary, (sum(new),)),
        positions=positions,
        cu_lens=torch.cat([torch.zeros(1, dtype=torch.int64), ends]),
        context_lens=torch.tensor(contexts),
        slots=(tables[owner, positions // block_size] * block_size + positions % block_size,),
        block_tables=(tables,),
        logit_rows=ends - 1,
    )
    return on_device(batch, setup.device), sum(needed) + 1


def make_layers(
    setup: Setup, num_blocks: int, layers: int, heads: int, kv_heads: int, dim: int, dtype: torch.dtype
) -> list[KVLayer]:
    """Layers over one pool of random keys and values."""
    size = layers * 2 * kv_heads * 64 * head_bytes(dim, dtype)
    raw = torch.zeros(num_blocks, size, dtype=torch.uint8, device=setup.device)
    values, scales = read_pool(raw, layers, kv_heads, 64, dim, dtype)
    spread = 1 if scales is None else 20
    for block in values:
        block.copy_((torch.randn(block.shape, device=setup.device) * spread).to(dtype))
    if scales is not None:
        scales.fill_(0.05)
    return [KVLayer(values, i, 0, 64, heads, dim, scales=scales) for i in range(layers)]


def make_sampler(setup: Setup, vocabulary: int, rows: int, top_k: int = 0, top_p: float = 0.95) -> Sampler:
    """One that draws every row alike; in a dry run of small tiles, which the interpreter sorts sooner."""
    small = {"tile": 256, "most": 64, "group": 8} if setup.dry else {}
    sampler = Sampler(setup.device, rows, vocabulary, **small)
    sampler.set([Draw(0.8, top_p, 0, 1, 0, 0, top_k, -1, 0.3)] * rows)
    return sampler


def bytes_read(kv: KVLayer, contexts: Sequence[int]) -> int:
    """Of keys and values, by one layer."""
    return sum(contexts) * 2 * kv.num_kv_heads * head_bytes(kv.head_dim, kv.pool.dtype)


def gathered(kv: KVLayer, table: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """A sequence's keys and values [KV, n, D], one behind the other, for peers that know no pages."""
    found = kv.pool[table, kv.layer].unflatten(-1, (kv.block_size, kv.head_dim)).permute(1, 2, 0, 3, 4)
    keys, values = found.flatten(2, 3)[:, :, :length].contiguous()
    return keys, values


class Pass:
    """A forward pass of a model over one step, and a draw for each of its last tokens."""

    def __init__(self, setup: Setup, model: Decoder, batch: ForwardBatch, blocks: int) -> None:
        config, ops = model.config, setup.ops
        tokens, rows = int((batch.host or batch).counts[0]), int((batch.host or batch).counts[2])
        self.model, self.ops, self.batch = model, ops, batch
        self.layers = make_kv_cache(config, ops, [blocks], 64).layers
        self.buffers = Buffers.make(config, ops, tokens, rows)
        self.sampler = make_sampler(setup, config.vocab_size, rows)
        self.tokens = torch.zeros(rows, dtype=torch.int64, device=setup.device)

    def __call__(self) -> None:
        self.model.forward(self.ops, self.batch, self.layers, self.buffers)
        self.sampler.sample(self.buffers.logits, self.tokens)
