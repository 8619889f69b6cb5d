"""The same model in other hands: transformers as it comes, transformers compiled with a static cache, and
plain torch in a CUDA graph. All have the same bfloat16 weights and are given the same number of tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

from .report import Row, attempt
from .setup import Setup, replayed, wall
from .steps import Pass, make_batch
from .weights import Shape, decoder, dense_model, shape_of

LENGTH, TOKENS = 1024, 32
MANY = 32  # chats
MANY_GOAL = 24.0  # times transformers' throughput


def peers(setup: Setup) -> Iterator[Row]:
    """Each for 1 and 8 chats, ours beside it; compiling, the longest, comes last."""
    shape = shape_of(setup)
    tensors = dense_model(setup, shape)
    ours = {
        chats: tokens_per_second(setup, shape, tensors, chats)
        for chats in ((1, 8, MANY) if not setup.dry else (2,))
    }
    for chats, rate in ours.items():
        yield Row("peers", f"ours, {chats} chats", rate, "tokens/s")
    sides: dict[str, Callable[[int], float]] = {
        "torch in a graph": lambda chats: plain_torch(setup, shape, tensors, chats),
        "transformers": lambda chats: generated(setup, shape, tensors, chats, {}),
        "transformers, compiled": lambda chats: generated(
            setup, shape, tensors, chats, {"cache_implementation": "static"}
        ),
    }
    for name, side in sides.items():
        if setup.dry and "compiled" in name:
            continue
        for chats, rate in ours.items():
            if name == "transformers" or chats != MANY:
                row = f"{name}, {chats} chats"
                yield from attempt("peers", row, beside(setup, row, side, chats, rate))


def beside(setup: Setup, name: str, side: Callable[[int], float], chats: int, ours: float) -> Iterator[Row]:
    """One of them, and how many times as fast we are."""
    rate, goal = side(chats), MANY_GOAL if chats == MANY else 1.0
    share = ours / rate
    yield Row("peers", name, rate, "tokens/s", ours, share, goal, None if setup.dry else share >= goal)


def tokens_per_second(setup: Setup, shape: Shape, tensors: dict[str, Tensor], chats: int) -> float:
    """Ours, as in end_to_end.py."""
    length = setup.size(LENGTH, 40)
    batch, blocks = make_batch(setup, [1] * chats, [length] * chats, shape.vocabulary)
    replay = setup.ops.record(Pass(setup, decoder(setup, shape, "bf16", tensors), batch, blocks))
    return chats / (wall(setup, replay) if setup.dry else replayed(replay))


def llama(setup: Setup, shape: Shape, tensors: dict[str, Tensor], dtype: torch.dtype) -> torch.nn.Module:
    """transformers' model over these very tensors."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.hidden, intermediate_size=shape.ffn,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, num_key_value_heads=shape.kv_heads,
        head_dim=shape.dim, rms_norm_eps=1e-5, max_position_embeddings=16384, tie_word_embeddings=False,
        attn_implementation="sdpa",
    )  # fmt: skip
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    gains = {
        name: torch.ones(shape.hidden, device=setup.device, dtype=dtype)
        for name in model.state_dict()
        if "norm" in name
    }
    model.load_state_dict({**tensors, **gains}, assign=True)
    with setup.device:  # this table is no part of the state
        model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


def generated(
    setup: Setup, shape: Shape, tensors: dict[str, Tensor], chats: int, options: dict[str, object]
) -> float:
    """Tokens a second of `generate`, the prompt's time taken off."""
    model = llama(setup, shape, tensors, setup.ops.dtype)
    ids = torch.randint(0, shape.vocabulary, (chats, setup.size(LENGTH, 8)), device=setup.device)

    def run(tokens: int) -> float:
        began = time.perf_counter()
        model.generate(
            ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0, **options
        )
        if not setup.dry:
            torch.cuda.synchronize()
        return time.perf_counter() - began

    tokens = setup.size(TOKENS, 3)
    run(tokens)
    if options:
        run(tokens)  # what is compiled is recorded at the second call
    long, short = run(tokens), run(1)
    return chats * (tokens - 1) / max(long - short, 1e-9)


def plain_torch(setup: Setup, shape: Shape, tensors: dict[str, Tensor], chats: int) -> float:
    """Tokens a second of a decode step as one would write it in torch, over a contiguous cache, in a
    graph.
    """
    length, dtype = setup.size(LENGTH, 40), setup.ops.dtype
    cache = torch.zeros(
        shape.layers, 2, chats, shape.kv_heads, length, shape.dim, device=setup.device, dtype=dtype
    )
    ids = torch.zeros(chats, dtype=torch.int64, device=setup.device)
    cos, sin = (torch.rand(shape.dim // 2, device=setup.device, dtype=dtype) for _ in range(2))
    sizes = shape.heads, shape.kv_heads, shape.kv_heads
    stacked = {
        (i, name): torch.cat([tensors[f"model.layers.{i}.{part}_proj.weight"] for part in parts])
        for i in range(shape.layers)
        for name, parts in (
            ("qkv", [f"self_attn.{x}" for x in "qkv"]),
            ("gate_up", ["mlp.gate", "mlp.up"]),
        )
    }

    def turn(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def step() -> Tensor:
        x = tensors["model.embed_tokens.weight"][ids]
        for i in range(shape.layers):
            qkv = linear(rms_norm(x, (shape.hidden,)), stacked[i, "qkv"]).view(chats, -1, 1, shape.dim)
            q, k, v = qkv.split(sizes, 1)
            cache[i, 0, :, :, -1:], cache[i, 1, :, :, -1:] = turn(k), v
            seen = scaled_dot_product_attention(turn(q), cache[i, 0], cache[i, 1], enable_gqa=True)
            x = x + linear(seen.flatten(1), tensors[f"model.layers.{i}.self_attn.o_proj.weight"])
            gate, up = linear(rms_norm(x, (shape.hidden,)), stacked[i, "gate_up"]).chunk(2, -1)
            x = x + linear(silu(gate) * up, tensors[f"model.layers.{i}.mlp.down_proj.weight"])
        return linear(rms_norm(x, (shape.hidden,)), tensors["lm_head.weight"]).argmax(-1)

    replay = setup.ops.record(step) if not setup.dry else step
    return chats / (wall(setup, replay) if setup.dry else replayed(replay))
