"""A whole model, random but of Llama 3.1 8B's shape, through the engine's own decoder: does it say what
transformers says, how many tokens a second are answered and read, and how much of the memory's speed that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from engine.models.decoder import Decoder

from .peers import llama
from .products import size_of
from .report import Row, attempt, judged
from .setup import Setup, replayed, wall
from .steps import Pass, make_batch
from .weights import decoder, dense_model, shape_of

FORMS = ("bf16", "w4 g128", "w8", "fp8")
CHATS = ((1, 1024), (8, 1024), (32, 1024), (1, 8192), (8, 8192), (32, 8192))
GOALS = {"bf16": 0.80, "w4 g128": 0.55}  # of the memory's speed, one chat, a context of 1024
PROMPTS = (2048, 8192)
CLOSE = 2e-2


def end_to_end(setup: Setup) -> Iterator[Row]:
    """First whether it is right, then each form."""
    yield from attempt("model", "transformers", like_transformers(setup))
    for form in FORMS[: setup.size(len(FORMS), 2)]:
        yield from attempt("model", form, in_form(setup, form))
        if not setup.dry:
            torch.cuda.empty_cache()


def in_form(setup: Setup, form: str) -> Iterator[Row]:
    """Answers, prompts, and one record where it matters."""
    model = decoder(setup, shape_of(setup), form)
    for chats, length in CHATS if not setup.dry else ((2, 70),):
        yield answers(setup, model, form, chats, length)
    for length in PROMPTS if not setup.dry else (40,):
        yield prompt(setup, model, form, length)
    if form == "bf16":
        yield across_blocks(setup, model)


def bytes_of(model: Decoder) -> int:
    """Of all matrices that a token is multiplied by."""
    layers = [packed for each in model.layers for packed in (each.qkv, each.output, *each.feed_forward)]
    return sum(map(size_of, (*layers, model.head)))


def answers(setup: Setup, model: Decoder, form: str, chats: int, length: int) -> Row:
    """Tokens a second of chats with contexts of one length, in a recorded step."""
    batch, blocks = make_batch(setup, [1] * chats, [length] * chats, model.config.vocab_size)
    step = Pass(setup, model, batch, blocks)
    replay = setup.ops.record(step)
    took = wall(setup, replay) if setup.dry else replayed(replay)
    config = model.config
    kv = 4 * chats * length * config.num_layers * config.num_kv_heads * config.head_dim
    bound = (bytes_of(model) + kv) / setup.read
    goal = GOALS.get(form, 0.0) if (chats, length) == (1, 1024) else 0.0
    name = f"{form}, {chats} chats of {length}"
    return judged("model", name, chats / took, "tokens/s", chats / bound, bound / took, goal)


def prompt(setup: Setup, model: Decoder, form: str, length: int) -> Row:
    """Tokens a second of a prompt that is read at once."""
    batch, blocks = make_batch(setup, [length], [length], model.config.vocab_size)
    took = wall(setup, Pass(setup, model, batch, blocks))
    shape = shape_of(setup)
    flops = 2 * length * sum(n * k for n, k in shape.matrices.values()) * shape.layers
    share = flops / took / setup.flops["bf16"]
    return judged("model", f"{form}, a prompt of {length}", length / took, "tokens/s", 0, share, 0)


def across_blocks(setup: Setup, model: Decoder) -> Row:
    """A step that was recorded where a context ends in one block and is replayed where it ends in the next
    says what it says when it is computed anew.
    """
    later, blocks = make_batch(setup, [1], [130], model.config.vocab_size)
    step = Pass(setup, model, later, blocks)
    step()
    wanted = step.buffers.logits.clone()
    step.batch = replace(
        later,
        positions=torch.full_like(later.positions, 126),
        context_lens=torch.full_like(later.context_lens, 127),
        slots=(later.block_tables[0][0, 1:2] * 64 + 62,),
    )
    replay = setup.ops.record(step)
    for name in ("positions", "context_lens"):
        getattr(step.batch, name).copy_(getattr(later, name))
    step.batch.slots[0].copy_(later.slots[0])
    replay()
    error = float((step.buffers.logits - wanted).abs().max())
    return Row("model", "a record over a block's border", error, "largest", passed=error < 0.05)


def like_transformers(setup: Setup) -> Iterator[Row]:
    """Logits of four layers against transformers' in float32 with the same weights."""
    shape = replace(shape_of(setup), layers=setup.size(4, 2), vocabulary=setup.size(32000, 512))
    tensors = dense_model(setup, shape)
    batch, blocks = make_batch(setup, [setup.size(64, 20)], [setup.size(64, 20)], shape.vocabulary)
    step = Pass(setup, decoder(setup, shape, "bf16", tensors), batch, blocks)
    step()
    peer = llama(setup, shape, {name: each.float() for name, each in tensors.items()}, torch.float32)
    with torch.inference_mode():
        wanted = peer(batch.token_ids[None]).logits[0, -1:].float()
    error = float((step.buffers.logits - wanted).norm() / wanted.norm())
    yield Row("correct", "logits against transformers", error, "error", CLOSE, passed=error < CLOSE)
