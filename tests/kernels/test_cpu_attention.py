"""The Numba backend's attention against the reference in float64: heads, windows, caps, prefixes, blocks,
mixed steps.

Errors allowed: the result is rounded to int8, half a step of its group's scale. Both pools have one type, but
a key turned in float32 may round its last bit differently from one turned in float64: for float16 a change of
2^-11 * |q k| / sqrt(D) in one score of many, below 1e-4 in the result; for int8 sixteen times as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from kernels import ForwardBatch, KVLayer, Ops, Rope, head_bytes, read_pool, select
from kernels.cpu import layout
from kernels.cpu.ops import CpuOps

CONTEXT = 1024
ROUNDING = {torch.float16: 1e-4, torch.int8: 2e-3}
Step = list[tuple[int, int, int]]  # (sequence, first position, tokens)


@pytest.fixture(scope="module", params=list(ROUNDING), ids=str)
def ops(request: pytest.FixtureRequest) -> Iterator[CpuOps]:
    ops = CpuOps(threads=2, kv_dtype=request.param)
    yield ops
    ops.close()


def make_batch(step: Step, block_size: int) -> ForwardBatch:
    """Sequence s has its blocks scattered over the pool; batch rows are in the step's order."""
    tokens, per_sequence = sum(count for *_, count in step), CONTEXT // block_size
    scattered = torch.randperm(4 * per_sequence, generator=torch.Generator().manual_seed(block_size)).view(
        4, -1
    )
    tables = torch.zeros(len(step), per_sequence, dtype=torch.int64)
    positions = torch.cat([torch.arange(first, first + count) for _, first, count in step])
    slots, ends = [], [0]
    for i, (sequence, first, count) in enumerate(step):
        tables[i] = scattered[sequence]
        places = torch.arange(first, first + count)
        slots.append(tables[i, places // block_size] * block_size + places % block_size)
        ends.append(ends[-1] + count)
    return ForwardBatch(
        counts=torch.tensor([tokens, len(step), 0]),
        token_ids=torch.zeros(tokens, dtype=torch.int64),
        positions=positions,
        cu_lens=torch.tensor(ends),
        context_lens=torch.tensor([first + count for _, first, count in step]),
        slots=(torch.cat(slots),),
        block_tables=(tables,),
        logit_rows=torch.zeros(1, dtype=torch.int64),
    )


def make_layer(
    dtype: torch.dtype, heads: int, kv_heads: int, dim: int, block_size: int, window: int, soft_cap: float
) -> KVLayer:
    """Memory never written holds no number, as a fresh pool may: all bits are set."""
    num_bytes = 2 * 2 * kv_heads * block_size * head_bytes(dim, dtype)
    raw = torch.full((4 * CONTEXT // block_size, num_bytes), 255, dtype=torch.uint8)
    pool, scales = read_pool(raw, 2, kv_heads, block_size, dim, dtype)
    return KVLayer(pool, 1, 0, block_size, heads, dim, window, soft_cap, scales=scales)


def make_rope(width: int) -> Rope:
    angles = torch.outer(torch.arange(CONTEXT), 10000 ** -(torch.arange(0, width, 2) / width))
    return Rope(angles.cos(), angles.sin())


def values_of(activation: Tensor, tokens: int, width: int) -> tuple[Tensor, Tensor]:
    """What an activation buffer holds, and the scale of each value."""
    groups = -(-width // 32)
    raw = (
        activation.numpy()
        .reshape(-1)
        .view(np.uint8)[: tokens * groups * layout.ACT]
        .reshape(tokens, groups, layout.ACT)
    )
    scale = raw[..., layout.Act.SCALE : layout.Act.SCALE + 4].copy().view(np.float32)
    found = raw[..., :32].view(np.int8) * scale.astype(np.float64)
    spread = np.broadcast_to(scale, found.shape).reshape(tokens, -1)
    return torch.from_numpy(found.reshape(tokens, -1)[:, :width]), torch.from_numpy(
        spread[:, :width].copy()
    ).double()


def run(ops: Ops, kv: KVLayer, rope: Rope, qkv: Tensor, step: Step) -> Tensor:
    """One layer's rope_write and attention; qkv [sequence, position, (H + 2 KV) * D]."""
    batch = make_batch(step, kv.block_size)
    rows = torch.cat([qkv[s, first : first + count] for s, first, count in step])
    q, out = (ops.activation(len(rows), kv.num_heads * kv.head_dim) for _ in range(2))
    ops.rope_write(batch, rows, rope, kv, q)
    ops.attention(batch, q, kv, out)
    return out


def check(
    ops: CpuOps, steps: Sequence[Step], heads: int, kv_heads: int, dim: int, *, block_size: int = 16,
    window: int = 0, soft_cap: float = 0.0, turned: int = 0, sinks: Tensor | None = None,
) -> None:  # fmt: skip
    oracle = select(backend="reference", dtype=torch.float64, kv_dtype=ops.kv_dtype)
    qkv, rope = torch.randn(4, CONTEXT, (heads + 2 * kv_heads) * dim), make_rope(turned or dim)
    shape = (heads, kv_heads, dim, block_size, window, soft_cap)
    mine, theirs = (replace(make_layer(ops.kv_dtype, *shape), sinks=sinks) for _ in range(2))
    for step in steps:
        tokens = sum(count for *_, count in step)
        found, scale = values_of(run(ops, mine, rope, qkv, step), tokens, heads * dim)
        expected = run(oracle, theirs, rope, qkv.double(), step)
        assert ((found - expected).abs() <= scale / 2 + ROUNDING[ops.kv_dtype]).all(), (
            step,
            (found - expected).abs().max(),
        )


def one_chat(prompt: int, decode: int = 3) -> list[Step]:
    return [[(0, 0, prompt)], *([(0, prompt + i, 1)] for i in range(decode))]


@pytest.mark.parametrize(("heads", "kv_heads"), [(2, 2), (3, 1), (4, 1), (14, 2), (9, 3)])
@pytest.mark.parametrize("dim", [16, 64, 80, 128])
def test_heads_of_every_kind(ops: CpuOps, heads: int, kv_heads: int, dim: int) -> None:
    check(ops, one_chat(300), heads, kv_heads, dim)


@pytest.mark.parametrize("dim", [256, 512])
def test_the_widest_heads(ops: CpuOps, dim: int) -> None:
    check(ops, one_chat(40), 4, 2, dim)


@pytest.mark.parametrize("block_size", [16, 32, 64, 128])
def test_block_sizes(ops: CpuOps, block_size: int) -> None:
    check(ops, one_chat(530), 6, 2, 48, block_size=block_size)


@pytest.mark.parametrize("window", [1, 7, 64, 300])
def test_windows(ops: CpuOps, window: int) -> None:
    check(
        ops, [[(0, 0, 200)], [(0, 200, 370)], *([(0, 570 + i, 1)] for i in range(2))], 4, 2, 32, window=window
    )


def test_soft_cap(ops: CpuOps) -> None:
    check(ops, one_chat(280), 4, 2, 32, soft_cap=2.0)


@pytest.mark.parametrize("window", [0, 64])
def test_sinks(ops: CpuOps, window: int) -> None:
    """Some take nothing, some nearly all."""
    check(ops, one_chat(530), 4, 2, 32, window=window, sinks=torch.tensor([-1e4, 0.0, 3.0, 300.0]))


def test_rope_over_a_part_of_the_head(ops: CpuOps) -> None:
    check(ops, one_chat(50), 4, 2, 64, turned=32)


def test_prompts_beside_running_answers_and_after_a_prefix(ops: CpuOps) -> None:
    first: Step = [(0, 0, 256), (1, 0, 1), (2, 0, 20), (3, 0, 511)]
    mixed: Step = [(3, 511, 1), (1, 1, 300), (0, 256, 1), (2, 20, 17)]
    check(ops, [first, mixed, [(s, 512, 1) for s in (3,)], [(0, 257, 1), (1, 301, 1), (2, 37, 1)]], 6, 2, 32)


def test_values_too_large_for_float16_stay_finite(ops: CpuOps) -> None:
    qkv = torch.randn(4, CONTEXT, 4 * 16)
    qkv[0, 3, 48:] = 1e6
    kv = make_layer(ops.kv_dtype, 2, 1, 16, 16, 0, 0.0)
    found, _ = values_of(run(ops, kv, make_rope(16), qkv, [(0, 0, 20)]), 20, 32)
    assert found.isfinite().all()
