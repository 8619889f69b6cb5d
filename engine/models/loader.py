"""Takes a model's parts out of a checkpoint and packs them, a matrix for each core at a time.

What differs between the sources is undone here: GGUF's order of query and key rows, Gemma's norms that leave
out a one, matrices that are stored as one. What was packed before comes from the cache as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from torch import Tensor

from kernels import Dense, Experts, Norm, Ops, Packed, Weight

from ..checkpoints import Checkpoint
from ..device import usable_cores
from ..formats import QUANTIZERS, quantize, rope_rows, to_vector, to_weight
from ..packed_cache import PackedCache
from .config import ModelConfig
from .decoder import Decoder, Layer
from .fallback import Fallback, load_fallback
from .rope import RopeConfig

SILENT = RopeConfig(())  # no pair is turned


def load_decoder(
    checkpoint: Checkpoint,
    config: ModelConfig,
    ops: Ops,
    max_positions: int,
    on_progress: Callable[[float], None],
    quantization: str = "auto",
    cache: PackedCache | None = None,
) -> Decoder | Fallback:
    """Read, convert and pack every matrix, on all cores; beside what is packed, one for each core is in
    memory. `quantization`: to what, if layers' are not quantized yet.
    """
    if config.borrowed:
        return load_fallback(checkpoint, config, ops, on_progress)
    load = Loader(checkpoint, config, ops, max_positions, quantization, cache)
    with ThreadPoolExecutor(usable_cores(), "octavo-load") as pool:
        # the largest matrices first: what is last should be short
        embedding = pool.submit(load.top, "embedding")
        head = embedding if config.tied_head else pool.submit(load.top, "head")
        norm = load.norm(config.names.top("norm"), config.hidden_size, config.logit_scale)
        layers = []
        for layer in pool.map(load.layer, range(config.num_layers)):
            layers.append(layer)
            on_progress(len(layers) / config.num_layers)
        return Decoder(config, embedding.result(), tuple(layers), norm, head.result())


class Loader:
    """A checkpoint's parts, packed for a backend, unless they are kept packed. Several threads may ask."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: ModelConfig,
        ops: Ops,
        max_positions: int,
        quantization: str,
        cache: PackedCache | None,
    ) -> None:
        self.checkpoint, self.config, self.ops, self.cache = checkpoint, config, ops, cache
        self.quantization = quantization
        turns = {about.rope or SILENT for about in config.layers}  # layers that turn alike share a table
        self.ropes = {rope: rope.table(max_positions, ops.device) for rope in turns}

    def top(self, part: str) -> Packed:
        """The embedding or the output head."""
        c = self.config
        name, shape = c.names.top(part), (c.vocab_size, c.hidden_size)

        def pack() -> Packed:
            packed = self.ops.pack([to_weight(self.checkpoint, name, shape)])
            self.checkpoint.done_with(f"{name}.weight")
            return packed

        return self.kept(part, pack)

    def kept(self, key: str, pack: Callable[[], Packed]) -> Packed:
        """What the cache has under that name, or what is packed now."""
        if self.cache is None:
            return pack()
        if (found := self.cache.get(key)) is None:
            self.cache.put(key, found := pack())
        return found

    def norm(self, name: str, size: int, scale: float = 1.0) -> Norm:
        """An RMSNorm; `scale` multiplies what comes out of it."""
        offset = self.config.family.gain_offset if self.config.names.source == "hf" else 0.0
        gain = to_vector(self.checkpoint, f"{name}.weight", size) + offset
        return Norm((gain * scale).to(self.ops.device), self.config.rms_eps)

    def layer(self, i: int) -> Layer:
        """All of layer `i`."""
        c, about = self.config, self.config.layers[i]
        parts = set(c.names.parts(about.experts))
        heads, kv_heads = c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim

        def norm(part: str, size: int) -> Norm | None:
            return self.norm(c.names.layer(i, part), size) if part in parts else None

        whole = c.family.head_norms == "whole"
        return Layer(
            rope=self.ropes[about.rope or SILENT],
            attention_norm=norm("attention_norm", c.hidden_size),
            qkv=self.qkv(i, heads, kv_heads),
            q_norm=norm("q_norm", heads if whole else c.head_dim),
            k_norm=norm("k_norm", kv_heads if whole else c.head_dim),
            sinks=self.sinks(i) if "sinks" in parts else None,
            output=self.pack(i, ("output",), (c.hidden_size,), heads),
            attention_post_norm=norm("attention_post_norm", c.hidden_size),
            ffn_norm=norm("ffn_norm", c.hidden_size),
            feed_forward=self.experts(i) if about.experts else self.feed_forward(i),
            ffn_post_norm=norm("ffn_post_norm", c.hidden_size),
        )

    def qkv(self, i: int, heads: int, kv_heads: int) -> Packed:
        """Queries, keys and values, stored apart or as one."""
        if self.config.family.fused:
            return self.pack(i, ("qkv",), (heads + 2 * kv_heads,), self.config.hidden_size)
        return self.pack(i, ("q", "k", "v"), (heads, kv_heads, kv_heads), self.config.hidden_size)

    def feed_forward(self, i: int) -> tuple[Packed, Packed]:
        """Gate and up, then down."""
        c = self.config
        down = self.pack(i, ("down",), (c.hidden_size,), c.ffn_size)
        if not c.family.fused:
            return self.pack(i, ("gate", "up"), (c.ffn_size,) * 2, c.hidden_size, gated=True), down

        def gate_up() -> Packed:
            halves = (np.arange(c.ffn_size), np.arange(c.ffn_size, 2 * c.ffn_size))
            weights = [self.weight(i, "gate_up", (c.ffn_size, c.hidden_size), rows) for rows in halves]
            bias = self.bias(i, "gate_up", 2 * c.ffn_size) if "gate_up" in c.biased else None
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

    def sinks(self, i: int) -> Tensor:
        """Each head's score beside the keys'."""
        values = to_vector(self.checkpoint, self.config.names.vector(i, "sinks"), self.config.num_heads)
        return values.to(self.ops.device)

    def pack(
        self, i: int, parts: Sequence[str], rows: Sequence[int], width: int, gated: bool = False
    ) -> Packed:
        """Parts of layer `i` with `width` inputs each, stacked, with the biases that they have."""

        def pack() -> Packed:
            weights = [self.weight(i, part, (n, width)) for part, n in zip(parts, rows, strict=True)]
            bias = None
            if self.config.biased.intersection(parts):
                bias = torch.cat([self.bias(i, part, n) for part, n in zip(parts, rows, strict=True)])
            packed = self.ops.pack(weights, bias, gated)
            for part in parts:
                self.checkpoint.done_with(f"{self.config.names.layer(i, part)}.weight")
            return packed

        return self.kept(f"{i} {' '.join(parts)}", pack)

    def weight(
        self,
        i: int,
        part: str,
        shape: tuple[int, int],
        rows: np.ndarray | None = None,
        expert: int | None = None,
    ) -> Weight:
        """One matrix of layer `i`, of its expert, or made of some of its rows."""
        names = self.config.names
        if rows is None:
            rows = self.rope_order(part, shape[0])
        name, which = names.layer(i, part, expert), names.stacked(expert)
        weight = to_weight(self.checkpoint, name, shape, rows=rows, expert=which)
        return weight if part == "router" else self.quantized(weight)

    def quantized(self, weight: Weight) -> Weight:
        """The same, or what is made of it when it is loaded."""
        if isinstance(weight, Dense) and self.quantization in QUANTIZERS:
            return quantize(weight, self.quantization)
        return weight

    def expert_weight(self, i: int, part: str, shape: tuple[int, int], expert: int) -> Weight:
        """A matrix of an expert. Where gates and ups stand by turns, floats lie [inputs, outputs]."""
        names, rows = self.config.names, self.turns(part, shape[0])
        name = names.layer(i, part, expert)
        if not names.paired or f"{name}_blocks" in self.checkpoint.tensors:
            return self.weight(i, part, shape, rows, expert)
        stored = shape[1], shape[0] * (1 if rows is None else 2)
        lying = to_weight(self.checkpoint, name, stored, expert=expert)
        assert isinstance(lying, Dense)
        values = lying.values.T if rows is None else lying.values.T[torch.from_numpy(rows)]
        return self.quantized(Dense(values.contiguous()))

    def turns(self, part: str, rows: int) -> np.ndarray | None:
        """The rows of a gate or an up where they stand by turns."""
        first = {"gate": 0, "up": 1}.get(part)
        return None if first is None or not self.config.names.paired else np.arange(first, 2 * rows, 2)

    def bias(self, i: int, part: str, size: int, expert: int | None = None) -> Tensor:
        """A part's bias; zeros where only its neighbours have one."""
        if part not in self.config.biased:
            return torch.zeros(size)
        names = self.config.names
        order = self.rope_order(part, size) if expert is None else self.turns(part, size)
        return to_vector(self.checkpoint, names.bias(i, part, expert), size, order, names.stacked(expert))

    def rope_order(self, part: str, rows: int) -> np.ndarray | None:
        """Which stored row stands where, if the checkpoint's order is not Rope's."""
        if (
            part not in ("q", "k")
            or self.config.names.source == "hf"
            or not self.config.family.neighbour_rope
        ):
            return None
        return rope_rows(rows // self.config.head_dim, self.config.head_dim)
