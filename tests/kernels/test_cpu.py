"""The Numba backend against the reference in float64, on every way to the dot product that this machine has.

Errors allowed. Activations are rounded to int8 with one scale per 32: each is off by at most scale / 2, so a
product is off by at most sum(scale / 2 * |w|). Computed from inputs rounded the same way it is off by float32
arithmetic alone, 1e-5 of the sum of magnitudes, but where an input lies on the edge between two integers; one
in 10,000 does. Keys and values are float16: 2^-11 of their size.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from kernels import Dense, ForwardBatch, Fp8, Int2K, Int4, Int4K, Int4Z, Int5K, Int6, Int8, Norm, select
from kernels.cpu.dots import ways_here
from kernels.cpu.ops import CpuOps
from tests.kernels.random_weights import KINDS, random_weight

ROUNDING = 1e-5


@pytest.fixture(scope="module")
def team() -> Iterator[CpuOps]:
    ops = CpuOps(threads=2)
    yield ops
    ops.close()


@pytest.fixture(params=ways_here(), ids=lambda way: ("plain", "avx2", "avx_vnni", "avx512_vnni")[way])
def ops(team: CpuOps, request: pytest.FixtureRequest) -> CpuOps:
    team.way = request.param
    return team


def make_batch(tokens: int, rows: list[int] | None = None, room: int = 0) -> ForwardBatch:
    """One sequence of so many tokens, in buffers with more room."""
    rows = rows or []
    size = tokens + room
    return ForwardBatch(
        counts=torch.tensor([tokens, 1, len(rows)]),
        token_ids=torch.randint(0, 50, (size,)),
        positions=torch.arange(size),
        cu_lens=torch.tensor([0, tokens]),
        context_lens=torch.tensor([tokens]),
        slots=(torch.arange(size),),
        block_tables=(torch.zeros(1, 4, dtype=torch.int64),),
        logit_rows=torch.tensor(rows + [0] * room, dtype=torch.int64),
    )


def scales_of(x: Tensor) -> Tensor:
    """The activation scale of each value [tokens, K]."""
    padded = torch.nn.functional.pad(x, (0, -x.shape[1] % 32)).view(len(x), -1, 32)
    return (padded.abs().amax(-1, keepdim=True) / 127).expand_as(padded).reshape(len(x), -1)[:, : x.shape[1]]


def check_product(found: Tensor, x: Tensor, w: Tensor, added: Tensor | float = 0.0) -> None:
    """found = w @ x + added, computed from x rounded to int8."""
    scale, rounding = scales_of(x), ROUNDING * (x.abs() @ w.abs().T + 1)
    assert ((found - added - x @ w.T).abs() <= (scale / 2) @ w.abs().T + rounding).all()
    rounded = (x / scale.clamp_min(1e-30)).round() * scale
    assert ((found - added - rounded @ w.T).abs() <= rounding).double().mean() > 0.8


def normalized(hidden: Tensor, norm: Norm) -> Tensor:
    x = hidden.double()
    return x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.gain.double()


def rounded_dense(w: Tensor) -> Tensor:
    """What packing makes of a Dense or Fp8 matrix: int8 in groups of 32 with float16 scales."""
    scale = scales_of(w).half().double()
    return (w / scale).round() * scale


def make_norm(width: int) -> Norm:
    return Norm(torch.rand(width) + 0.5, 1e-5)


ROUNDED = (Dense, Fp8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [64, 50, 5])
def test_norm_linear_of_every_format(ops: CpuOps, kind: type, n: int) -> None:
    weight, bias, norm = random_weight(kind, n, 512), torch.randn(n), make_norm(512)
    for tokens in (1, 2, 3, 5, 8, 14, 19):
        hidden, batch = torch.randn(tokens + 2, 512) * 3, make_batch(tokens, room=2)
        out = torch.full((tokens + 2, n), 7.0)
        ops.norm_linear(batch, hidden, norm, ops.pack([weight], bias), out)
        x, w = normalized(hidden[:tokens], norm), weight.dequantize(torch.float64)
        check_product(out[:tokens], x, rounded_dense(w) if kind in ROUNDED else w, bias)
        assert (out[tokens:] == 7).all(), "rows beyond the step's tokens are left alone"


def test_parts_of_different_formats_and_odd_sizes(ops: CpuOps) -> None:
    weights = [
        random_weight(kind, n, 256)
        for kind, n in ((Int4K, 64), (Int4K, 32), (Int5K, 40), (Int6, 7), (Int8, 33))
    ]
    hidden, norm, bias = torch.randn(9, 256), make_norm(256), torch.randn(176)
    canvas = torch.full((9, 300), 7.0)
    ops.norm_linear(make_batch(9), hidden, norm, ops.pack(weights, bias), canvas[:, 60:236])
    x, w = normalized(hidden, norm), torch.cat([m.dequantize(torch.float64) for m in weights])
    check_product(canvas[:, 60:236], x, w, bias)
    assert (canvas[:, :60] == 7).all() and (canvas[:, 236:] == 7).all(), "nothing outside `out` is written"


def test_dense_of_any_width(ops: CpuOps) -> None:
    weight, hidden, norm = Dense(torch.randn(20, 72)), torch.randn(4, 72), make_norm(72)
    out = ops.hidden(4, 20)
    ops.norm_linear(make_batch(4), hidden, norm, ops.pack([weight]), out)
    check_product(out, normalized(hidden, norm), rounded_dense(weight.values.double()))


@pytest.mark.parametrize(
    ("gate", "up"),
    [(Int4, Int4), (Int4K, Int4K), (Int6, Int6), (Int8, Int8), (Int4K, Int6), (Dense, Int8), (Int2K, Int4Z)],
)
@pytest.mark.parametrize("width", [96, 40])
def test_gates_and_what_they_feed(ops: CpuOps, gate: type, up: type, width: int) -> None:
    tokens = 101  # more than one chunk
    pair, norm, bias = (
        [random_weight(kind, width, 256) for kind in (gate, up)],
        make_norm(256),
        torch.randn(2 * width),
    )
    down = Int8(
        torch.eye(width, 32 * -(-width // 32)).mul(100).to(torch.int8),
        torch.full((width, -(-width // 32)), 0.01).half(),
    )
    hidden, batch, x, start = (
        torch.randn(tokens, 256) / 4,
        make_batch(tokens),
        ops.activation(tokens, width),
        torch.randn(tokens, width),
    )
    ops.norm_gated_linear(batch, hidden, norm, ops.pack(pair, bias, gated=True), x)
    out = start.clone()
    ops.linear_add(batch, x, ops.pack([down]), out)  # the identity: shows the activation
    oracle = select(backend="reference", dtype=torch.float64)
    expected = oracle.activation(tokens, width)
    oracle.norm_gated_linear(batch, hidden.double(), norm, oracle.pack(pair, bias, gated=True), expected)
    inputs = normalized(hidden, norm)
    noise = [(scales_of(inputs) / 2) @ w.dequantize(torch.float64).abs().T for w in pair]
    values = [
        inputs @ w.dequantize(torch.float64).T + b
        for w, b in zip(pair, bias.double().split(width), strict=True)
    ]
    limit = (
        1.1 * noise[0] * (values[1].abs() + noise[1]) + values[0].abs() * noise[1]
    )  # the slope of silu is at most 1.1
    if Dense in (gate, up):
        limit = limit * 2
    found = (out - start).double() / (100 * float(torch.tensor(0.01).half()))
    assert ((found - expected).abs() <= limit + scales_of(expected + limit) + 1e-4).all()


def test_one_token_again_and_again(ops: CpuOps) -> None:
    """Its last rows are handed out to whoever is done first, a batch's are not; each is computed once."""
    pair = ops.pack([random_weight(Int4K, 992, 256) for _ in range(2)], gated=True)
    down, hidden, norm = ops.pack([random_weight(Int8, 1000, 992)]), torch.randn(2, 256), make_norm(256)
    sums = list[Tensor]()
    for tokens in (1, 2):
        batch, x, out = make_batch(tokens), ops.activation(tokens, 992), torch.zeros(tokens, 1000)

        def step(b: ForwardBatch = batch, x: Tensor = x, out: Tensor = out) -> None:
            ops.norm_gated_linear(b, hidden, norm, pair, x)
            ops.linear_add(b, x, down, out)

        run = ops.record(step)
        for _ in range(5):
            run()
        sums.append(out[0])
    assert sums[0].abs().min() > 0 and torch.equal(*sums)


