"""The decoder, top down: a token's way through the model on one screen.

    hidden = scale * embedding[tokens]
    each layer:  hidden += post(output(attention(rope(norm(qkv(norm(hidden)))))))
                 hidden += post(down(act(gate) * up)), or the same through each token's experts
    logits = cap(head(norm(hidden)))

One pass for all families: what a family has not (a norm, a rope, a cap) is None or nothing. Written once as
calls of kernel ops on static buffers; what runs them is the backend's affair. Knows nothing of sequences or
blocks: a `ForwardBatch` says where every token stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from kernels import Experts, ForwardBatch, KVLayer, Norm, Ops, Packed, Rope

from .config import ModelConfig


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights, as the backend packed them."""

    rope: Rope
    attention_norm: Norm | None
    qkv: Packed
    q_norm: Norm | None
    k_norm: Norm | None
    sinks: Tensor | None  # float32 [H]
    output: Packed
    attention_post_norm: Norm | None
    ffn_norm: Norm | None
    feed_forward: tuple[Packed, Packed] | Experts  # gate and up, then down
    ffn_post_norm: Norm | None


@dataclass(frozen=True, slots=True)
class Buffers:
    """The static buffers of a forward pass, sized for the largest step."""

    hidden: Tensor  # [max T, E]
    qkv: Tensor  # [max T, (H + 2 KV) * D]
    q: Tensor  # activation [max T, H * D]
    attended: Tensor  # activation [max T, H * D]
    gated: Tensor  # activation [max T, F]; a mixture of experts has its own
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
            gated=ops.activation(0 if config.mixture else max_tokens, config.ffn_size),
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

    def forward(self, ops: Ops, batch: ForwardBatch, kv: tuple[KVLayer, ...], buffers: Buffers) -> None:
        """One step over the batch: keys and values go to their slots, logits to `buffers.logits`."""
        hidden, qkv, q, attended, gated = (
            buffers.hidden,
            buffers.qkv,
            buffers.q,
            buffers.attended,
            buffers.gated,
        )
        config, scale = self.config, self.config.residual_scale
        ops.embed(batch, self.embedding, hidden, config.embedding_scale)
        for layer, kv_layer in zip(self.layers, kv, strict=True):
            if layer.sinks is not None:
                kv_layer = replace(kv_layer, sinks=layer.sinks)
            ops.norm_linear(batch, hidden, layer.attention_norm, layer.qkv, qkv)
            ops.rope_write(batch, qkv, layer.rope, kv_layer, q, layer.q_norm, layer.k_norm)
            ops.attention(batch, q, kv_layer, attended)
            ops.linear_add(batch, attended, layer.output, hidden, layer.attention_post_norm, scale)
            if isinstance(layer.feed_forward, Experts):
                ops.norm_experts_add(batch, hidden, layer.ffn_norm, layer.feed_forward)
                continue
            gate_up, down = layer.feed_forward
            ops.norm_gated_linear(batch, hidden, layer.ffn_norm, gate_up, gated, config.family.activation)
            ops.linear_add(batch, gated, down, hidden, layer.ffn_post_norm, scale)
        ops.logits(batch, hidden, self.norm, self.head, buffers.logits, config.logit_cap)
