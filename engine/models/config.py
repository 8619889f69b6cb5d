"""The shape of a model, as its checkpoint says: read once, every number checked, what is not served refused.

A setting that is not understood would not stop a model, it would make it stupid: so keys that change the
computation and tensors that nobody asks for are refused by name. Knows GGUF's names, nothing of weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..checkpoints import GgufFile
from ..errors import BadCheckpoint, UnsupportedModel


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a family differs from the others that the same decoder serves."""

    neighbour_rope: bool  # query and key rows are stored so that rotated pairs are neighbours
    qkv_bias: bool


ARCHITECTURES = {
    "llama": Architecture(neighbour_rope=True, qkv_bias=False),
    "qwen2": Architecture(neighbour_rope=False, qkv_bias=True),
}
# Keys that would change the computation, their architecture left out, and the value that changes nothing.
NEUTRAL = {
    "rope.scaling.type": "none",
    "rope.scale_linear": 1.0,
    "expert_count": 0,
    "attention.sliding_window": 0,
    "attention.clamp_kqv": 0.0,
}
TENSORS = re.compile(
    r"(token_embd|output_norm|output)\.weight"
    r"|blk\.[0-9]+\.(attn_norm|attn_[qkv]|attn_output|ffn_norm|ffn_gate|ffn_up|ffn_down)\.weight"
    r"|blk\.[0-9]+\.attn_[qkv]\.bias"
)
MOST = 1 << 20  # layers, heads, widths: enough for any model


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What the forward pass of a dense decoder needs to know."""

    architecture: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    context_length: int
    rms_eps: float
    rope_theta: float
    rope_dim: int  # how many values of a head are rotated
    qkv_bias: bool
    tied_head: bool  # the output head is the embedding

    @staticmethod
    def from_gguf(checkpoint: GgufFile) -> ModelConfig:
        """Raises UnsupportedModel for what is not served, BadCheckpoint for what makes no sense."""
        keys = _Keys(checkpoint)
        keys.check_served()
        hidden_size, num_heads = keys.count("embedding_length"), keys.count("attention.head_count")
        num_kv_heads = keys.count("attention.head_count_kv", most=num_heads, default=num_heads)
        keys.divides("attention.head_count_kv", num_kv_heads, num_heads)
        if "attention.key_length" not in keys:
            keys.divides("attention.head_count", num_heads, hidden_size)
        head_dim = keys.count("attention.key_length", default=hidden_size // num_heads)
        keys.same("attention.value_length", head_dim)
        rope_dim = keys.count("rope.dimension_count", most=head_dim, default=head_dim)
        keys.divides("rope.dimension_count", 2, rope_dim)
        if ARCHITECTURES[keys.architecture].neighbour_rope:
            keys.same("rope.dimension_count", head_dim)
        return ModelConfig(
            architecture=keys.architecture,
            num_layers=keys.layers(),
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            ffn_size=keys.count("feed_forward_length"),
            vocab_size=keys.vocabulary(),
            context_length=keys.count("context_length", most=1 << 30),
            rms_eps=keys.real("attention.layer_norm_rms_epsilon", most=1.0),
            rope_theta=keys.real("rope.freq_base", most=1e15, default=10000.0),
            rope_dim=rope_dim,
            qkv_bias=ARCHITECTURES[keys.architecture].qkv_bias or "blk.0.attn_q.bias" in checkpoint.tensors,
            tied_head="output.weight" not in checkpoint.tensors,
        )

    def rope_heads(self, name: str) -> int:
        """How many heads' rows of a matrix must be put in halves order; 0: they are as they should be."""
        if not ARCHITECTURES[self.architecture].neighbour_rope:
            return 0
        return {"attn_q": self.num_heads, "attn_k": self.num_kv_heads}.get(name.rpartition(".")[2], 0)


class _Keys:
    """A checkpoint's metadata, asked for by type and limits: a sound answer or an error that names them."""

    def __init__(self, checkpoint: GgufFile) -> None:
        self.checkpoint, self.metadata, self.file = checkpoint, checkpoint.metadata, checkpoint.path.name
        self.architecture = str(self.metadata.get("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            served = ", ".join(ARCHITECTURES)
            raise self.unserved(f"its architecture is {self.architecture!r:.40}; these are served: {served}")

    def __contains__(self, key: str) -> bool:
        return f"{self.architecture}.{key}" in self.metadata

    def get(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def unserved(self, why: str) -> UnsupportedModel:
        return UnsupportedModel(f"{self.file} cannot be used: {why}.")

    def bad(self, key: str, value: Any, wanted: str) -> BadCheckpoint:
        shown = "missing" if value is None else f"{value!r:.40}"
        return BadCheckpoint(
            f"{self.file} is damaged: {self.architecture}.{key} is {shown}; it must be {wanted}."
        )

    def check_served(self) -> None:
        """Nothing in the file that would be left out of the computation."""
        parts = self.metadata.get("split.count", 1)
        if parts != 1:
            raise self.unserved(f"it is one of {parts!r:.40} parts; files in parts are not served")
        for key, neutral in NEUTRAL.items():
            value = self.get(key, neutral)
            if value != neutral:
                raise self.unserved(f"{self.architecture}.{key} is {value!r:.40}; only {neutral!r} is served")
        for name in self.checkpoint.tensors:
            if not TENSORS.fullmatch(name):
                raise self.unserved(f"it has a tensor {name!r}, which no served architecture has")

    def count(self, key: str, most: int = MOST, default: int | None = None) -> int:
        """A whole number from 1 to `most`."""
        value = self.get(key, default)
        if isinstance(value, list):
            raise self.unserved(f"{self.architecture}.{key} differs from layer to layer")
        if type(value) is not int or not 1 <= value <= most:
            raise self.bad(key, value, f"a whole number from 1 to {most}")
        return value

    def real(self, key: str, most: float, default: float | None = None) -> float:
        """A number above 0, up to `most`; infinities and not-a-numbers are neither."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not 0 < value <= most:
            raise self.bad(key, value, f"a number above 0, up to {most:g}")
        return float(value)

    def divides(self, key: str, part: int, whole: int) -> None:
        if whole % part:
            raise self.bad(key, self.get(key, part), f"such that {part} divides {whole}")

    def same(self, key: str, wanted: int) -> None:
        value = self.get(key, wanted)
        if value != wanted:
            key = f"{self.architecture}.{key}"
            raise self.unserved(f"{key} is {value!r:.40}; only {wanted}, a whole head, is served")

    def layers(self) -> int:
        """The number of layers, which must be as many as have tensors."""
        layers = self.count("block_count")
        found = {name.split(".")[1] for name in self.checkpoint.tensors if name.startswith("blk.")}
        if len(found) != layers:
            raise self.bad("block_count", layers, f"{len(found)}, as many layers have tensors")
        return layers

    def vocabulary(self) -> int:
        """The embedding's rows, which must be as many as the vocabulary has tokens."""
        embedding = self.checkpoint.tensors.get("token_embd.weight")
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        if embedding is None or not isinstance(tokens, list):
            missing = "vocabulary" if embedding else "tensor token_embd.weight"
            raise BadCheckpoint(f"{self.file} has no {missing}; the file is incomplete.")
        rows = embedding.shape[0]
        if len(tokens) != rows:
            raise BadCheckpoint(
                f"{self.file} is damaged: {len(tokens)} tokens and {rows} rows of token_embd.weight."
            )
        return rows
