"""Gemma 4's layers, of which no two need be alike, from config.json and from GGUF's keys.

    a layer with a window    heads of one width, a rope of its own
    a layer that sees all    wider heads; fewer of keys, where a key is the value, too
    the last few             no keys and values: they look at those of the last layer of their kind that has
                             some, and their feed-forward may be twice as wide

A layer with a window keeps it however short the context is: both kinds' blocks are of different sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .config import KV_PARTS, LayerConfig
from .families import INPUT_PARTS, Family
from .hf_rope import read_rope
from .keys import Keys
from .rope import RopeConfig, plain


@dataclass(frozen=True, slots=True)
class Shape:
    """Attention of a layer."""

    num_kv_heads: int
    head_dim: int
    window: int
    rope: RopeConfig
    without: frozenset[str]  # parts of the family that the layer has not


def hf_layers(keys: Keys, family: Family, windowed: list[bool]) -> tuple[LayerConfig, ...]:
    """Of a folder. The last layer sees all, whatever is said."""
    windowed = [*windowed[:-1], False]
    window = keys.count("sliding_window", most=1 << 30)
    one_for_both = keys.flag("attention_k_eq_v", False)
    few = "num_global_key_value_heads" if one_for_both else "num_key_value_heads"
    shared = _shared(keys, "num_kv_shared_layers", len(windowed))
    shapes = []
    for i, is_windowed in enumerate(windowed):
        sizes = Keys(keys.checkpoint, table=_own_sizes(keys, i))
        usual = keys.count("head_dim") if is_windowed else keys.count("global_head_dim", default=512)
        head_dim = sizes.count("head_dim", default=usual)
        kv_heads = keys.count("num_key_value_heads")
        kv_heads = kv_heads if is_windowed else keys.count(few, default=kv_heads)
        kv_heads = sizes.count("num_key_value_heads", default=kv_heads)
        keys.divides("num_key_value_heads", kv_heads, keys.count("num_attention_heads"))
        rope = read_rope(keys, family, head_dim, is_windowed)
        sees = window if is_windowed else 0
        without = _without(keys, "hidden_size_per_layer_input", one_for_both and not is_windowed)
        shapes.append(Shape(kv_heads, head_dim, sees, rope, without))
    wider = 2 if keys.flag("use_double_wide_mlp", False) else 1
    sizes_ = [keys.count("intermediate_size") * (wider if i in shared else 1) for i in range(len(windowed))]
    if keys.get("hidden_size_per_layer_input"):
        keys.neutral({"vocab_size_per_layer_input": keys.get("vocab_size")})
    experts = keys.flag("enable_moe_block", False)
    return _layers(keys, shapes, sizes_, shared, "num_kv_shared_layers", experts)


def gguf_layers(keys: Keys, num_layers: int, rope: RopeConfig) -> tuple[LayerConfig, ...]:
    """Of a GGUF file; `rope` is that of layers that see all."""
    pattern = keys.get("attention.sliding_window_pattern")
    if not isinstance(pattern, list) or len(pattern) != num_layers:
        raise keys.bad("attention.sliding_window_pattern", pattern, f"a list of {num_layers} truths")
    kv_heads = keys.counts("attention.head_count_kv", num_layers, keys.count("attention.head_count"))
    wide, narrow = keys.count("attention.key_length"), keys.count("attention.key_length_swa")
    keys.neutral(dict.fromkeys(("attention.value_length_swa", "rope.dimension_count_swa"), narrow))
    window = keys.count("attention.sliding_window", most=1 << 30)
    local = plain(keys.real("rope.freq_base_swa", 1e15, 10000.0, above=1.0), narrow)
    shared = _shared(keys, "attention.shared_kv_layers", num_layers)
    shapes = []
    for i, (is_windowed, heads) in enumerate(zip(pattern, kv_heads, strict=True)):
        keys.divides("attention.head_count_kv", heads, keys.count("attention.head_count"))
        kind = (narrow, window, local) if is_windowed else (wide, 0, rope)
        stored = keys.checkpoint.tensors
        without = _without(keys, "embedding_length_per_layer_input", f"blk.{i}.attn_v.weight" not in stored)
        if f"blk.{i}.layer_output_scale.weight" not in stored:
            without |= {"factor"}
        shapes.append(Shape(heads, *kind, without))
    ffn_sizes = keys.counts("feed_forward_length", num_layers)
    experts = bool(keys.get("expert_count"))
    return _layers(keys, shapes, ffn_sizes, shared, "attention.shared_kv_layers", experts)


def _own_sizes(keys: Keys, i: int) -> dict[str, Any]:
    """What `per_layer_config` says of a layer."""
    said = keys.get("per_layer_config", {})
    own = said.get(str(i), {}) if isinstance(said, dict) else None
    if not isinstance(own, dict) or not own.keys() <= {"head_dim", "num_key_value_heads"}:
        raise keys.bad("per_layer_config", said, "a table of layers' head_dim and num_key_value_heads")
    return own


def _without(keys: Keys, key: str, one_for_both: bool) -> frozenset[str]:
    """What a layer has not: `key` is 0 where it is told of no token once more."""
    return frozenset(() if keys.get(key) else INPUT_PARTS) | frozenset("v" if one_for_both else ())


def _shared(keys: Keys, key: str, num_layers: int) -> range:
    """The layers that have no keys and values."""
    count = keys.count(key, most=num_layers - 1) if keys.get(key) else 0
    return range(num_layers - count, num_layers)


def _layers(
    keys: Keys, shapes: list[Shape], ffn_sizes: list[int], shared: range, key: str, experts: bool
) -> tuple[LayerConfig, ...]:
    """`key` says how many have no keys and values."""
    layers = []
    for i, (shape, ffn_size) in enumerate(zip(shapes, ffn_sizes, strict=True)):
        source, without = None, shape.without
        if i in shared:
            alike = [j for j in range(shared.start) if shapes[j].window == shape.window]
            if not alike or shapes[alike[-1]].num_kv_heads != shape.num_kv_heads:
                raise keys.bad(key, len(shared), f"such that layer {i} has one of its kind before")
            source, without = alike[-1], without.union(KV_PARTS)
        layers.append(
            LayerConfig(
                shape.rope,
                shape.window,
                experts,
                num_kv_heads=shape.num_kv_heads,
                head_dim=shape.head_dim,
                ffn_size=ffn_size,
                source=source,
                without=without,
            )
        )
    return tuple(layers)
