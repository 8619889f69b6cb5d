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
from functools import cache

from torch import Tensor

from kernels import Experts, ForwardBatch, KVLayer, Norm, Ops, Packed, Rope

from .config import ModelConfig
from .per_layer_embeddings import EmbeddingBuffers, LayerEmbedding, PerLayerEmbeddings
from .rope import Table


@dataclass(frozen=True, slots=True)
class Beside:
    """Experts beside a feed-forward: both see the same, what each says is normalized and then their sum."""

    experts: Experts
    norm: Norm  # of what goes into the experts
    post_norm: Norm  # of what comes out of them
    dense_post_norm: Norm  # of what comes out of the feed-forward


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights, as the backend packed them."""

    rope: Rope
    attention_norm: Norm | None
    qkv: Packed
    q_norm: Norm | None
    k_norm: Norm | None
    v_norm: Norm | None
    sinks: Tensor | None  # float32 [H]
    output: Packed
    attention_post_norm: Norm | None
    ffn_norm: Norm | None
    feed_forward: tuple[Packed, Packed] | Experts  # gate and up, then down
    ffn_post_norm: Norm | None
    beside: Beside | None
    embedding: LayerEmbedding | None
    factor: float  # of all of `hidden`, at the layer's end


@dataclass(frozen=True, slots=True)
class Scratch:
    """The static buffers of layers of one shape."""

    qkv: Tensor  # [max T, (H + 2 KV) * D], or queries alone
    q: Tensor  # activation [max T, H * D]
    attended: Tensor  # activation [max T, H * D]
    gated: Tensor  # activation [max T, F]; a mixture of experts has its own
    sums: Tensor | None  # [max T, E] of a feed-forward that has experts beside it
    found: Tensor | None  # [max T, E] of these


@dataclass(frozen=True, slots=True)
class Buffers:
    """The static buffers of a forward pass, sized for the largest step."""

    hidden: Tensor  # [max T, E]
    layers: tuple[Scratch, ...]  # those of one shape share theirs
    per_layer: EmbeddingBuffers | None
    logits: Tensor  # [max R, vocabulary]

    @staticmethod
    def make(config: ModelConfig, ops: Ops, max_tokens: int, max_rows: int) -> Buffers:
        """Buffers for steps of up to `max_tokens` tokens, `max_rows` of them with logits."""

        wide = max_tokens, config.hidden_size

        @cache
        def scratch(kv_heads: int, head_dim: int, ffn_size: int) -> Scratch:
            width = config.num_heads * head_dim
            return Scratch(
                qkv=ops.hidden(max_tokens, width + 2 * kv_heads * head_dim),
                q=ops.activation(max_tokens, width),
                attended=ops.activation(max_tokens, width),
                gated=ops.activation(max_tokens if ffn_size else 0, ffn_size or 1),
                sums=ops.hidden(*wide) if ffn_size and config.mixture else None,
                found=ops.hidden(*wide) if ffn_size and config.mixture else None,
            )

        layers = []
        for i, layer in enumerate(config.layers):
            kv_heads, head_dim, ffn_size = config.sizes(i)
            has_ffn, has_kv = "down" in config.parts(i), layer.source is None
            layers.append(scratch(kv_heads * has_kv, head_dim, ffn_size * has_ffn))
        size = config.input_size
        return Buffers(
            hidden=ops.hidden(*wide),
            layers=tuple(layers),
            per_layer=EmbeddingBuffers.make(ops, max_tokens, config.num_layers, size) if size else None,
            logits=ops.hidden(max_rows, config.vocab_size),
        )


@dataclass(frozen=True, slots=True)
class Decoder:
    """A loaded model: its weights and the pass over them."""

    config: ModelConfig
    embedding: Packed
    per_layer: PerLayerEmbeddings | None
    layers: tuple[Layer, ...]
    norm: Norm
    head: Packed
    ropes: tuple[Table, ...]  # of the layers

    def reach(self, end: int) -> None:
        """Be ready for positions before `end`."""
        for table in self.ropes:
            table.reach(end)

    def forward(self, ops: Ops, batch: ForwardBatch, kv: tuple[KVLayer, ...], buffers: Buffers) -> None:
        """One step over the batch: keys and values go to their slots, logits to `buffers.logits`."""
        hidden, config = buffers.hidden, self.config
        ops.embed(batch, self.embedding, hidden, config.embedding_scale)
        if self.per_layer and buffers.per_layer:
            self.per_layer.write(ops, batch, hidden, buffers.per_layer)
        for layer, kv_layer, own in zip(self.layers, kv, buffers.layers, strict=True):
            if layer.sinks is not None:
                kv_layer = replace(kv_layer, sinks=layer.sinks)
            attend(ops, batch, layer, kv_layer, own, hidden, config.residual_scale)
            if isinstance(layer.feed_forward, Experts):
                ops.norm_experts_add(batch, hidden, layer.ffn_norm, layer.feed_forward)
                continue
            gate_up, down = layer.feed_forward
            ops.norm_gated_linear(batch, hidden, layer.ffn_norm, gate_up, own.gated, config.family.activation)
            keep = 1.0 if layer.embedding else layer.factor
            ending = layer.ffn_post_norm, config.residual_scale * keep, keep
            if layer.beside and own.sums is not None and own.found is not None:
                beside = layer.beside
                ops.linear_add(batch, own.gated, down, own.sums, beside.dense_post_norm, keep=0.0)
                ops.norm_experts_add(batch, hidden, beside.norm, beside.experts, own.found)
                ops.add(batch, own.found, own.sums, beside.post_norm)
                ops.add(batch, own.sums, hidden, *ending)
            else:
                ops.linear_add(batch, own.gated, down, hidden, *ending)
            if layer.embedding and buffers.per_layer:
                given = buffers.per_layer, config.family.activation, layer.factor
                layer.embedding.add(ops, batch, hidden, *given)
        ops.logits(batch, hidden, self.norm, self.head, buffers.logits, config.logit_cap)


def attend(
    ops: Ops, batch: ForwardBatch, layer: Layer, kv: KVLayer, own: Scratch, hidden: Tensor, scale: float
) -> None:
    """A layer's first half."""
    ops.norm_linear(batch, hidden, layer.attention_norm, layer.qkv, own.qkv)
    ops.rope_write(batch, own.qkv, layer.rope, kv, own.q, layer.q_norm, layer.k_norm, layer.v_norm)
    ops.attention(batch, own.q, kv, own.attended)
    ops.linear_add(batch, own.attended, layer.output, hidden, layer.attention_post_norm, scale)
