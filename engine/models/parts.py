"""A checkpoint's parts by name, as matrices and vectors that a backend packs: what loader.py makes layers of.

What differs between the sources is undone here: GGUF's order of query and key rows, Gemma's norms that leave
out a one, experts that are stored as one. What was packed before comes from the cache as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from kernels import Dense, Matrix, Norm, Ops, Packed, Pieces, Weight

from ..checkpoints import Checkpoint
from ..formats import QUANTIZERS, can_be_cut, quantize, rope_rows, to_vector, to_weight
from ..packed_cache import PackedCache
from .config import ModelConfig


class Parts:
    """Packed for a backend, unless they are kept packed. Several threads may ask."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        config: ModelConfig,
        ops: Ops,
        quantization: str,
        cache: PackedCache | None,
    ) -> None:
        self.checkpoint, self.config, self.ops, self.cache = checkpoint, config, ops, cache
        self.quantization = quantization

    def top(self, part: str, rows: int = 0, width: int = 0) -> Packed:
        """The embedding or the output head, or another matrix above the layers."""
        c = self.config
        name, shape = c.names.top(part), (rows or c.vocab_size, width or c.hidden_size)

        def pack() -> Packed:
            packed = self.ops.pack([self.matrix(name, shape, is_layers=False)])
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
        gain = self.floats(f"{name}.weight", size) + offset
        return Norm((gain * scale).to(self.ops.device), self.config.rms_eps)

    def plain_norm(self, size: int) -> Norm:
        """An RMSNorm without gains."""
        return Norm(torch.ones(size, device=self.ops.device), self.config.rms_eps)

    def vector(self, i: int, part: str, size: int) -> Tensor:
        """A part of layer `i` that is no matrix."""
        return self.floats(self.config.names.vector(i, part), size)

    def floats(
        self, name: str, size: int, rows: np.ndarray | None = None, expert: int | None = None
    ) -> Tensor:
        """A vector of the checkpoint, by its full name."""
        return to_vector(self.checkpoint, name, size, rows, expert)

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
    ) -> Matrix:
        """One matrix of layer `i`, of its expert, or made of some of its rows."""
        names = self.config.names
        if rows is None:
            rows = self.rope_order(part, shape[0])
        name, which = names.layer(i, part, expert), names.stacked(expert)
        return self.matrix(name, shape, rows, which, part != "router")

    def matrix(
        self,
        name: str,
        shape: tuple[int, int],
        rows: np.ndarray | None = None,
        expert: int | None = None,
        is_layers: bool = True,
    ) -> Matrix:
        """A matrix of the checkpoint; in pieces where that can be, so that it is not in memory twice."""

        def make(piece: tuple[int, int] | None) -> Weight:
            weight = to_weight(self.checkpoint, name, shape, rows, expert, piece)
            return self.quantized(weight) if is_layers else weight

        if can_be_cut(self.checkpoint, name):
            return Pieces(shape, lambda begin, end: make((begin, end)))
        return make(None)

    def quantized(self, weight: Weight) -> Weight:
        """The same, or what is made of it when it is loaded."""
        if isinstance(weight, Dense) and self.quantization in QUANTIZERS:
            return quantize(weight, self.quantization)
        return weight

    def expert_weight(self, i: int, part: str, shape: tuple[int, int], expert: int) -> Matrix:
        """A matrix of an expert. Where gates and ups stand by turns, floats lie [inputs, outputs]."""
        names, rows = self.config.names, self.turns(part, shape[0])
        name = names.layer(i, part, expert)
        if names.joined != "turns" or f"{name}_blocks" in self.checkpoint.tensors:
            return self.weight(i, part, shape, rows, expert)
        stored = shape[1], shape[0] * (1 if rows is None else 2)
        lying = to_weight(self.checkpoint, name, stored, expert=expert)
        assert isinstance(lying, Dense)
        values = lying.values.T if rows is None else lying.values.T[torch.from_numpy(rows)]
        return self.quantized(Dense(values.contiguous()))

    def turns(self, part: str, rows: int) -> np.ndarray | None:
        """The rows of a gate or an up where they stand in one tensor."""
        first, joined = {"gate": 0, "up": 1}.get(part), self.config.names.joined
        if first is None or not joined:
            return None
        return np.arange(first, 2 * rows, 2) if joined == "turns" else np.arange(rows) + first * rows

    def bias(self, i: int, part: str, size: int, expert: int | None = None) -> Tensor:
        """A part's bias; zeros where only its neighbours have one."""
        if part not in self.config.biased:
            return torch.zeros(size)
        names = self.config.names
        order = self.rope_order(part, size) if expert is None else self.turns(part, size)
        return self.floats(names.bias(i, part, expert), size, order, names.stacked(expert))

    def rope_order(self, part: str, rows: int) -> np.ndarray | None:
        """Which stored row stands where, if the checkpoint's order is not Rope's."""
        if (
            part not in ("q", "k")
            or self.config.names.source == "hf"
            or not self.config.family.neighbour_rope
        ):
            return None
        return rope_rows(rows // self.config.head_dim, self.config.head_dim)
