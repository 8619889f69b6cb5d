"""How fast attention over pages is, against reading keys and values once and against torch's own attention
over contiguous ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import scaled_dot_product_attention

from kernels import ForwardBatch, KVLayer
from kernels.triton import TritonOps
from kernels.triton.attention import attention as attend

from .report import Row, attempt, judged
from .setup import Setup, seconds
from .steps import bytes_read, gathered, make_batch, make_layers

HEADS, KV_HEADS, DIM = 32, 8, 128
ANSWERS = ((1, 4096), (1, 32768), (8, 8192), (32, 8192), (64, 2048))
PROMPTS = ((2048, 2048), (8192, 8192), (32768, 32768), (512, 16384 + 512))
LARGE = 256e6  # bytes from which 80% of the memory's speed is aimed at; from half of it, 60%
SHORT, SHORT_S = (1, 4096), 12e-6  # where launches cost more than what is read: seconds it may take
PROMPT_GOAL = 0.45  # of the speed of a large product


def attention(setup: Setup) -> Iterator[Row]:
    """Answers, by type of keys and values, and prompts."""
    for chats, length in ((2, 100),) if setup.dry else ANSWERS:
        for dtype in (setup.ops.dtype, torch.float8_e4m3fn, torch.int8):
            name = f"{chats} x {length} {dtype}"
            yield from attempt("attention", name, answers(setup, chats, length, dtype))
    for new, length in ((20, 70),) if setup.dry else PROMPTS:
        yield from attempt("attention", f"{new} of {length}", prompts(setup, new, length))


def answers(setup: Setup, chats: int, length: int, dtype: torch.dtype) -> Iterator[Row]:
    """One new token in each of some chats."""
    contexts = [length] * chats
    batch, blocks = make_batch(setup, [1] * chats, contexts)
    ops = TritonOps(setup.device.type, setup.ops.dtype, dtype)
    one = bytes_read(make_layers(setup, 1, 1, HEADS, KV_HEADS, DIM, dtype)[0], contexts)
    layers = make_layers(setup, blocks, setup.copies(one), HEADS, KV_HEADS, DIM, dtype)
    q = torch.randn(chats, HEADS * DIM, device=setup.device).to(setup.ops.dtype)
    out = torch.empty_like(q)
    name = f"{chats} x {length} {str(dtype).rpartition('.')[2]}"
    took = seconds(setup, [lambda kv=kv: ops.attention(batch, q, kv, out) for kv in layers])
    goal = 0.8 if one >= LARGE else 0.6 if one >= LARGE / 2 else 0.0
    bound = one / setup.read
    if (chats, length) == SHORT:
        goal, bound = 1.0, SHORT_S
    yield judged("attention", name, took * 1e6, "us", bound * 1e6, bound / took, goal)
    if dtype != setup.ops.dtype:
        return
    yield from splits(setup, ops, name, batch, q, layers)
    keys, values = zip(*(gathered(layers[0], batch.block_tables[0][s], length) for s in range(chats)))
    key, value, query = torch.stack(keys), torch.stack(values), q.view(chats, HEADS, 1, DIM)
    call = lambda: scaled_dot_product_attention(query, key, value, enable_gqa=True)  # noqa: E731
    yield Row("attention", f"{name} torch, not in pages", seconds(setup, [call]) * 1e6, "us")


def splits(
    setup: Setup, ops: TritonOps, name: str, batch: ForwardBatch, q: torch.Tensor, layers: list[KVLayer]
) -> Iterator[Row]:
    """Other numbers of parts than the plan's."""
    out = torch.empty_like(q)
    for count in (4,) if setup.dry else (1, 4, 8, 16, 32):
        run = [
            lambda kv=kv: attend(batch, q, kv, out, ops.target, ops.work, count)  # noqa: B023
            for kv in layers
        ]
        yield Row("attention", f"{name} in {count} parts", seconds(setup, run) * 1e6, "us")


def prompts(setup: Setup, new: int, length: int) -> Iterator[Row]:
    """The last `new` tokens of a context."""
    batch, blocks = make_batch(setup, [new], [length])
    (kv,) = make_layers(setup, blocks, 1, HEADS, KV_HEADS, DIM, setup.ops.kv_dtype)
    q = torch.randn(new, HEADS * DIM, device=setup.device).to(setup.ops.dtype)
    out = torch.empty_like(q)
    flops = 4 * HEADS * DIM * new * (length - new / 2)
    took = seconds(setup, [lambda: setup.ops.attention(batch, q, kv, out)])
    key, value = (x[None] for x in gathered(kv, batch.block_tables[0][0], length))
    query = q.view(new, HEADS, DIM).transpose(0, 1)[None]
    mask = (
        None
        if new == length
        else torch.ones(new, length, dtype=torch.bool, device=q.device).tril(length - new)
    )
    call = lambda: scaled_dot_product_attention(  # noqa: E731
        query, key, value, mask, is_causal=mask is None, enable_gqa=True
    )
    library = seconds(setup, [call])
    share, bound = flops / took / setup.flops["bf16"], flops / setup.flops["bf16"]
    goal = PROMPT_GOAL if length >= 8192 else 0.0
    note = f"torch, not in pages: {library * 1e6:.0f} us, {library / took:.2f} x"
    yield judged("attention", f"{new} of {length}", took * 1e6, "us", bound * 1e6, share, goal, note)
