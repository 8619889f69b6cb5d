"""Each kernel that a model needs once, small, on the device, against plain torch in float64.

    python -c "from kernels.triton.self_test import main; main()"    prints what is wrong, or an empty line

Made for the first use of a card, so it is short: products in each format for one row and for many, a gate, a
mixture, attention of answers and of a prompt over scattered pages, also of 8 bits, what writes and copies
these, a draw. Random inputs; outputs begin as what is no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from subprocess import CalledProcessError

import torch
from torch import Tensor

from ..ops import Draw, Experts, ForwardBatch, KVLayer, Norm, Ops, Rope
from ..reference import ReferenceOps, quantized
from ..weights import Dense, Fp8, Int4, Int4Z, Int8, Weight, pack_nibbles
from .ops import TritonOps

LIMITS = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 2e-2}  # relative, of the whole output
HEADS, KV_HEADS, DIM, BLOCK, VOCABULARY = 8, 2, 64, 64, 5000
WIDTH = HEADS * DIM
GROUPS, EXPERTS = WIDTH // 32, 8
# Triton has what launches a kernel compiled on each machine.
NO_COMPILER = "Triton needs gcc or clang, and Python's headers: install gcc and python3-dev"

Part = Callable[[TritonOps, Ops], float]  # what is tried, what is right: how far apart they are


def faults(device: str) -> Iterator[str]:
    """The parts that compute wrongly, or not at all. RuntimeError where none can be launched."""
    torch.manual_seed(0)
    ops = TritonOps(device)
    exact = ReferenceOps("cpu", torch.float64, torch.float64)
    for name, part in PARTS.items():
        try:
            error = part(ops, exact)
        except Exception as problem:
            if isinstance(problem, CalledProcessError) or "C compiler" in str(problem):
                raise RuntimeError(NO_COMPILER) from problem
            yield f"{name} ({type(problem).__name__}: {str(problem).partition(chr(10))[0][:120]})"
        else:
            if not error < LIMITS[ops.dtype]:
                yield f"{name} (off by {error:.2g})"


def main() -> None:
    """What is wrong, as the end of a sentence that begins with the card's name and "is not used:"."""
    wrong = list(faults("cuda"))
    print(f"its check found these to be wrong: {', '.join(wrong)}" if wrong else "")


def _products(make: Callable[[], Weight]) -> Part:
    def error(ops: TritonOps, exact: Ops) -> float:
        weight, norm = make(), Norm(torch.rand(WIDTH) + 0.5, 1e-5)
        found = []
        for rows in (1, 6, 40):
            hidden = torch.randn(rows, WIDTH)
            batch = _batch([1] * rows, [1] * rows)[0]
            for each in (ops, exact):
                out = torch.full((rows, weight.shape[0]), torch.nan, dtype=_wide(each))
                out = out.to(each.device)
                moved = Norm(norm.gain.to(each.device), norm.eps)
                packed = each.pack([weight])
                each.norm_linear(_on(batch, each), hidden.to(out), moved, packed, out)
                found.append(out.double().cpu())
        return max(_error(a, b) for a, b in zip(found[::2], found[1::2]))

    return error


def _gates(ops: TritonOps, exact: Ops) -> float:
    *weights, down = (Dense(torch.randn(WIDTH, WIDTH) / 20) for _ in range(3))
    hidden, batch, found = torch.randn(3, WIDTH), _batch([1] * 3, [1] * 3)[0], []
    for each in (ops, exact):
        residual, between = hidden.to(each.device, _wide(each)).clone(), each.activation(3, WIDTH)
        there = _on(batch, each)
        norm = Norm(torch.ones(WIDTH, device=each.device), 1e-5)
        each.norm_gated_linear(there, residual, norm, each.pack(weights, gated=True), between)
        each.linear_add(there, between, each.pack([down]), residual)
        found.append(residual.double().cpu())
    return _error(*found)


def _attention(new: list[int], contexts: list[int], pages: torch.dtype | None = None) -> Part:
    """`pages`: the type of 8 bits that they hold; None: the backend's own."""

    def error(ops: TritonOps, exact: Ops) -> float:
        if pages:
            if not ops.target.matrix:
                return 0.0  # such a card keeps no 8 bits
            ops = TritonOps(str(ops.device), kv_dtype=pages)
        batch, blocks = _batch(new, contexts)
        tokens, shape = sum(new), (blocks, 1, 2, KV_HEADS, BLOCK, DIM)
        kept, qkv = torch.randn(shape), torch.randn(tokens, (HEADS + 2 * KV_HEADS) * DIM)
        kept, scales = quantized(kept, pages) if pages else (kept, None)
        angles = torch.outer(torch.arange(256), 1e4 ** -(torch.arange(0, DIM, 2) / DIM))
        found = []
        for each in (ops, exact):
            device, rope = each.device, Rope(angles.cos().to(each.device), angles.sin().to(each.device))
            kv = KVLayer(
                kept.flatten(-2).to(device, pages or each.kv_dtype), 0, 0, BLOCK, HEADS, DIM,
                scales=None if scales is None else scales.to(device, copy=True),
            )  # fmt: skip
            norm, there = Norm(torch.ones(DIM, device=device), 1e-5), _on(batch, each)
            q, out = (each.activation(tokens, WIDTH) for _ in range(2))
            out.fill_(torch.nan)
            each.rope_write(there, qkv.to(device, _wide(each)), rope, kv, q, norm, norm)
            each.attention(there, q, kv, out)
            found.append(out.double().cpu())
        return _error(*found)

    return error


