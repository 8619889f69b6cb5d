"""Is it right? Every format, tile and ending, attention, norms, mixtures and draws, on the device against
float64; and what only a card can show: the same bits every time, with programs that share a tile racing each
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch
from torch import Tensor
from torch.nn.functional import silu

from kernels import Dense, Experts, Fp8, Int4, Int4K, Int4Z, Int5K, Int8, Norm, Rope, Weight
from kernels.reference import ACTIVATIONS, ReferenceOps
from kernels.triton.configs import form_of
from kernels.triton.experts import Mixtures
from kernels.triton.packing import PackedMatrix, pack
from kernels.triton.sampling import Draw
from tests.kernels.random_weights import random_weight
from tests.kernels.triton.closeness import LIMITS, relative_error
from tests.kernels.triton.paged import Heads, make_step

from .report import Row
from .setup import Setup
from .steps import make_batch, make_layers, make_sampler, on_device
from .weights import MAKERS

FORMATS = (Int4, Int4Z, Int4K, Int5K, Int8, Fp8, Dense)
SHAPES = ((72, 256), (4096, 4096), (1024, 14336))
ROWS = (1, 8, 16, 31, 64, 200, 600)
DRY_ROWS = (1, 20)


@dataclass(frozen=True, slots=True)
class Case:
    """Something to compute; what it gives is an error that must stay below the limit."""

    name: str
    error: Callable[[], float]
    limit: float


def cases(setup: Setup, shapes: Sequence[tuple[int, int]] = SHAPES) -> Iterator[Case]:
    """All of them, products with matrices of these shapes."""
    limit = LIMITS[setup.ops.dtype]
    shapes = [(64, 256)] if setup.dry else shapes
    for kind in FORMATS:
        for n, k in shapes:
            matrix = Matrix(setup, kind, n, k)
            for rows in DRY_ROWS if setup.dry else ROWS:
                yield Case(f"{kind.__name__} {n}x{k} rows {rows}", partial(matrix.error, rows), limit)
    for form, rounding in (("w8", 1e-2), ("fp8", 4e-2)):  # what eight bits of an activation lose
        yield Case(f"{form} on units for eight bits", lambda f=form: _eight_bits(setup, f), rounding)
    for activation, rows in (("silu", 1), ("gelu_tanh", 20)):
        yield Case(f"gate {activation}", lambda a=activation, r=rows: _gate(setup, a, r), limit)
    for rows in (1, 40):
        yield Case(f"mixture rows {rows}", lambda r=rows: _mixture(setup, r), limit)
    for heads in (
        Heads(),
        Heads(14, 2, 128),
        Heads(4, 1, 256, 16),
        Heads(window=20, soft_cap=3.0, sinks=True),
    ):
        for new, contexts in (([1, 1, 1], [130, 1, 64]), ([40, 1, 9, 3], [170, 100, 9, 65])):
            name = f"attention {heads.queries}/{heads.keys} x {heads.dim}, {max(new)} new"
            yield Case(name, lambda h=heads, n=new, c=contexts: _attention(setup, h, n, c), limit)
    yield Case("norm, rope, pages", lambda: _rope(setup), limit)
    yield Case("draws", lambda: _draws(setup), 1e-9)


def correctness(setup: Setup) -> Iterator[Row]:
    """Failures one by one, the rest as a count."""
    fine = total = 0
    for case in cases(setup):
        total += 1
        try:
            error, note = case.error(), ""
        except Exception as problem:
            error, note = float("nan"), f"{type(problem).__name__}: {problem}"[:200]
        if error < case.limit:
            fine += 1
        else:
            yield Row("correct", case.name, error, "error", case.limit, passed=False, note=note)
    yield Row("correct", "cases within their limits", fine, f"of {total}", passed=fine == total)


def repeats(setup: Setup) -> Iterator[Row]:
    """The same bits, however often; assembly and plain code alike."""
    linear, times = setup.ops.linear, setup.size(10_000, 2)
    n, k = (4096, 4096) if not setup.dry else (64, 512)
    packed, x = linear.pack([_weight(setup, Int4Z, n, k)]), _x(setup, 4, k)
    first, out = (torch.full((4, n), torch.nan, device=setup.device) for _ in range(2))
    linear.apply(x, packed, first)
    same = torch.ones((), dtype=torch.bool, device=setup.device)
    for _ in range(times):
        linear.apply(x, packed, out)
        same &= (out == first).all()
    yield Row("correct", f"{times} products that share tiles", float(same), "equal", passed=bool(same))
    tickets = int(linear.tickets.abs().sum())
    yield Row("correct", "tickets left", tickets, "", passed=tickets == 0)
    for kind in FORMATS[:-1]:
        weight, results = _weight(setup, kind, n // 8, k), []
        for swapped in (True, False) if not setup.dry else (False, False):
            each = pack([weight], None, False, dtype=setup.ops.dtype, swapped=swapped, device=setup.device)
            results.append(torch.full((4, n // 8), torch.nan, device=setup.device))
            linear.apply(x, each, results[-1])
        equal = bool(torch.equal(*results))
        yield Row("correct", f"{kind.__name__}: assembly as plain code", float(equal), "equal", passed=equal)


def _x(setup: Setup, rows: int, width: int) -> Tensor:
    return torch.randn(rows, width, device=setup.device).to(setup.ops.dtype)


def _weight(setup: Setup, kind: type, n: int, k: int) -> Weight:
    """On the device: packing and reference are quick there."""
    weight = random_weight(kind, n, k)
    moved = {f: getattr(weight, f) for f in weight.__dataclass_fields__}
    return replace(weight, **{f: v.to(setup.device) for f, v in moved.items() if isinstance(v, Tensor)})


def _exact(weight: Weight, dtype: torch.dtype) -> Tensor:
    if isinstance(weight, Dense):
        return weight.values.to(dtype).double()
    if isinstance(weight, Fp8):  # its dequantize makes an index on the processor
        scale = weight.scale.double().repeat_interleave(weight.block[0], 0)[: len(weight.values)]
        return weight.values.double() * scale.repeat_interleave(weight.block[1], 1)[:, : weight.shape[1]]
    return weight.dequantize(torch.float64)


class Matrix:
    """One that several numbers of rows are multiplied by, made when it is first needed."""

    def __init__(self, setup: Setup, kind: type, n: int, k: int) -> None:
        self.setup, self.kind, self.n, self.k = setup, kind, n, k

    @cached_property
    def forms(self) -> tuple[PackedMatrix, Tensor]:
        """Packed, and exact."""
        weight = _weight(self.setup, self.kind, self.n, self.k)
        return self.setup.ops.linear.pack([weight]), _exact(weight, self.setup.ops.dtype)

    def error(self, rows: int) -> float:
        """Of a product."""
        (packed, exact), x = self.forms, _x(self.setup, rows, self.k)
        out = torch.full((rows, self.n), torch.nan, device=self.setup.device)
        self.setup.ops.linear.apply(x, packed, out)
        error = relative_error(out, x.double() @ exact.T)
        # expanded weights and what the library makes of them are each rounded once more
        return error / 2 if form_of(self.setup.ops.target, packed.parts[0], rows) == "expand" else error


def _eight_bits(setup: Setup, form: str) -> float:
    weight, x = MAKERS[form](setup, 64, 256), _x(setup, 200, 256)
    out = torch.full((200, 64), torch.nan, device=setup.device)
    setup.ops.linear.apply(x, setup.ops.linear.pack([weight]), out)
    return relative_error(out, x.double() @ _exact(weight, setup.ops.dtype).T)


def _gate(setup: Setup, activation: str, rows: int) -> float:
    weights, x = [_weight(setup, Int4Z, 64, 256) for _ in range(2)], _x(setup, rows, 256)
    out = torch.full((rows, 64), torch.nan, device=setup.device, dtype=setup.ops.dtype)
    packed = setup.ops.linear.pack(weights, None, True)
    setup.ops.linear.apply(x, packed, out, activation=activation)
    gate, up = (x.double() @ weight.dequantize(torch.float64).T for weight in weights)
    return relative_error(out, ACTIVATIONS[activation](gate, up))


def _mixture(setup: Setup, rows: int) -> float:
    count, top_k, width, inner = 16, 2, 64, 32
    router = Dense(torch.randn(count, width, device=setup.device).to(setup.ops.dtype))
    pairs = [[_weight(setup, Int4Z, inner, width) for _ in range(2)] for _ in range(count)]
    downs = [_weight(setup, Int4Z, width, inner) for _ in range(count)]
    ops = setup.ops
    experts = Experts(
        ops.pack([router]), tuple(ops.pack(pair, None, True) for pair in pairs),
        tuple(ops.pack([down]) for down in downs), top_k, True,
    )  # fmt: skip
    x, hidden = _x(setup, rows, width), torch.zeros(rows, width, device=setup.device)
    Mixtures(ops.linear).add(x, experts, hidden)
    exact, wide = torch.zeros_like(hidden, dtype=torch.float64), x.double()
    shares, chosen = (wide @ router.values.double().T).softmax(-1).topk(top_k)
    shares = shares / shares.sum(-1, keepdim=True)
    for expert, (pair, down) in enumerate(zip(pairs, downs)):
        tokens, place = torch.where(chosen == expert)
        gate, up = (wide[tokens] @ each.dequantize(torch.float64).T for each in pair)
        found = (silu(gate) * up) @ down.dequantize(torch.float64).T
        exact[tokens] += shares[tokens, place, None] * found
    return relative_error(hidden, exact)


def _attention(setup: Setup, heads: Heads, new: list[int], contexts: list[int]) -> float:
    step = make_step(new, contexts, setup.ops.dtype, heads)
    kv, device = step.kv, setup.device
    sinks = None if kv.sinks is None else kv.sinks.to(device)
    kv = replace(kv, pool=kv.pool.to(device), sinks=sinks)
    q, out = step.q.to(device), torch.full_like(step.q, torch.nan, device=device)
    setup.ops.attention(on_device(step.batch, device), q, kv, out)
    return relative_error(out[: len(step.wanted)].cpu(), step.wanted)


def _rope(setup: Setup) -> float:
    """Queries, and through attention what was written for keys and values."""
    heads, kv_heads, dim, new = 4, 2, 64, [3, 1]
    batch, blocks = make_batch(setup, new, [70, 20])
    angles = torch.outer(torch.arange(128), 1e4 ** -(torch.arange(0, dim, 2) / dim)).to(setup.device)
    rope, gain = Rope(angles.cos(), angles.sin()), torch.rand(dim, device=setup.device) + 0.5
    norm, qkv = Norm(gain, 1e-5), torch.randn(sum(new), (heads + 2 * kv_heads) * dim, device=setup.device)
    (layer,) = make_layers(setup, blocks, 1, heads, kv_heads, dim, setup.ops.kv_dtype)
    results = []
    for ops in (setup.ops, ReferenceOps(setup.device.type, torch.float64)):
        kv = replace(layer, pool=layer.pool.clone() if ops is setup.ops else layer.pool.double())
        q, out = ops.activation(sum(new), heads * dim), ops.activation(sum(new), heads * dim)
        ops.rope_write(
            batch, qkv.to(qkv.dtype if ops is setup.ops else torch.float64), rope, kv, q, norm, norm
        )
        ops.attention(batch, q, kv, out)
        results.append(torch.cat([q.flatten(), out.flatten()]).double())
    return relative_error(*results)


def _draws(setup: Setup) -> float:
    """How many of the tokens differ from those that engine/running/sampler.py draws."""
    from engine.running.sampler import SamplingRow, sample, uniform
    from engine.types import SamplingParams

    vocabulary, rows = setup.size(128256, 300), setup.size(8, 2)
    sampler = make_sampler(setup, vocabulary, rows)
    logits = torch.randn(rows, vocabulary, device=setup.device) * 3
    wrong = 0
    for top_k, top_p, min_p in (
        (0, 1.0, 0.0),
        (0, 0.9, 0.0),
        (40, 1.0, 0.0),
        (20, 0.8, 0.01),
        (2000, 0.99, 0.0),
    ):
        params = SamplingParams(0.8, top_p, top_k, min_p)
        sampler.set([Draw(0.8, top_p, min_p, 1, 0, 0, top_k, -1, uniform(1, at)) for at in range(rows)])
        out = torch.full((rows,), 2**30, device=setup.device)
        sampler.sample(logits, out)
        wanted = [sample(row.numpy(), SamplingRow(params, 1, at)) for at, row in enumerate(logits.cpu())]
        wrong += sum(a != b for a, b in zip(out.tolist(), wanted))
    return float(wrong)
