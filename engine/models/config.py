"""The shape of a model, as its checkpoint says: read once, every number checked, what is not served refused.

A setting that is not understood would not stop a model, it would make it stupid: so keys that change the
computation and tensors that nobody asks for are refused by name. gguf_config.py and hf_config.py read the two
kinds of metadata; what both have in common is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint, UnsupportedModel
from .families import Family, Names
from .keys import Keys
from .rope import RopeConfig


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What may differ from layer to layer; a size of 0 is the model's."""

    rope: RopeConfig | None  # None: positions are not told
    window: int = 0  # a token sees itself and the window - 1 tokens before it; 0: all
    experts: bool = False
    num_kv_heads: int = 0
    head_dim: int = 0
    ffn_size: int = 0
    source: int | None = None  # whose keys and values it looks at, having none of its own
    without: frozenset[str] = frozenset()  # parts of the family that it has not


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture of experts in the layers that have one."""

    num_experts: int
    top_k: int
    size: int  # of one expert's feed-forward
    normalized: bool  # the shares of the chosen experts are divided by their sum


@dataclass(frozen=True, slots=True)
class Borrowed:
    """What transformers' own code computes: see fallback.py."""

    kind: str  # model_type
    settings: Mapping[str, Any]  # of transformers' configuration
    dtype: torch.dtype  # of the weights in memory, and of what is computed with them
    weights_bytes: int  # in memory
    widest: int  # of a layer's matrices


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the forward pass needs to know."""

    names: Names
    layers: tuple[LayerConfig, ...]
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    context_length: int
    rms_eps: float
    biased: frozenset[str]  # the parts that have a bias
    tied_head: bool  # the output head is the embedding
    mixture: Mixture | None = None
    input_size: int = 0  # of what each layer is told of each token once more
    embedding_scale: float = 1.0
    residual_scale: float = 1.0  # of what a layer adds
    logit_scale: float = 1.0
    logit_cap: float = 0.0
    score_scale: float = 0.0  # 0: 1 / sqrt(head_dim)
    score_cap: float = 0.0
    borrowed: Borrowed | None = None  # not computed by our own decoder

    @property
    def family(self) -> Family:
        return self.names.family

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows there are, one for each page kind; 0, where a layer sees all, comes first."""
        return tuple(sorted({layer.window for layer in self.layers}))

    @property
    def shapes(self) -> set[tuple[int, int, int]]:
        """The sizes that there are."""
        return {self.sizes(i) for i in range(self.num_layers)}

    def sizes(self, i: int) -> tuple[int, int, int]:
        """Of layer `i`: heads of keys, the width of a head, that of the feed-forward."""
        layer = self.layers[i]
        return (
            layer.num_kv_heads or self.num_kv_heads,
            layer.head_dim or self.head_dim,
            layer.ffn_size or self.ffn_size,
        )

    def parts(self, i: int) -> tuple[str, ...]:
        """What layer `i` has, in the order of the computation; experts' own matrices left out."""
        layer = self.layers[i]
        return tuple(part for part in self.names.parts(layer.experts) if part not in layer.without)

    def stems(self) -> Iterator[tuple[str, str]]:
        """All tensors that are asked for, without what follows the last dot, and the part that each is."""
        inputs = ("inputs", "inputs_of_hidden", "inputs_norm") if self.input_size else ()
        yield from ((self.names.top(part), part) for part in ("embedding", "norm", "head", *inputs))
        for i, layer in enumerate(self.layers):
            # keys and values that another layer's stand for are left in many a checkpoint
            parts = self.parts(i) if layer.source is None else self.parts(i) + KV_PARTS
            yield from ((self.names.stem(i, part), part) for part in parts)
            if layer.experts and self.mixture:
                for part, expert in product(("gate", "up", "down"), range(self.mixture.num_experts)):
                    yield self.names.stem(i, part, expert), part

    def check(self, checkpoint: Checkpoint) -> None:
        """Every tensor of the checkpoint has its place in the computation, every width one in the kernels."""
        for _, width, _ in self.shapes:
            if width % 16:
                raise UnsupportedModel(
                    f"{checkpoint.path.name} cannot be used: its heads are {width} wide; only multiples "
                    "of 16 are served."
                )
        parts = dict(self.stems())
        for name in checkpoint.tensors:
            stem, _, kind = name.rpartition(".")
            part = parts.get(stem)
            if (part is None or (kind == "bias" and part not in self.biased)) and not HARMLESS.fullmatch(
                name
            ):
                raise UnsupportedModel(
                    f"{checkpoint.path.name} cannot be used: it has a tensor {name!r:.80}, which has no "
                    f"place in {self.family.name} as it is served."
                )


MOST_EXPERTS = 1024  # of a layer
KV_PARTS = "k", "v", "k_norm"
# Tensors that are read with the metadata, or say again what those say.
HARMLESS = re.compile(r"rope_(freqs|factors_long|factors_short)\.weight|.*\.rotary_emb\.inv_freq")


def count_layers(keys: Keys, key: str, prefix: str) -> int:
    """The number of layers, which must be as many as have tensors."""
    layers, place = keys.count(key), prefix.count(".")
    found = {name.split(".")[place] for name in keys.checkpoint.tensors if name.startswith(prefix)}
    if len(found) != layers:
        raise keys.bad(key, layers, f"{len(found)}, as many layers have tensors")
    return layers


def biased_parts(checkpoint: Checkpoint, names: Names, experts: bool) -> frozenset[str]:
    """The matrices of a layer that have a bias beside them, told by the first layer."""
    matrices: list[tuple[str, int | None]] = [
        (part, None) for part in names.parts(experts) if not part.endswith("norm")
    ]
    matrices += [(part, 0) for part in ("gate", "up", "down") if experts]
    found = {part for part, expert in matrices if names.bias(0, part, expert) in checkpoint.tensors}
    always = {"q", "k", "v"} if names.family.qkv_bias else set()
    return frozenset(found | always)


def embedding_rows(checkpoint: Checkpoint, names: Names) -> int:
    """How many tokens the embedding knows."""
    name = f"{names.top('embedding')}.weight"
    tensor = checkpoint.tensors.get(name)
    if tensor is None or len(tensor.shape) != 2:
        raise BadCheckpoint(f"{checkpoint.path.name} has no matrix {name}; the model is incomplete.")
    return tensor.shape[0]


def has_head(checkpoint: Checkpoint, names: Names) -> bool:
    """Whether there is an output head of its own, in whatever form."""
    return any(name.rpartition(".")[0] == names.top("head") for name in checkpoint.tensors)
