"""How fast the rest of a step is: mixtures of experts, norms, rope and its writes, draws. Attention and
products have files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from kernels import Experts, Norm, Rope
from kernels.triton.experts import Mixtures
from kernels.triton.rows import rms_norm

from .products import size_of
from .report import Row, attempt, judged
from .setup import Setup, seconds
from .steps import make_batch, make_layers, make_sampler
from .weights import MAKERS

EXPERTS, TOP_K, HIDDEN, INNER = 128, 8, 2048, 768  # Qwen3-30B-A3B's
MIXTURE_GOAL, NORM_GOAL, ROPE_GOAL = 0.55, 0.85, 0.80
SMALLEST = {1: 3e-6}  # seconds that one row may take, whatever is read


def others(setup: Setup) -> Iterator[Row]:
    """All of it."""
    for form in ("w4 g128", "bf16"):
        yield from attempt("others", f"mixture {form}", mixtures(setup, form))
    for tokens in (2,) if setup.dry else (1, 32, 4096):
        yield from attempt("others", f"{tokens} rows", rows(setup, tokens))
    for count in (1,) if setup.dry else (1, 32):
        yield from attempt("others", f"{count} draws", draws(setup, count))


def mixtures(setup: Setup, form: str) -> Iterator[Row]:
    """Experts of one form."""
    count, top_k = setup.size(EXPERTS, 4), setup.size(TOP_K, 2)
    hidden, inner = setup.size(HIDDEN, 256), setup.size(INNER, 256)
    pack, make = setup.ops.pack, MAKERS[form]
    experts = Experts(
        pack([MAKERS["bf16"](setup, count, hidden)]),
        tuple(pack([make(setup, inner, hidden) for _ in range(2)], gated=True) for _ in range(count)),
        tuple(pack([make(setup, hidden, inner)]) for _ in range(count)), top_k, True,
    )  # fmt: skip
    mixture, one = Mixtures(setup.ops.linear), size_of(experts.gate_up[0]) + size_of(experts.down[0])
    for tokens in (1, 3) if setup.dry else (1, 8, 64, 2048):
        x = torch.randn(tokens, hidden, device=setup.device).to(setup.ops.dtype)
        out = torch.zeros(tokens, hidden, device=setup.device)
        took = seconds(setup, [lambda: mixture.add(x, experts, out)])  # noqa: B023
        read = count * (1 - (1 - top_k / count) ** tokens) * one  # experts that somebody goes through
        flops = 6 * tokens * top_k * hidden * inner
        bound = max(read / setup.read, flops / setup.flops["bf16"])
        goal = MIXTURE_GOAL if tokens == 1 and form.startswith("w4") else 0.0
        name = f"mixture {form}, {tokens} tokens"
        yield judged("others", name, took * 1e6, "us", bound * 1e6, bound / took, goal)


def rows(setup: Setup, tokens: int) -> Iterator[Row]:
    """Work on single rows: as fast as it is read and written."""
    width, heads, kv_heads, dim = (
        setup.size(4096, 256),
        setup.size(32, 4),
        setup.size(8, 2),
        setup.size(128, 64),
    )
    hidden = torch.randn(tokens, width, device=setup.device)
    norm, out = Norm(torch.ones(width, device=setup.device), 1e-5), hidden.to(setup.ops.dtype)
    took = seconds(setup, [lambda: rms_norm(hidden, norm, out)])
    yield _row(setup, f"norm, {tokens} rows", took, tokens, hidden.nbytes + out.nbytes, NORM_GOAL)
    batch, blocks = make_batch(setup, [1] * tokens, [64] * tokens)
    (kv,) = make_layers(setup, blocks, 1, heads, kv_heads, dim, setup.ops.kv_dtype)
    qkv = torch.randn(tokens, (heads + 2 * kv_heads) * dim, device=setup.device)
    rope = Rope(*(torch.rand(64, dim // 2, device=setup.device) for _ in range(2)))
    q = setup.ops.activation(tokens, heads * dim)
    took = seconds(setup, [lambda: setup.ops.rope_write(batch, qkv, rope, kv, q)])
    yield _row(setup, f"rope and pages, {tokens} rows", took, tokens, int(1.5 * qkv.nbytes), ROPE_GOAL)


def _row(setup: Setup, name: str, took: float, tokens: int, num_bytes: int, share: float) -> Row:
    bound = max(num_bytes / setup.read, SMALLEST.get(tokens, 0))
    goal = 1.0 if tokens in SMALLEST else share if tokens >= 4096 else 0.0
    return judged("others", name, took * 1e6, "us", bound * 1e6, bound / took, goal)


def draws(setup: Setup, count: int) -> Iterator[Row]:
    """Tokens drawn, against what is usual in torch: top-k, a sort, a draw."""
    vocabulary = setup.size(128256, 300)
    logits = torch.randn(count, vocabulary, device=setup.device) * 3
    tokens = torch.zeros(count, dtype=torch.int64, device=setup.device)

    def usual() -> None:
        weights, ids = logits.softmax(-1).sort(descending=True)
        weights[weights.cumsum(-1) - weights > 0.9] = 0
        tokens.copy_(ids.gather(1, (weights / weights.sum(-1, keepdim=True)).multinomial(1))[:, 0])

    library = 0.0 if setup.dry else seconds(setup, [usual])
    kinds = {
        "of all": (0, 1.0),
        "top-p 0.9": (0, 0.9),
        "top-k 50": (50, 1.0),
        "top-k 20, top-p 0.8": (20, 0.8),
    }
    limit = 15e-6 if count == 1 else 60e-6
    for name, (top_k, top_p) in kinds.items():
        sampler = make_sampler(setup, vocabulary, count, top_k, top_p)
        took = seconds(setup, [lambda: sampler.sample(logits, tokens)])  # noqa: B023
        note = f"a sort in torch: {library * 1e6:.0f} us"
        yield judged(
            "others", f"draw {name}, {count} rows", took * 1e6, "us", limit * 1e6, limit / took, 1.0, note
        )
