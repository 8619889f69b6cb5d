"""What families add around a product, on the Numba backend against the reference in float64.

Errors allowed: inputs are rounded to int8 in groups of 32, about half a percent of noise in a product; what
is done in float32 alone is exact to 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from kernels import Activation, Dense, ForwardBatch, Int8, KVLayer, Norm, Ops, Rope, select
from kernels.cpu.ops import CpuOps
from tests.kernels.random_weights import random_weight
from tests.kernels.test_cpu_attention import values_of

TOKENS, WIDTH, HEADS, KV_HEADS, DIM = 9, 128, 4, 2, 32


@pytest.fixture(scope="module")
def ops() -> Iterator[CpuOps]:
    ops = CpuOps(threads=2)
    yield ops
    ops.close()


@pytest.fixture
def oracle() -> Ops:
    torch.manual_seed(0)
    return select(backend="reference", dtype=torch.float64)


def make_batch() -> ForwardBatch:
    """One sequence of TOKENS tokens; the logits of three are wanted."""
    return ForwardBatch(
        counts=torch.tensor([TOKENS, 1, 3]),
        token_ids=torch.arange(TOKENS),
        positions=torch.arange(TOKENS),
        cu_lens=torch.tensor([0, TOKENS]),
        context_lens=torch.tensor([TOKENS]),
        slots=(torch.arange(TOKENS),),
        block_tables=(torch.zeros(1, 4, dtype=torch.int64),),
        logit_rows=torch.tensor([5, 0, 8]),
    )


def norm_of(width: int) -> Norm:
    return Norm(torch.rand(width) + 0.5, 1e-5)


def both(ops: Ops, oracle: Ops, run: Callable[[Ops], Tensor], noise: float = 0.01) -> None:
    """The two agree but for rounded inputs."""
    found, expected = run(ops).double(), run(oracle)
    assert expected.std() > 0
    assert (found - expected).square().mean().sqrt() < noise * expected.square().mean().sqrt()


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.22])
def test_sums_are_normalized_and_scaled(ops: CpuOps, oracle: Ops, normed: bool, scale: float) -> None:
    hidden, residual = torch.randn(TOKENS, WIDTH), torch.randn(TOKENS, 80)
    weight, norm, down = random_weight(Int8, 96, WIDTH), norm_of(80), Dense(torch.randn(80, 48))

    def run(ops: Ops) -> Tensor:
        x, out = ops.activation(TOKENS, 48), ops.hidden(TOKENS, 80)
        out[:] = residual
        pair = [Dense(weight.dequantize()[:48]), Dense(weight.dequantize()[48:])]
        ops.norm_gated_linear(make_batch(), hidden.to(out), None, ops.pack(pair, gated=True), x)
        ops.linear_add(make_batch(), x, ops.pack([down]), out, norm if normed else None, scale)
        return out

    both(ops, oracle, run, 0.03)


@pytest.mark.parametrize("keep", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("run", [0, 16, 80])
def test_rows_are_added(ops: CpuOps, oracle: Ops, run: int, keep: float) -> None:
    """As they are, normalized whole, or in runs; where nothing is kept, it does not matter what was there."""
    x, residual, norm = torch.randn(TOKENS, 80), torch.randn(TOKENS, 80), norm_of(run) if run else None
    if not keep:
        residual[3] = torch.nan

    def both_added(ops: Ops) -> Tensor:
        out = ops.hidden(TOKENS, 80)
        out[:] = residual
        ops.add(make_batch(), x.to(out), out, norm, 0.7, keep)
        return out

    both(ops, oracle, both_added, 1e-6)


@pytest.mark.parametrize("keep", [0.5, 0.0])
def test_a_part_of_the_sum_is_kept(ops: CpuOps, oracle: Ops, keep: float) -> None:
    hidden, residual = torch.randn(TOKENS, WIDTH), torch.randn(TOKENS, 80)
    gate_up, norm, down = torch.randn(96, WIDTH), norm_of(80), Dense(torch.randn(80, 48))

    def run(ops: Ops) -> Tensor:
        x, out = ops.activation(TOKENS, 48), ops.hidden(TOKENS, 80)
        out[:] = residual
        packed = ops.pack([Dense(gate_up[:48]), Dense(gate_up[48:])], gated=True)
        ops.norm_gated_linear(make_batch(), hidden.to(out), None, packed, x)
        ops.linear_add(make_batch(), x, ops.pack([down]), out, norm, 0.5, keep)
        return out

    both(ops, oracle, run, 0.03)


@pytest.mark.parametrize("width", [32, 48])
def test_a_gate_lets_columns_of_a_buffer_through(ops: CpuOps, oracle: Ops, width: int) -> None:
    gates, buffer, eye = torch.randn(TOKENS, width) * 3, torch.randn(TOKENS, 200), Dense(torch.eye(width))

    def run(ops: Ops) -> Tensor:
        x, out = ops.activation(TOKENS, width), ops.hidden(TOKENS, width)
        ops.gate(make_batch(), gates.to(out), buffer.to(out)[:, 70 : 70 + width], x, "gelu_tanh")
        ops.linear_add(make_batch(), x, ops.pack([eye]), out)
        return out

    both(ops, oracle, run)


def test_inputs_may_go_without_a_norm(ops: CpuOps, oracle: Ops) -> None:
    hidden, weight = torch.randn(TOKENS, WIDTH) * 5, random_weight(Int8, 64, WIDTH)

    def run(ops: Ops) -> Tensor:
        out = ops.hidden(TOKENS, 64)
        ops.norm_linear(make_batch(), hidden.to(out), None, ops.pack([weight]), out)
        return out

    both(ops, oracle, run)


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
def test_gates(ops: CpuOps, oracle: Ops, activation: Activation) -> None:
    """Also where a gate is so large or so small that its power of two would overflow."""
    gates = torch.tensor([0.0, 0.5, -0.5, 3.0, -3.0, 40.0, -40.0, -88.0, -100.0, -1000.0, 1000.0, 1e5])
    eye = torch.eye(32) * 127
    gate = torch.zeros(32, 32)
    gate[:12, 0] = gates
    up = torch.zeros(32, 32)
    up[:, 0] = 1.0
    hidden = torch.zeros(TOKENS, 32)
    hidden[:, 0] = 1.0

    def run(ops: Ops) -> Tensor:
        x, out = ops.activation(TOKENS, 32), ops.hidden(TOKENS, 32)
        packed = ops.pack([Dense(gate), Dense(up)], gated=True)
        ops.norm_gated_linear(make_batch(), hidden.to(out), None, packed, x, activation)
        ops.linear_add(make_batch(), x, ops.pack([Dense(eye)]), out)
        return out / 127

    found, expected = run(ops).double(), run(oracle)
    group = expected.abs().max() / 127  # of the activation that carries it
    assert (found - expected).abs().max() < group


@pytest.mark.parametrize("vocabulary", [32, 100, 37])
def test_logits_are_capped(ops: CpuOps, oracle: Ops, vocabulary: int) -> None:
    hidden, weight, norm = torch.randn(TOKENS, WIDTH), Dense(torch.randn(vocabulary, WIDTH)), norm_of(WIDTH)

    def run(ops: Ops) -> Tensor:
        out = ops.hidden(4, vocabulary)
        ops.logits(make_batch(), hidden.to(out), norm, ops.pack([weight]), out, soft_cap=7.0)
        assert not out[3:].any()
        return out[:3]

    both(ops, oracle, run, 0.02)
    assert run(ops).abs().max() < 7.0


def test_the_embedding_is_scaled(ops: CpuOps, oracle: Ops) -> None:
    table = random_weight(Int8, 32, WIDTH)

    def run(ops: Ops) -> Tensor:
        out = ops.hidden(TOKENS, WIDTH)
        ops.embed(make_batch(), ops.pack([table]), out, 11.3)
        return out

    both(ops, oracle, run, 1e-6)


@pytest.mark.parametrize("which", ["head", "whole"])
@pytest.mark.parametrize("turned", [DIM, 0])
@pytest.mark.parametrize("alone", [False, True])
def test_queries_and_keys_are_normalized(
    ops: CpuOps, oracle: Ops, which: str, turned: int, alone: bool
) -> None:
    qkv = torch.randn(TOKENS, (HEADS + 2 * KV_HEADS) * DIM) * 3
    q_norm, k_norm = (norm_of(DIM if which == "head" else heads * DIM) for heads in (HEADS, KV_HEADS))
    v_norm = norm_of(DIM) if which == "head" else None
    angles = torch.outer(torch.arange(TOKENS), 100 ** -(torch.arange(0, turned, 2) / DIM))
    rope = Rope(angles.cos(), angles.sin())

    def run(ops: Ops) -> Tensor:
        pool = torch.zeros(4, 1, 2, KV_HEADS, 16 * DIM, dtype=ops.kv_dtype)
        kv = KVLayer(pool, 0, 0, 16, HEADS, DIM, scale=0.3)
        q, out = (ops.activation(TOKENS, HEADS * DIM) for _ in range(2))
        rows = qkv.to(ops.hidden(1, 1), copy=True)
        ops.rope_write(make_batch(), rows, rope, kv, q, q_norm, k_norm, v_norm)
        if alone:  # other queries look at what has been written
            others = 2 * qkv[:, : HEADS * DIM].to(rows)
            ops.rope_write(make_batch(), others, rope, kv, q, q_norm)
        ops.attention(make_batch(), q, kv, out)
        return values_of(out, TOKENS, HEADS * DIM)[0] if ops.name == "numba" else out

    both(ops, oracle, run)
