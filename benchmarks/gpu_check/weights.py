"""Random matrices made on the device, in the formats that are measured, and a model of the shape of Llama 3.1
8B of them. Values do not matter; that no two matrices are the same does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.models.config import LayerConfig, ModelConfig
from engine.models.decoder import Decoder, Layer
from engine.models.families import HF_FAMILIES, Names
from engine.models.rope import plain
from kernels import Dense, Fp8, Int4K, Int4Z, Int8, Norm, Weight

from .setup import Setup


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a model."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    dim: int
    vocabulary: int

    @property
    def matrices(self) -> dict[str, tuple[int, int]]:
        """Of a layer, as they are multiplied."""
        attention = self.heads * self.dim
        return {
            "qkv": (attention + 2 * self.kv_heads * self.dim, self.hidden),
            "output": (self.hidden, attention),
            "gate_up": (2 * self.ffn, self.hidden),
            "down": (self.hidden, self.ffn),
        }


LLAMA_8B = Shape(32, 4096, 14336, 32, 8, 128, 128256)
TINY = Shape(2, 256, 512, 4, 2, 64, 512)


def shape_of(setup: Setup) -> Shape:
    """The one for a card, or for the interpreter."""
    return TINY if setup.dry else LLAMA_8B


def random_bytes(setup: Setup, n: int, k: int) -> Tensor:
    return torch.randint(0, 256, (n, k), dtype=torch.uint8, device=setup.device)


def _scales(setup: Setup, n: int, groups: int) -> Tensor:
    return (torch.rand(n, groups, device=setup.device) + 0.5).half() / 300


def _int4z(setup: Setup, n: int, k: int, group: int) -> Int4Z:
    zero = torch.randint(6, 10, (n, k // group), device=setup.device).to(torch.uint8)
    return Int4Z(random_bytes(setup, n, k // 2), _scales(setup, n, k // group), zero)


def _int4k(setup: Setup, n: int, k: int) -> Int4K:
    fine = [random_bytes(setup, n, k // 32) & 63 for _ in range(2)]
    return Int4K(random_bytes(setup, n, k // 2), *fine, *(_scales(setup, n, k // 256) / 32 for _ in range(2)))


def _fp8(setup: Setup, n: int, k: int) -> Fp8:
    values = (torch.randn(n, k, device=setup.device, dtype=torch.bfloat16) * 60).to(torch.float8_e4m3fn)
    return Fp8(values, _scales(setup, n, 1).float() / 20, (1, k))


def _dense(setup: Setup, n: int, k: int) -> Dense:
    return Dense((torch.randn(n, k, device=setup.device, dtype=torch.bfloat16) / k**0.5).to(setup.ops.dtype))


MAKERS: dict[str, Callable[[Setup, int, int], Weight]] = {
    "w4 g128": lambda setup, n, k: _int4z(setup, n, k, 128),
    "w4 g32": lambda setup, n, k: _int4z(setup, n, k, 32),
    "w4 k": _int4k,
    "w8": lambda setup, n, k: Int8(random_bytes(setup, n, k).view(torch.int8), _scales(setup, n, 1) / 8),
    "w8 g32": lambda setup, n, k: Int8(
        random_bytes(setup, n, k).view(torch.int8), _scales(setup, n, k // 32) / 8
    ),
    "fp8": _fp8,
    "bf16": _dense,
}


def dense_model(setup: Setup, shape: Shape) -> dict[str, Tensor]:
    """All matrices of a model by the names that transformers gives them."""
    attention, kv = shape.heads * shape.dim, shape.kv_heads * shape.dim
    sizes = {
        "model.embed_tokens": (shape.vocabulary, shape.hidden),
        "lm_head": (shape.vocabulary, shape.hidden),
    }
    for i in range(shape.layers):
        for part, size in {
            "self_attn.q_proj": (attention, shape.hidden),
            "self_attn.k_proj": (kv, shape.hidden),
            "self_attn.v_proj": (kv, shape.hidden),
            "self_attn.o_proj": (shape.hidden, attention),
            "mlp.gate_proj": (shape.ffn, shape.hidden),
            "mlp.up_proj": (shape.ffn, shape.hidden),
            "mlp.down_proj": (shape.hidden, shape.ffn),
        }.items():
            sizes[f"model.layers.{i}.{part}"] = size
    return {f"{name}.weight": _dense(setup, *size).values for name, size in sizes.items()}


def decoder(setup: Setup, shape: Shape, form: str, tensors: dict[str, Tensor] | None = None) -> Decoder:
    """A model whose layers have one form; embedding and head are dense. `tensors`: its matrices, all
    dense.
    """
    ops = setup.ops
    gain = torch.ones(shape.hidden, device=setup.device)
    places = setup.size(40_000, 512)
    angles = plain(1e4, shape.dim).table(places, setup.device)
    rope = angles.reach(places)

    def pack(i: int, name: str, parts: list[str], gated: bool = False) -> object:
        if tensors is None:
            n, k = shape.matrices[name]
            count = 2 if gated else 1
            return ops.pack([MAKERS[form](setup, n // count, k) for _ in range(count)], gated=gated)
        return ops.pack(
            [Dense(tensors[f"model.layers.{i}.{part}_proj.weight"]) for part in parts], gated=gated
        )

    def top(name: str) -> object:
        values = (
            _dense(setup, shape.vocabulary, shape.hidden).values
            if tensors is None
            else tensors[f"{name}.weight"]
        )
        return ops.pack([Dense(values)])

    norm = Norm(gain, 1e-5)
    layers = [
        Layer(
            rope=rope, attention_norm=norm, qkv=pack(i, "qkv", [f"self_attn.{x}" for x in "qkv"]),
            q_norm=None, k_norm=None, v_norm=None, sinks=None, output=pack(i, "output", ["self_attn.o"]),
            attention_post_norm=None, ffn_norm=norm,
            feed_forward=(
                pack(i, "gate_up", ["mlp.gate", "mlp.up"], True), pack(i, "down", ["mlp.down"])
            ),
            ffn_post_norm=None, beside=None, embedding=None, factor=1.0,
        )
        for i in range(shape.layers)
    ]  # fmt: skip
    head = top("lm_head")
    return Decoder(_config(shape), top("model.embed_tokens"), None, tuple(layers), norm, head, (angles,))


def _config(shape: Shape) -> ModelConfig:
    family = next(each for name, each in HF_FAMILIES.items() if name.lower().startswith("llama"))
    return ModelConfig(
        names=Names(family, "hf"), layers=(LayerConfig(None),) * shape.layers, hidden_size=shape.hidden,
        num_heads=shape.heads, num_kv_heads=shape.kv_heads, head_dim=shape.dim, ffn_size=shape.ffn,
        vocab_size=shape.vocabulary, context_length=40_000, rms_eps=1e-5, biased=frozenset(), tied_head=False,
    )  # fmt: skip
