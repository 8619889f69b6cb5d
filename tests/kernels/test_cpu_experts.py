"""A mixture of experts on the Numba backend: against the reference; the same bits alone and in company."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import Activation, Dense, Experts, ForwardBatch, Int4K, Int6, Norm, Ops, select
from kernels.cpu.ops import CpuOps
from tests.kernels.random_weights import random_weight

WIDTH, SIZE, NUM = 256, 96, 8


@pytest.fixture(scope="module")
def ops() -> Iterator[CpuOps]:
    ops = CpuOps(threads=2)
    yield ops
    ops.close()


def make_batch(tokens: int) -> ForwardBatch:
    zeros = torch.zeros(tokens, dtype=torch.int64)
    counts = torch.tensor([tokens, 1, 0])
    return ForwardBatch(counts, zeros, zeros, zeros[:1], zeros[:1], (zeros,), (zeros[None],), zeros)


def pack(
    ops: Ops,
    top_k: int,
    normalized: bool,
    kinds: tuple[type, type] = (Int4K, Int4K),
    activation: Activation = "silu",
) -> Experts:
    """The router looks at the first inputs alone, so that rounding does not change whom it chooses."""
    torch.manual_seed(1)
    router = torch.zeros(NUM, WIDTH)
    router[:, :NUM] = torch.eye(NUM)
    gate_up = [[random_weight(kind, SIZE, WIDTH) for kind in kinds] for _ in range(NUM)]
    down = [Dense(torch.randn(WIDTH, SIZE) * 0.1) for _ in range(NUM)]
    return Experts(
        ops.pack([Dense(router)]),
        tuple(ops.pack(pair, torch.randn(2 * SIZE), gated=True) for pair in gate_up),
        tuple(ops.pack([matrix], torch.randn(WIDTH)) for matrix in down),
        top_k,
        normalized,
        activation,
    )


def make_hidden(tokens: int) -> Tensor:
    """Router scores are a shuffled 0, 0.5, 1 ... of each token."""
    generator = torch.Generator().manual_seed(2)
    hidden = torch.randn(tokens, WIDTH, generator=generator)
    for row in hidden:
        row[:NUM] = torch.randperm(NUM, generator=generator) / 2
    return hidden


def run(ops: Ops, experts: Experts, hidden: Tensor) -> Tensor:
    """What the mixture adds."""
    out = ops.hidden(*hidden.shape)
    out[:] = hidden
    norm = Norm(torch.ones(WIDTH), 1e-5)
    ops.norm_experts_add(make_batch(len(hidden)), out, norm, experts)
    return (out - hidden.to(out)).double()


@pytest.mark.parametrize("top_k,normalized", [(1, False), (2, True), (3, False), (NUM, True)])
@pytest.mark.parametrize("tokens", [1, 7, 40])
def test_it_is_what_the_reference_computes(ops: CpuOps, tokens: int, top_k: int, normalized: bool) -> None:
    oracle = select(backend="reference", dtype=torch.float64)
    hidden = make_hidden(tokens)
    expected = run(oracle, pack(oracle, top_k, normalized), hidden)
    found = run(ops, pack(ops, top_k, normalized), hidden)
    assert (found - expected).square().mean().sqrt() < 0.02 * expected.square().mean().sqrt()


def test_gate_and_up_of_different_formats(ops: CpuOps) -> None:
    oracle, hidden = select(backend="reference", dtype=torch.float64), make_hidden(20)
    expected, found = (run(each, pack(each, 2, True, (Int4K, Int6)), hidden) for each in (oracle, ops))
    assert (found - expected).square().mean().sqrt() < 0.02 * expected.square().mean().sqrt()


def test_gates_that_are_clamped(ops: CpuOps) -> None:
    """gpt-oss's activation, with biases, on values on both sides of its limits."""
    oracle, hidden = select(backend="reference", dtype=torch.float64), 30 * make_hidden(20)
    expected, found = (
        run(each, pack(each, 2, True, activation="clamped_swiglu"), hidden) for each in (oracle, ops)
    )
    assert (found - expected).square().mean().sqrt() < 0.02 * expected.square().mean().sqrt()


def test_a_router_of_its_own_and_scaled_shares(ops: CpuOps) -> None:
    """What they say comes into another buffer, whatever was in there."""
    oracle, hidden = select(backend="reference", dtype=torch.float64), make_hidden(20)
    gain = torch.full((WIDTH,), 1.5)
    results = []
    for each in (oracle, ops):
        experts = replace(
            pack(each, 3, True), router_norm=Norm(gain, 1e-5), scales=torch.linspace(0.5, 2.0, NUM)
        )
        given, out = hidden.to(each.hidden(1, 1)), each.hidden(20, WIDTH).fill_(torch.nan)
        kept = given.clone()
        each.norm_experts_add(make_batch(20), given, Norm(torch.ones(WIDTH), 1e-5), experts, out)
        assert torch.equal(given, kept)
        results.append(out.double())
    assert (results[1] - results[0]).square().mean().sqrt() < 0.02 * results[0].square().mean().sqrt()


def test_company_changes_no_bit(ops: CpuOps) -> None:
    experts, hidden = pack(ops, 3, True), make_hidden(40)
    together = run(ops, experts, hidden)
    alone = torch.cat([run(ops, experts, row[None]) for row in hidden])
    assert torch.equal(together, alone)


def test_no_tokens_are_no_work(ops: CpuOps) -> None:
    experts, hidden = pack(ops, 3, True), make_hidden(4)
    batch = make_batch(4)
    batch.counts[0] = 0
    out = hidden.clone()
    ops.norm_experts_add(batch, out, Norm(torch.ones(WIDTH), 1e-5), experts)
    assert torch.equal(out, hidden)