def test_logits_of_chosen_rows(ops: CpuOps) -> None:
    weight, hidden, norm = random_weight(Int4, 100, 64), torch.randn(6, 64), make_norm(64)
    batch, out = make_batch(6, rows=[5, 0, 3], room=3), torch.full((6, 100), 7.0)
    ops.logits(batch, hidden, norm, ops.pack([weight]), out)
    x, w = normalized(hidden[[5, 0, 3]], norm), weight.dequantize(torch.float64)
    check_product(out[:3], x, w)
    assert (out[3:] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
def test_embedding(team: CpuOps, kind: type) -> None:
    weight, batch, hidden = random_weight(kind, 50, 256), make_batch(7, room=1), torch.full((8, 256), 7.0)
    team.embed(batch, team.pack([weight]), hidden)
    expected = weight.dequantize(torch.float64)[batch.token_ids[:7]]
    limit = scales_of(expected) * 0.51 + 2.0**-11 * expected.abs() if kind in ROUNDED else 1e-6
    assert ((hidden[:7].double() - expected).abs() <= limit).all()
    assert (hidden[7] == 7).all()


def test_zeros_and_large_values_survive(ops: CpuOps) -> None:
    """A row of zeros has no scale; a massive value must not disturb other groups."""
    weight, norm = random_weight(Int8, 32, 64), Norm(torch.ones(64), 0.0)
    hidden = torch.randn(3, 64)
    hidden[0], hidden[1, 40] = 0, 1e6
    norm = Norm(torch.ones(64), 1e-6)
    out = ops.hidden(3, 32)
    ops.norm_linear(make_batch(3), hidden, norm, ops.pack([weight]), out)
    assert (out[0] == 0).all()
    x, w = normalized(hidden, norm), weight.dequantize(torch.float64)
    check_product(out[1:], x[1:], w)


def test_copy_blocks(team: CpuOps) -> None:
    pool = torch.randn(6, 2, 2, 1, 16 * 16).half()
    before = pool.clone()
    team.copy_blocks(pool, [1, 2], [2, 5])
    assert (
        torch.equal(pool[2], before[1])
        and torch.equal(pool[5], before[2])
        and torch.equal(pool[0], before[0])
    )
