"""The dense decoder of Llama and Qwen2, top down: the forward pass on one screen, then its weights.

    hidden = embedding[tokens]
    each layer:  hidden += output(attention(rope(qkv(norm(hidden)))));  hidden += down(silu(gate) * up)
    logits = head(norm(hidden))

Written once as calls of kernel ops on static buffers; what runs them is the backend's affair. Knows nothing
of sequences or blocks: a `ForwardBatch` says where every token stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import ForwardBatch, KVLayer, Norm, Ops, Packed, Rope

from ..checkpoints import GgufFile, TensorInfo
from ..errors import BadCheckpoint
from ..formats import rope_rows, to_vector, to_weight
from .config import ModelConfig


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights, as the backend packed them."""

    attention_norm: Norm
    qkv: Packed
    output: Packed
    ffn_norm: Norm
    gate_up: Packed
    down: Packed


@dataclass(frozen=True, slots=True)
class Buffers:
    """The static buffers of a forward pass, sized for the largest step."""

    hidden: Tensor  # [max T, E]
    qkv: Tensor  # [max T, (H + 2 KV) * D]
    q: Tensor  # activation [max T, H * D]
    attended: Tensor  # activation [max T, H * D]
    gated: Tensor  # activation [max T, F]
    logits: Tensor  # [max R, vocabulary]

    @staticmethod
    def make(config: ModelConfig, ops: Ops, max_tokens: int, max_rows: int) -> Buffers:
        """Buffers for steps of up to `max_tokens` tokens, `max_rows` of them with logits."""
        heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
        return Buffers(
            hidden=ops.hidden(max_tokens, config.hidden_size),
            qkv=ops.hidden(max_tokens, (heads + 2 * kv_heads) * head_dim),
            q=ops.activation(max_tokens, heads * head_dim),
            attended=ops.activation(max_tokens, heads * head_dim),
            gated=ops.activation(max_tokens, config.ffn_size),
            logits=ops.hidden(max_rows, config.vocab_size),
        )


@dataclass(frozen=True, slots=True)
class Decoder:
    """A loaded model: its weights and the pass over them."""

    config: ModelConfig
    embedding: Packed
    layers: tuple[Layer, ...]
    norm: Norm
    head: Packed
    rope: Rope

    def forward(self, ops: Ops, batch: ForwardBatch, kv: tuple[KVLayer, ...], buffers: Buffers) -> None:
        """One step over the batch: keys and values go to their slots, logits to `buffers.logits`."""
        hidden, qkv, q = buffers.hidden, buffers.qkv, buffers.q
        ops.embed(batch, self.embedding, hidden)
        for layer, kv_layer in zip(self.layers, kv, strict=True):
            ops.norm_linear(batch, hidden, layer.attention_norm, layer.qkv, qkv)
            ops.rope_write(batch, qkv, self.rope, kv_layer, q)
            ops.attention(batch, q, kv_layer, buffers.attended)
            ops.linear_add(batch, buffers.attended, layer.output, hidden)
            ops.norm_gated_linear(batch, hidden, layer.ffn_norm, layer.gate_up, buffers.gated)
            ops.linear_add(batch, buffers.gated, layer.down, hidden)
        ops.logits(batch, hidden, self.norm, self.head, buffers.logits)


def make_rope(config: ModelConfig, max_positions: int) -> Rope:
    """Angles position / theta^(2i / R) for i < R / 2 (RoFormer, arXiv 2104.09864), computed in float64."""
    exponents = torch.arange(0, config.rope_dim, 2, dtype=torch.float64) / config.rope_dim
    angles = torch.outer(torch.arange(max_positions, dtype=torch.float64), config.rope_theta**-exponents)
    return Rope(angles.cos().float(), angles.sin().float())


class Loader:
    """Takes named tensors out of a checkpoint, checks their shapes, and packs them one matrix at a time."""

    def __init__(self, checkpoint: GgufFile, config: ModelConfig, ops: Ops) -> None:
        self.checkpoint, self.config, self.ops = checkpoint, config, ops

    def pack(self, *parts: tuple[str, int], width: int, bias: bool = False, gated: bool = False) -> Packed:
        """Matrices (name, rows) with `width` inputs each, stacked; `bias` takes theirs from beside them."""
        weights = []
        for name, rows in parts:
            tensor = self._find(f"{name}.weight", (rows, width))
            raw = self.checkpoint.raw(f"{name}.weight")
            if heads := self.config.rope_heads(name):
                raw = raw[rope_rows(heads, rows // heads)]
            weights.append(to_weight(raw, tensor.type, (rows, width)))
        vectors = [self.vector(f"{name}.bias", rows, name) for name, rows in parts] if bias else None
        return self.ops.pack(weights, torch.cat(vectors) if vectors else None, gated)

    def vector(self, name: str, size: int, rope_name: str = "") -> Tensor:
        """A float32 vector of `size` values."""
        values = to_vector(self.checkpoint, name, self._find(name, (size,)))
        if rope_name and (heads := self.config.rope_heads(rope_name)):
            values = values[torch.from_numpy(rope_rows(heads, size // heads))]
        return values

    def norm(self, name: str) -> Norm:
        """The RMSNorm of that name."""
        return Norm(self.vector(f"{name}.weight", self.config.hidden_size), self.config.rms_eps)

    def layer(self, i: int) -> Layer:
        """All of layer `i`."""
        c, name = self.config, f"blk.{i}.".__add__
        q_rows, kv_rows = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim
        qkv = ((name("attn_q"), q_rows), (name("attn_k"), kv_rows), (name("attn_v"), kv_rows))
        gate_up = ((name("ffn_gate"), c.ffn_size), (name("ffn_up"), c.ffn_size))
        return Layer(
            attention_norm=self.norm(name("attn_norm")),
            qkv=self.pack(*qkv, width=c.hidden_size, bias=c.qkv_bias),
            output=self.pack((name("attn_output"), c.hidden_size), width=q_rows),
            ffn_norm=self.norm(name("ffn_norm")),
            gate_up=self.pack(*gate_up, width=c.hidden_size, gated=True),
            down=self.pack((name("ffn_down"), c.hidden_size), width=c.ffn_size),
        )

    def _find(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        tensor = self.checkpoint.tensors.get(name)
        if tensor is None:
            raise BadCheckpoint(f"{self.checkpoint.path.name} has no tensor {name}; the file is incomplete.")
        if tensor.shape != shape:
            raise BadCheckpoint(
                f"{self.checkpoint.path.name}: tensor {name} is {list(tensor.shape)}, expected {list(shape)}."
            )
        return tensor


def load_decoder(
    checkpoint: GgufFile,
    config: ModelConfig,
    ops: Ops,
    max_positions: int,
    on_progress: Callable[[float], None],
) -> Decoder:
    """Read, convert and pack every matrix; beside what is packed, only one is in memory at a time."""
    load, vocab = Loader(checkpoint, config, ops), config.vocab_size
    embedding = load.pack(("token_embd", vocab), width=config.hidden_size)
    head = embedding if config.tied_head else load.pack(("output", vocab), width=config.hidden_size)
    layers = []
    for i in range(config.num_layers):
        layers.append(load.layer(i))
        on_progress((i + 1) / config.num_layers)
    rope = make_rope(config, max_positions)
    return Decoder(config, embedding, tuple(layers), load.norm("output_norm"), head, rope)
