"""Makes a model of a checkpoint's parts, a matrix for each core at a time.

What a layer has is config.py's and families.py's to say, how a part is read and packed parts.py's.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from kernels import Experts, Norm, Ops, Packed

from ..checkpoints import Checkpoint
from ..fitting.cores import usable_cores
from ..packed_cache import PackedCache
from .config import ModelConfig
from .decoder import Beside, Decoder, Layer
from .fallback import Fallback, load_fallback
from .parts import Parts
from .per_layer_embeddings import LayerEmbedding, PerLayerEmbeddings
from .rope import RopeConfig, Table

SILENT = RopeConfig(())  # no pair is turned


def load_decoder(
    checkpoint: Checkpoint,
    config: ModelConfig,
    ops: Ops,
    max_positions: int,
    on_progress: Callable[[float], None],
    quantization: str = "none",
    cache: PackedCache | None = None,
) -> Decoder | Fallback:
    """Read, convert and pack every matrix, on all cores; beside what is packed, one for each core is in
    memory. `quantization`: to what, if layers' are not quantized yet.
    """
    if config.borrowed:
        return load_fallback(checkpoint, config, ops, on_progress)
    load = Loader(checkpoint, config, ops, quantization, cache)
    load.make_ropes(max_positions)
    with ThreadPoolExecutor(usable_cores(), "octavo-load") as pool:
        # the largest matrices first: what is last should be short
        embedding = pool.submit(load.top, "embedding")
        head = embedding if config.tied_head else pool.submit(load.top, "head")
        per_layer = pool.submit(load.per_layer)
        norm = load.norm(config.names.top("norm"), config.hidden_size, config.logit_scale)
        layers = []
        try:
            for layer in pool.map(load.layer, range(config.num_layers)):
                layers.append(layer)
                on_progress(len(layers) / config.num_layers)
            tops = embedding.result(), per_layer.result(), tuple(layers), norm, head.result()
        finally:  # an error knows this frame, and these know the error: both would keep the file open
            del embedding, head, per_layer
        return Decoder(config, *tops, tuple(load.ropes.values()))


class Loader(Parts):
    """The layers of a model, and what stands above them."""

    ropes: dict[RopeConfig, Table]

    def make_ropes(self, max_positions: int) -> None:
        """Layers that turn alike share a table."""
        turns = {about.rope or SILENT for about in self.config.layers}
        self.ropes = {rope: rope.table(max_positions, self.ops.device) for rope in turns}

    def per_layer(self) -> PerLayerEmbeddings | None:
        """Of all layers, if they have them."""
        c = self.config
        if not c.input_size:
            return None
        width = c.num_layers * c.input_size
        table = self.top("inputs", c.vocab_size, width)
        # the projection is divided by the root of its inputs' number, which its norm undoes but for eps
        norm = self.norm(c.names.top("inputs_norm"), c.input_size)
        norm = replace(norm, eps=norm.eps * c.hidden_size)
        return PerLayerEmbeddings(
            table, self.top("inputs_of_hidden", width, c.hidden_size), norm, c.input_size**0.5
        )

    def layer(self, i: int) -> Layer:
        """All of layer `i`."""
        c, rope = self.config, self.config.layers[i].rope
        parts, (kv_heads, head_dim, ffn_size) = set(c.parts(i)), c.sizes(i)
        heads, kv_heads = c.num_heads * head_dim, kv_heads * head_dim

        def norm(part: str, size: int) -> Norm | None:
            return self.norm(c.names.layer(i, part), size) if part in parts else None

        whole = c.family.head_norms == "whole"
        return Layer(
            rope=self.ropes[rope or SILENT].rope,
            attention_norm=norm("attention_norm", c.hidden_size),
            qkv=self.qkv(i, heads, kv_heads),
            q_norm=norm("q_norm", heads if whole else head_dim),
            k_norm=norm("k_norm", kv_heads if whole else head_dim),
            v_norm=self.plain_norm(head_dim) if c.family.value_norms else None,
            sinks=self.vector(i, "sinks", c.num_heads).to(self.ops.device) if "sinks" in parts else None,
            output=self.pack(i, ("output",), (c.hidden_size,), heads),
            attention_post_norm=norm("attention_post_norm", c.hidden_size),
            ffn_norm=norm("ffn_norm", c.hidden_size),
            feed_forward=self.feed_forward(i, ffn_size) if "down" in parts else self.experts(i),
            ffn_post_norm=norm("ffn_post_norm", c.hidden_size),
            beside=self.beside(i) if "router_scale" in parts else None,
            embedding=self.layer_embedding(i) if "input_gate" in parts else None,
            factor=float(self.vector(i, "factor", 1)) if "factor" in parts else 1.0,
        )

    def beside(self, i: int) -> Beside:
        """The experts beside the feed-forward of layer `i`: their router has a norm of its own."""
        c, mixture = self.config, self.config.mixture
        assert mixture is not None
        gain = self.vector(i, "router_scale", c.hidden_size) * c.hidden_size**-0.5
        scales = self.vector(i, "expert_scales", mixture.num_experts)
        experts = replace(
            self.experts(i),
            router_norm=Norm(gain.to(self.ops.device), c.rms_eps),
            scales=scales.to(self.ops.device),
        )
        norms = ("experts_norm", "experts_post_norm", "dense_post_norm")
        return Beside(experts, *(self.norm(c.names.layer(i, norm), c.hidden_size) for norm in norms))

    def layer_embedding(self, i: int) -> LayerEmbedding:
        """How layer `i` takes its own in."""
        c, size = self.config, self.config.input_size
        gate = self.pack(i, ("input_gate",), (size,), c.hidden_size)
        output = self.pack(i, ("input_output",), (c.hidden_size,), size)
        post_norm = self.norm(c.names.layer(i, "input_post_norm"), c.hidden_size)
        return LayerEmbedding(slice(i * size, (i + 1) * size), gate, output, post_norm)

    def qkv(self, i: int, heads: int, kv_heads: int) -> Packed:
        """Queries, keys and values, stored apart or as one."""
        width = self.config.hidden_size
        if self.config.family.fused:
            return self.pack(i, ("qkv",), (heads + 2 * kv_heads,), width)
        if self.config.layers[i].source is not None:
            return self.pack(i, ("q",), (heads,), width)
        values = "v" if "v" in self.config.parts(i) else "k"  # keys before they are normalized and turned
        return self.pack(i, ("q", "k", values), (heads, kv_heads, kv_heads), width)

    def feed_forward(self, i: int, size: int) -> tuple[Packed, Packed]:
        """Gate and up, then down."""
        c = self.config
        down = self.pack(i, ("down",), (c.hidden_size,), size)
        if not c.family.fused:
            return self.pack(i, ("gate", "up"), (size,) * 2, c.hidden_size, gated=True), down

        def gate_up() -> Packed:
            halves = (np.arange(size), np.arange(size, 2 * size))
            weights = [self.weight(i, "gate_up", (size, c.hidden_size), rows) for rows in halves]
            bias = self.bias(i, "gate_up", 2 * size) if "gate_up" in c.biased else None
            return self.ops.pack(weights, bias, gated=True)

        return self.kept(f"{i} gate_up", gate_up), down

    def experts(self, i: int) -> Experts:
        """A mixture's router and the experts' matrices."""
        c, mixture = self.config, self.config.mixture
        assert mixture is not None
        wide, narrow = (mixture.size, c.hidden_size), (c.hidden_size, mixture.size)

        def gate_up(expert: int) -> Packed:
            pair = [self.expert_weight(i, part, wide, expert) for part in ("gate", "up")]
            biases = [self.bias(i, part, mixture.size, expert) for part in ("gate", "up")]
            return self.ops.pack(pair, torch.cat(biases) if "gate" in c.biased else None, gated=True)

        def down(expert: int) -> Packed:
            bias = self.bias(i, "down", c.hidden_size, expert) if "down" in c.biased else None
            return self.ops.pack([self.expert_weight(i, "down", narrow, expert)], bias)

        experts = range(mixture.num_experts)
        gates = [self.kept(f"{i} gate_up {e}", partial(gate_up, e)) for e in experts]
        downs = [self.kept(f"{i} down {e}", partial(down, e)) for e in experts]
        router = self.pack(i, ("router",), (mixture.num_experts,), c.hidden_size)
        chosen = mixture.top_k, mixture.normalized
        return Experts(router, tuple(gates), tuple(downs), *chosen, c.family.activation)