def _mixture(ops: TritonOps, exact: Ops) -> float:
    """A token alone, whose experts are looked up, and many, which are sorted by theirs."""
    router, found = Dense(torch.randn(EXPERTS, WIDTH).bfloat16()), []
    pairs = [[Dense(torch.randn(64, WIDTH) / 20) for _ in range(2)] for _ in range(EXPERTS)]
    downs = [Dense(torch.randn(WIDTH, 64) / 20) for _ in range(EXPERTS)]
    norm = Norm(torch.ones(WIDTH), 1e-5)
    for rows in (1, 20):
        hidden, batch = torch.randn(rows, WIDTH), _batch([1] * rows, [1] * rows)[0]
        for each in (ops, exact):
            gate_up = tuple(each.pack(pair, gated=True) for pair in pairs)
            down = tuple(each.pack([one]) for one in downs)
            experts = Experts(each.pack([router]), gate_up, down, 2, True)
            residual, moved = hidden.to(each.device, _wide(each)).clone(), norm.gain.to(each.device)
            each.norm_experts_add(_on(batch, each), residual, Norm(moved, norm.eps), experts)
            found.append(residual.double().cpu())
    return max(_error(a, b) for a, b in zip(found[::2], found[1::2]))


def _copies(ops: TritonOps, exact: Ops) -> float:
    """A block, bit for bit."""
    pool = torch.randn(4, 2, 2, KV_HEADS, BLOCK * DIM).to(ops.kv_dtype)
    there = pool.to(ops.device)
    ops.copy_blocks(there, [1, 3], [2, 0])
    return float(not torch.equal(there.cpu(), pool[[3, 1, 1, 3]]))


def _draws(ops: TritonOps, exact: Ops) -> float:
    """How many are not the likeliest, or not of the few that may be drawn."""
    logits, out = torch.randn(4, VOCABULARY), torch.full((4,), -9, device=ops.device)
    sampler, wrong = ops.sampler(4, VOCABULARY, 1), 0
    assert sampler
    for temperature, top_k in ((0.0, 0), (0.8, 20)):
        sampler.set([Draw(temperature, 1.0, 0.0, 1.0, 0.0, 0.0, top_k, -1, 0.4)] * 4)
        sampler.sample(logits.to(ops.device), out)
        allowed = logits.topk(max(1, top_k)).indices
        wrong += sum(int(token not in row) for token, row in zip(out.cpu(), allowed))
    return float(wrong)


PARTS: dict[str, Part] = {
    "int4": _products(lambda: Int4(_nibbles(), _scale(50), -_scale(10))),
    "int4 with zero points": _products(lambda: Int4Z(_nibbles(), _scale(50), _integers(0, 17, GROUPS))),
    "int8": _products(lambda: Int8(_integers(-128, 128, WIDTH, torch.int8), _scale(500))),
    "fp8": _products(lambda: Fp8(_small_floats(), torch.rand(WIDTH, 1) / 20, (1, WIDTH))),
    "dense products": _products(lambda: Dense(torch.randn(WIDTH, WIDTH).bfloat16())),
    "gates": _gates,
    "answers' attention": _attention([1, 1, 2], [200, 1, 70]),
    "a prompt's attention": _attention([90, 1], [150, 33]),
    "attention over 8 bits": _attention([1, 1, 2], [200, 1, 70], torch.int8),
    "mixtures": _mixture,
    "copied blocks": _copies,
    "draws": _draws,
}


def _integers(least: int, end: int, width: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    return torch.randint(least, end, (WIDTH, width), dtype=dtype)


def _nibbles() -> Tensor:
    return pack_nibbles(_integers(0, 16, WIDTH))


def _scale(divisor: int) -> Tensor:
    return torch.rand(WIDTH, GROUPS).half() / divisor


def _small_floats() -> Tensor:
    return torch.randn(WIDTH, WIDTH).to(torch.float8_e4m3fn)


def _wide(ops: Ops) -> torch.dtype:
    """Of what is no activation."""
    return torch.float64 if ops.name == "reference" else torch.float32


def _error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def _batch(new: list[int], contexts: list[int]) -> tuple[ForwardBatch, int]:
    """A step of sequences whose blocks lie scattered, and the number of blocks."""
    needed = [-(-length // BLOCK) for length in contexts]
    blocks = torch.randperm(sum(needed)) + 1
    tables = torch.zeros(len(new), max(needed), dtype=torch.int64)
    for table, some in zip(tables, blocks.split(needed)):
        table[: len(some)] = some
    places = torch.cat([torch.arange(end - count, end) for count, end in zip(new, contexts)])
    owner = torch.arange(len(new)).repeat_interleave(torch.tensor(new))
    ends = torch.tensor(new).cumsum(0)
    slots = tables[owner, places // BLOCK] * BLOCK + places % BLOCK
    return ForwardBatch(
        counts=torch.tensor([sum(new), len(new), len(new)]),
        token_ids=torch.zeros(sum(new), dtype=torch.int64),
        positions=places,
        cu_lens=torch.cat([torch.zeros(1, dtype=torch.int64), ends]),
        context_lens=torch.tensor(contexts),
        slots=(slots,),
        block_tables=(tables,),
        logit_rows=ends - 1,
    ), sum(needed) + 1


def _on(batch: ForwardBatch, ops: Ops) -> ForwardBatch:
    """The same on a backend's device, its numbers kept on the host."""
    if ops.device.type == "cpu":
        return batch
    names = ("counts", "token_ids", "positions", "cu_lens", "context_lens", "logit_rows")
    there = {name: getattr(batch, name).to(ops.device) for name in names}
    slots, tables = batch.slots[0].to(ops.device), batch.block_tables[0].to(ops.device)
    return replace(batch, **there, slots=(slots,), block_tables=(tables,), host=batch)
