"""Mixtures, unsorted, sorted and one by one, against float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import Dense, Experts, Int4, Int8
from kernels.ops import Activation
from kernels.reference import ACTIVATIONS
from kernels.triton.experts import Mixtures, choose_experts, sorted_route
from kernels.triton.linear import Linear
from kernels.triton.targets import INTERPRETER
from tests.kernels.random_weights import random_weight
from tests.kernels.triton.closeness import assert_close

WIDTH, INNER, COUNT = 64, 32, 16


class Mixture:
    """Random experts, packed and exact."""

    def __init__(
        self,
        kind: type,
        linear: Linear,
        top_k: int,
        normalized: bool = True,
        activation: Activation = "silu",
        biased: bool = False,
    ) -> None:
        self.router = Dense(torch.randn(COUNT, WIDTH).bfloat16() / 4)
        gate_up = [[random_weight(kind, INNER, WIDTH) for _ in range(2)] for _ in range(COUNT)]
        down = [random_weight(kind, WIDTH, INNER) for _ in range(COUNT)]
        self.exact_gate_up = [[each.dequantize(torch.float64) for each in pair] for pair in gate_up]
        self.exact_down = [each.dequantize(torch.float64) for each in down]
        self.biases = torch.randn(COUNT, 2 * INNER) * biased, torch.randn(COUNT, WIDTH) * biased
        biases = zip(*self.biases) if biased else [(None, None)] * COUNT
        pairs = [
            (linear.pack(pair, first, gated=True), linear.pack([each], second))
            for pair, each, (first, second) in zip(gate_up, down, biases)
        ]
        router = linear.pack([self.router])
        self.packed = Experts(router, *zip(*pairs), top_k, normalized, activation)  # type: ignore[arg-type]

    def exact(self, x: Tensor) -> Tensor:
        x, act = x.double(), ACTIVATIONS[self.packed.activation]
        shares, chosen = (x @ self.router.dequantize(torch.float64).T).softmax(-1).topk(self.packed.top_k)
        if self.packed.normalized:
            shares = shares / shares.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for t, (row_shares, row) in enumerate(zip(shares, chosen)):
            for share, expert in zip(row_shares, row.tolist()):
                (gate, up), (first, second) = self.exact_gate_up[expert], self.biases[0][expert].view(2, -1)
                inner = act(gate @ x[t] + first, up @ x[t] + second)
                out[t] += share * (self.exact_down[expert] @ inner + self.biases[1][expert])
        return out


@pytest.fixture
def linear() -> Linear:
    torch.manual_seed(0)
    return Linear(torch.device("cpu"), torch.float32, INTERPRETER)


@pytest.mark.parametrize("kind", [Int4, Int8, Dense])
@pytest.mark.parametrize("rows,top_k", [(1, 3), (2, 2), (5, 4)])
def test_few_and_many(kind: type, rows: int, top_k: int, linear: Linear) -> None:
    mixture = Mixture(kind, linear, top_k)
    x, hidden = torch.randn(rows, WIDTH), torch.randn(rows, WIDTH)
    exact = hidden.double() + mixture.exact(x)
    linear.partial.fill_(torch.nan)
    Mixtures(linear).add(x, mixture.packed, hidden)
    assert_close(hidden, exact, torch.float32)
    assert not linear.tickets.any()


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("activation", ["gelu_tanh", "clamped_swiglu"])
def test_other_gates_and_biases(rows: int, activation: Activation, linear: Linear) -> None:
    mixture = Mixture(Int4, linear, 3, activation=activation, biased=True)
    x, hidden = torch.randn(rows, WIDTH), torch.randn(rows, WIDTH)
    exact = hidden.double() + mixture.exact(x)
    Mixtures(linear).add(x, mixture.packed, hidden)
    assert_close(hidden, exact, torch.float32)


def test_scaled_shares_and_what_the_router_reads(linear: Linear) -> None:
    mixture, x, asked = Mixture(Int4, linear, 2), torch.randn(3, WIDTH), torch.randn(3, WIDTH)
    plain, scaled = torch.zeros(3, WIDTH), torch.zeros(3, WIDTH)
    Mixtures(linear).add(x, mixture.packed, plain, x)
    assert_close(plain, mixture.exact(x), torch.float32)
    twice = replace(mixture.packed, scales=torch.full((len(mixture.packed.down),), 2.0))
    Mixtures(linear).add(x, mixture.packed, plain.zero_(), asked)
    Mixtures(linear).add(x, twice, scaled, asked)
    assert_close(scaled, 2 * plain.double(), torch.float32)


def test_without_matrix_units(linear: Linear) -> None:
    mixture = Mixture(Int4, linear, 2, normalized=False)
    linear.target = replace(INTERPRETER, matrix=False)
    x, hidden = torch.randn(3, WIDTH), torch.zeros(3, WIDTH)
    Mixtures(linear).add(x, mixture.packed, hidden)
    assert_close(hidden, mixture.exact(x), torch.float32)


def test_a_lower_number_wins_among_equals() -> None:
    scores = torch.zeros(2, 6)
    scores[1, 4] = 1
    chosen, shares = torch.zeros(2, 3, dtype=torch.int32), torch.zeros(2, 3)
    choose_experts[(2,)](scores, chosen, shares, 6, XP=8, TOP_K=3, KP=4, NORMALIZED=False)
    assert chosen.tolist() == [[0, 1, 2], [4, 0, 1]]
    assert_close(shares, scores.double().softmax(-1).gather(1, chosen.long()), torch.float32)


def test_a_sorted_route_has_every_pair_once() -> None:
    from kernels.triton.configs import Tile

    torch.manual_seed(0)
    chosen = torch.randint(0, 5, (37, 3), dtype=torch.int32)
    chosen[chosen == 2] = 3  # an expert without pairs
    route = sorted_route(chosen, torch.ones(37, 3), 5, Tile(16, 64, 1, 2, 1))
    seen = []
    for expert, first, last in route.ranges.tolist():
        if expert >= 0:
            pairs = route.order[first : min(first + 16, last)].tolist()
            assert pairs and all(chosen.flatten()[pair] == expert for pair in pairs)
            seen += pairs
    assert sorted(seen) == list(range(37 * 3))


def test_experts_that_differ_in_format_are_refused(linear: Linear) -> None:
    good, other = Mixture(Int4, linear, 2).packed, Mixture(Int8, linear, 2).packed
    mixed = replace(good, down=(*good.down[:-1], other.down[0]))
    with pytest.raises(ValueError, match="one format"):
        Mixtures(linear).add(torch.randn(1, WIDTH), mixed, torch.zeros(1, WIDTH))
