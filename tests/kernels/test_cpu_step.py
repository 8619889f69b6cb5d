"""A whole step on the Numba backend: recorded once, run for every batch, the same bits however its tokens are
grouped.

The model is small and random, but has what a real one has: mixed formats, biases, ragged sizes, grouped
heads, a context of several segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kernels import Dense, ForwardBatch, Int4, Int4K, Int6, Int8, KVLayer, Norm, Ops, Rope, select
from kernels.cpu.ops import CpuOps
from kernels.weights import Weight
from tests.kernels.random_weights import random_weight

WIDTH, HEADS, KV_HEADS, DIM, FFN, VOCAB, LAYERS = 256, 6, 2, 32, 288, 100, 2
CONTEXT, MAX_TOKENS, MAX_SEQUENCES = 640, 640, 4
TEXT = torch.randint(0, VOCAB, (MAX_SEQUENCES, CONTEXT), generator=torch.Generator().manual_seed(1))


@dataclass
class Matrices:
    """One layer's weights before packing."""

    qkv: list[Weight]
    output: list[Weight]
    gate_up: list[Weight]
    down: list[Weight]


def make_matrices(layer: int) -> Matrices:
    torch.manual_seed(layer)
    rows = (HEADS * DIM, KV_HEADS * DIM, KV_HEADS * DIM)
    kinds = [(Int4K, Int4K, Int6), (Int4, Int4, Int4)][layer % 2]
    return Matrices(
        qkv=[random_weight(kind, n, WIDTH) for kind, n in zip(kinds, rows, strict=True)],
        output=[random_weight((Int8, Dense)[layer % 2], WIDTH, HEADS * DIM)],
        gate_up=[random_weight(kind, FFN, WIDTH) for kind in ((Int4, Int4), (Int4K, Int6))[layer % 2]],
        down=[random_weight((Int4, Int8)[layer % 2], WIDTH, FFN)],
    )


def make_batch(tokens: int, sequences: int, blocks: int) -> ForwardBatch:
    """Empty buffers for the largest step."""
    shapes = {"counts": (3,), "token_ids": (tokens,), "positions": (tokens,), "cu_lens": (sequences + 1,)}
    zeros = {name: torch.zeros(shape, dtype=torch.int64) for name, shape in shapes.items()}
    return ForwardBatch(
        **zeros,
        context_lens=torch.zeros(sequences, dtype=torch.int64),
        slots=(torch.zeros(tokens, dtype=torch.int64),),
        block_tables=(torch.zeros(sequences, blocks, dtype=torch.int64),),
        logit_rows=torch.zeros(tokens, dtype=torch.int64),
    )


class TinyModel:
    """Static buffers, a record, and steps of [(sequence, first position, tokens)] on it."""

    def __init__(self, ops: Ops, block_size: int = 16, window: int = 0) -> None:
        self.ops, self.text, per_sequence = ops, TEXT.clone(), CONTEXT // block_size
        self.block_size = block_size
        order = torch.randperm(
            MAX_SEQUENCES * per_sequence, generator=torch.Generator().manual_seed(block_size)
        )
        self.tables = order.view(MAX_SEQUENCES, -1)
        pool = torch.zeros(len(order), LAYERS, 2, KV_HEADS, block_size * DIM, dtype=ops.kv_dtype)
        self.kv = [KVLayer(pool, i, 0, block_size, HEADS, DIM, window) for i in range(LAYERS)]
        layers = [make_matrices(i) for i in range(LAYERS)]
        torch.manual_seed(9)
        bias, self.norm = torch.randn(2 * KV_HEADS * DIM + HEADS * DIM), Norm(torch.rand(WIDTH) + 0.5, 1e-5)
        self.table = ops.pack([random_weight(Int8, VOCAB, WIDTH)])
        self.layers = [
            (ops.pack(m.qkv, bias), ops.pack(m.output), ops.pack(m.gate_up, gated=True), ops.pack(m.down))
            for m in layers
        ]
        angles = torch.outer(torch.arange(CONTEXT), 10000 ** -(torch.arange(0, DIM, 2) / DIM))
        self.rope = Rope(angles.cos(), angles.sin())
        self.batch = make_batch(MAX_TOKENS, MAX_SEQUENCES, per_sequence)
        self.hidden = ops.hidden(MAX_TOKENS, WIDTH)
        self.qkv = ops.hidden(MAX_TOKENS, (HEADS + 2 * KV_HEADS) * DIM)
        self.q, self.out = ops.activation(MAX_TOKENS, HEADS * DIM), ops.activation(MAX_TOKENS, HEADS * DIM)
        self.ffn, self.logits = ops.activation(MAX_TOKENS, FFN), ops.hidden(MAX_TOKENS, VOCAB)
        self.replay = ops.record(self.forward)

    def forward(self) -> None:
        ops, batch, hidden = self.ops, self.batch, self.hidden
        ops.embed(batch, self.table, hidden)
        for kv, (qkv, output, gate_up, down) in zip(self.kv, self.layers, strict=True):
            ops.norm_linear(batch, hidden, self.norm, qkv, self.qkv)
            ops.rope_write(batch, self.qkv, self.rope, kv, self.q)
            ops.attention(batch, self.q, kv, self.out)
            ops.linear_add(batch, self.out, output, hidden)
            ops.norm_gated_linear(batch, hidden, self.norm, gate_up, self.ffn)
            ops.linear_add(batch, self.ffn, down, hidden)
        ops.logits(batch, hidden, self.norm, self.table, self.logits)

    def step(self, *items: tuple[int, int, int]) -> list[Tensor]:
        """-> the logits [tokens, VOCAB] of each item."""
        batch, end = self.batch, 0
        for i, (s, first, count) in enumerate(items):
            places, start, end = torch.arange(first, first + count), end, end + count
            batch.token_ids[start:end], batch.positions[start:end] = self.text[s, places], places
            blocks, offsets = self.tables[s, places // self.block_size], places % self.block_size
            batch.slots[0][start:end] = blocks * self.block_size + offsets
            batch.block_tables[0][i] = self.tables[s]
            batch.cu_lens[i + 1], batch.context_lens[i] = end, first + count
        batch.counts[:] = torch.tensor([end, len(items), end])
        batch.logit_rows[:end] = torch.arange(end)
        self.replay()
        return list(self.logits[:end].clone().split([count for *_, count in items]))


@pytest.fixture(scope="module")
def ops() -> Iterator[CpuOps]:
    ops = CpuOps(threads=2)
    yield ops
    ops.close()


@pytest.fixture(scope="module")
def expected(ops: CpuOps) -> Tensor:
    """The logits of sequence 0's text, computed as one prompt."""
    return TinyModel(ops).step((0, 0, 600))[0]


def test_the_step_is_what_the_reference_computes(expected: Tensor) -> None:
    oracle = TinyModel(select(backend="reference", dtype=torch.float64)).step((0, 0, 600))[0]
    error = (expected.double() - oracle).square().mean().sqrt() / oracle.std()
    assert error < 0.05, "int8 activations: about half a percent of noise in each of ten products"


def test_one_token_at_a_time_gives_the_bits_of_the_prompt(ops: CpuOps, expected: Tensor) -> None:
    model = TinyModel(ops)
    assert torch.equal(torch.cat([model.step((0, i, 1))[0] for i in range(600)]), expected)


@pytest.mark.parametrize("block_size", [16, 64])
def test_blocks_that_come_back_elsewhere_give_the_same_bits(
    ops: CpuOps, expected: Tensor, block_size: int
) -> None:
    """Swapped, or read from a file into another process's pool: a block is its bytes, wherever they lie."""
    before, after = TinyModel(ops, block_size), TinyModel(ops, block_size)
    before.step((0, 0, 320))
    after.tables = after.tables.flip(0)
    for source, target in zip(before.tables[0][: 320 // block_size], after.tables[0]):
        kept = bytearray(before.kv[0].pool[source].reshape(-1).view(torch.uint8).numpy().data)
        after.kv[0].pool[target].reshape(-1).view(torch.uint8).copy_(
            torch.frombuffer(kept, dtype=torch.uint8)
        )
    assert torch.equal(after.step((0, 320, 280))[0], expected[320:])


@pytest.mark.parametrize("sizes", [(16,) * 38, (1, 255, 1, 256, 87), (7, 300, 293)])
def test_chunks_give_the_same_bits(ops: CpuOps, expected: Tensor, sizes: tuple[int, ...]) -> None:
    model, found, at = TinyModel(ops), [], 0
    for size in sizes:
        found.append(model.step((0, at, min(size, 600 - at)))[0])
        at += size
    assert torch.equal(torch.cat(found), expected)


def test_neighbours_change_no_bit(ops: CpuOps, expected: Tensor) -> None:
    model, found = TinyModel(ops), []
    model.step((1, 0, 3), (2, 0, 300))
    found.append(model.step((3, 0, 41), (0, 0, 270), (1, 3, 1))[1])
    found.append(model.step((0, 270, 80), (1, 4, 100), (2, 300, 1), (3, 41, 1))[0])
    found += [
        model.step((1, 104 + i, 1), (2, 301 + i, 1), (0, 350 + i, 1), (3, 42 + i, 1))[2] for i in range(12)
    ]
    found.append(model.step((2, 313, 100), (0, 362, 238))[1])
    assert torch.equal(torch.cat(found), expected)


def test_a_prefix_computed_by_another_sequence_changes_no_bit(ops: CpuOps, expected: Tensor) -> None:
    model = TinyModel(ops)
    model.step((0, 0, 304))
    model.tables[3, :19] = model.tables[0, :19]  # 304 tokens in 19 blocks
    model.text[3] = model.text[0]
    assert torch.equal(model.step((3, 304, 296))[0], expected[304:])


@pytest.mark.parametrize("block_size", [32, 64])
def test_block_sizes_change_no_bit(ops: CpuOps, expected: Tensor, block_size: int) -> None:
    model = TinyModel(ops, block_size)
    assert torch.equal(
        torch.cat([model.step((0, 0, 590))[0], *(model.step((0, 590 + i, 1))[0] for i in range(10))]),
        expected,
    )


def test_windows_give_the_same_bits_too(ops: CpuOps) -> None:
    whole = TinyModel(ops, window=200).step((0, 0, 600))[0]
    model = TinyModel(ops, window=200)
    parts = [
        model.step((0, 0, 450))[0],
        model.step((0, 450, 3))[0],
        *(model.step((0, 453 + i, 1))[0] for i in range(147)),
    ]
    assert torch.equal(torch.cat(parts), whole)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_bit(expected: Tensor, threads: int) -> None:
    ops = CpuOps(threads=threads)
    model = TinyModel(ops)
    found = [model.step((0, 0, 560))[0], *(model.step((0, 560 + i, 1))[0] for i in range(40))]
    ops.close()
    assert torch.equal(torch.cat(found), expected)


def test_the_portable_kernels_give_the_same_bits(expected: Tensor) -> None:
    ops = CpuOps(threads=2, portable=True)
    model = TinyModel(ops)
    found = [model.step((0, 0, 570))[0], *(model.step((0, 570 + i, 1))[0] for i in range(30))]
    ops.close()
    assert torch.equal(torch.cat(found), expected)


def test_two_records_of_one_backend_live_together(ops: CpuOps, expected: Tensor) -> None:
    first, second = TinyModel(ops), TinyModel(ops, block_size=32)
    first.step((0, 0, 100))
    second.step((0, 0, 400))
    assert torch.equal(first.step((0, 100, 500))[0], expected[100:])
    assert torch.equal(second.step((0, 400, 200))[0], expected[400:])
