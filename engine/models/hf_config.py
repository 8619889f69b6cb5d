"""config.json, as transformers writes it, to a ModelConfig.

Older and newer spellings are both read: `rope_scaling` and `rope_theta` became `rope_parameters`, a pattern
of windows became `layer_types`. What a family's own configuration class would fill in stands in DEFAULTS.
"""

from __future__ import annotations

from typing import Any

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint
from .config import (
    MOST_EXPERTS,
    LayerConfig,
    Mixture,
    ModelConfig,
    biased_parts,
    count_layers,
    embedding_rows,
    has_head,
)
from .fallback_check import read_fallback
from .families import (
    GEMMA2,
    GEMMA3,
    GPT_OSS,
    HF_FAMILIES,
    MISTRAL,
    MIXTRAL,
    PHI3,
    QWEN2,
    QWEN3,
    QWEN3_MOE,
    SMOLLM3,
    Family,
    Names,
)
from .keys import Keys
from .rope import (
    RopeConfig,
    linear,
    llama3,
    longrope,
    longrope_magnitude,
    plain,
    yarn,
    yarn_magnitude,
)

# Keys that would change the computation, and the value that changes nothing.
NEUTRAL: dict[str, Any] = {
    "clip_qkv": None,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "pretraining_tp": 1,
    "swiglu_limit": 7.0,
    "use_bidirectional_attention": False,
}
ACTIVATIONS = {
    "silu": ("silu", "swish"),
    "gelu_tanh": ("gelu_pytorch_tanh",),
    "clamped_swiglu": ("silu",),  # with swiglu_limit
}
# What families' configuration classes assume where config.json says nothing.
DEFAULTS: dict[str, dict[str, Any]] = {
    GEMMA2.name: {
        "head_dim": 256,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 8192,
        "sliding_window": 4096,
        "query_pre_attn_scalar": 256,
        "final_logit_softcapping": 30.0,
        "attn_logit_softcapping": 50.0,
    },
    GEMMA3.name: {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
        "query_pre_attn_scalar": 256,
    },
    MISTRAL.name: {"sliding_window": 4096},
    QWEN3.name: {"head_dim": 128},
    SMOLLM3.name: {"rope_theta": 2e6},
    MIXTRAL.name: {"rope_theta": 1e6},
    GPT_OSS.name: {"rope_theta": 150000.0, "rms_norm_eps": 1e-5, "sliding_window": 128, "head_dim": 64},
}
# Families that have windows without being asked, and those that have them with use_sliding_window alone.
WINDOWED = (MISTRAL, MIXTRAL, PHI3, GEMMA2, GEMMA3, GPT_OSS)
WINDOWED_IF_ASKED = (QWEN2, QWEN3, QWEN3_MOE, SMOLLM3)


def read_hf_config(checkpoint: Checkpoint) -> ModelConfig:
    """The shape of a folder's model. Raises what read_config does, which checks the tensors then."""
    keys = Keys(checkpoint)
    kind = str(keys.get("model_type"))
    if kind not in HF_FAMILIES:
        return read_fallback(keys)
    family = HF_FAMILIES[kind]
    keys = Keys(checkpoint, table=DEFAULTS.get(family.name, {}) | dict(checkpoint.metadata))
    names = Names(family, "hf")
    keys.neutral(NEUTRAL)
    for key in ("hidden_act", "hidden_activation"):
        keys.choice(key, ACTIVATIONS[family.activation], ACTIVATIONS[family.activation][0])
    hidden_size, num_heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    num_kv_heads = keys.count("num_key_value_heads", most=num_heads, default=num_heads)
    keys.divides("num_key_value_heads", num_kv_heads, num_heads)
    if "head_dim" not in keys:
        keys.divides("num_attention_heads", num_heads, hidden_size)
    head_dim = keys.count("head_dim", default=hidden_size // num_heads)
    mixture = _mixture(keys, family) if family.experts else None
    return ModelConfig(
        names=names,
        layers=_layers(keys, family, head_dim),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        ffn_size=mixture.size if mixture else keys.count("intermediate_size"),
        vocab_size=_vocabulary(keys, names),
        context_length=keys.count("max_position_embeddings", most=1 << 30),
        rms_eps=keys.real("rms_norm_eps", most=1.0, default=1e-6),
        biased=biased_parts(checkpoint, names, mixture is not None),
        tied_head=_tied(keys, names),
        mixture=mixture,
        embedding_scale=hidden_size**0.5 if family.scaled_embedding else _scale(keys, "embedding_multiplier"),
        residual_scale=_scale(keys, "residual_multiplier"),
        logit_scale=1 / _scale(keys, "logits_scaling"),
        logit_cap=_or_zero(keys, "final_logit_softcapping"),
        score_scale=_score_scale(keys),
        score_cap=_or_zero(keys, "attn_logit_softcapping"),
    )


def _scale(keys: Keys, key: str) -> float:
    return keys.real(key, 1e6, 1.0)


def _or_zero(keys: Keys, key: str) -> float:
    return keys.real(key, 1e6) if key in keys else 0.0


def _score_scale(keys: Keys) -> float:
    """Gemma says what is divided by the root of, Granite the factor itself."""
    if "query_pre_attn_scalar" in keys:
        return keys.real("query_pre_attn_scalar", 1e6) ** -0.5
    return _or_zero(keys, "attention_multiplier")


def _vocabulary(keys: Keys, names: Names) -> int:
    """The embedding's rows, which are as many as the config says."""
    rows = embedding_rows(keys.checkpoint, names)
    if keys.count("vocab_size", most=1 << 24, default=rows) != rows:
        raise keys.bad("vocab_size", keys.get("vocab_size"), f"{rows}, as many rows the embedding has")
    return rows


def _tied(keys: Keys, names: Names) -> bool:
    """Whether the head is the embedding: as the config says, or as there is none."""
    has = has_head(keys.checkpoint, names)
    tied = keys.flag("tie_word_embeddings", not has)
    if not tied and not has:
        raise BadCheckpoint(f"{keys.file} has no {names.top('head')}.weight; the model is incomplete.")
    return tied


def _mixture(keys: Keys, family: Family) -> Mixture:
    count = "num_experts" if "num_experts" in keys else "num_local_experts"
    size = "moe_intermediate_size" if family is QWEN3_MOE else "intermediate_size"
    most = keys.count(count, MOST_EXPERTS)
    normalized = family in (MIXTRAL, GPT_OSS) or keys.flag("norm_topk_prob", False)
    return Mixture(most, keys.count("num_experts_per_tok", most=most), keys.count(size), normalized)


def _layers(keys: Keys, family: Family, head_dim: int) -> tuple[LayerConfig, ...]:
    num_layers = count_layers(keys, "num_hidden_layers", "model.layers.")
    silent = _silent(keys, num_layers) if family is SMOLLM3 else [False] * num_layers
    windowed = _windowed(keys, family, silent)
    window = keys.count("sliding_window", most=1 << 30) if any(windowed) else 0
    seen = window if window < keys.count("max_position_embeddings", most=1 << 30) else 0
    ropes = {is_windowed: _rope(keys, family, head_dim, is_windowed) for is_windowed in set(windowed)}
    return tuple(
        LayerConfig(None if mute else ropes[is_windowed], seen if is_windowed else 0, family.experts)
        for mute, is_windowed in zip(silent, windowed, strict=True)
    )


def _silent(keys: Keys, num_layers: int) -> list[bool]:
    """The layers that are told no positions: SmolLM 3's list has a 0 for them."""
    said = keys.get("no_rope_layers")
    if said is None:
        every = keys.count("no_rope_layer_interval", default=4)
        return [(i + 1) % every == 0 for i in range(num_layers)]
    if not isinstance(said, list) or len(said) != num_layers or not set(said) <= {0, 1}:
        raise keys.bad("no_rope_layers", said, f"a list of {num_layers} zeros and ones")
    return [not turned for turned in said]


def _windowed(keys: Keys, family: Family, silent: list[bool]) -> list[bool]:
    """The layers that have a window."""
    num_layers, said = len(silent), keys.get("layer_types")
    kinds = ("full_attention", "sliding_attention")
    if said is not None:
        if not isinstance(said, list) or len(said) != num_layers:
            raise keys.bad("layer_types", said, f"a list of {num_layers}, one word for each layer")
        if other := [kind for kind in said if kind not in kinds]:
            raise keys.unserved(f"layer_types has {other[0]!r:.40}; these are served: {', '.join(kinds)}")
        return [kind == kinds[1] for kind in said]
    asked = family in WINDOWED or (family in WINDOWED_IF_ASKED and keys.flag("use_sliding_window", False))
    if not asked or "sliding_window" not in keys:
        if family not in WINDOWED + WINDOWED_IF_ASKED:
            keys.neutral({"sliding_window": None})
        return [False] * num_layers
    if family in (QWEN2, QWEN3):
        first = keys.get("max_window_layers", 28)
        if type(first) is not int or first < 0:
            raise keys.bad("max_window_layers", first, "a whole number")
        return [i >= first for i in range(num_layers)]
    if family is SMOLLM3:
        return silent
    every = {
        **dict.fromkeys((GEMMA2.name, GPT_OSS.name), 2),
        GEMMA3.name: keys.count("sliding_window_pattern", default=6),
    }.get(family.name)
    return [every is None or (i + 1) % every != 0 for i in range(num_layers)]


def _rope(keys: Keys, family: Family, head_dim: int, windowed: bool) -> RopeConfig:
    """The rope of layers with or without a window: Gemma 3's differ."""
    said = keys.get("rope_parameters", keys.get("rope_scaling")) or {}
    if not isinstance(said, dict):
        raise keys.bad("rope_parameters", said, "a table")
    if isinstance(kind := said.get("sliding_attention" if windowed else "full_attention"), dict):
        said = kind
    elif family is GEMMA3 and windowed:
        said = {}
    old = "rope_local_base_freq" if family is GEMMA3 and windowed else "rope_theta"
    theta = 1e6 if family is GEMMA3 and not windowed else 10000.0
    table = {
        "rope_theta": keys.get(old, theta),
        "partial_rotary_factor": keys.get("partial_rotary_factor", 1.0),
        "rope_type": said.get("type", "default"),
        "original_max_position_embeddings": keys.get("original_max_position_embeddings"),
        **{key: value for key, value in said.items() if value is not None},
    }
    if family is PHI3 and table["rope_type"] in ("su", "yarn"):
        table["rope_type"] = "longrope"
    ropes = Keys(keys.checkpoint, table=table)
    dim = int(head_dim * ropes.real("partial_rotary_factor", 1.0))
    if dim < 2 or dim % 2:
        raise keys.bad("partial_rotary_factor", table["partial_rotary_factor"], "such that pairs are turned")
    return _scaled(ropes, dim, keys.count("max_position_embeddings", most=1 << 30))


def _scaled(keys: Keys, dim: int, context_length: int) -> RopeConfig:
    """A rope from its own table."""
    kind = keys.choice("rope_type", ("default", "linear", "llama3", "yarn", "longrope"))
    theta = keys.real("rope_theta", 1e15, above=1.0)
    if kind == "default":
        return plain(theta, dim)
    original = keys.count("original_max_position_embeddings", 1 << 30, context_length)
    if kind == "longrope":
        factor = keys.real("factor", 1e6, context_length / original)
        magnitude = keys.real("attention_factor", 1e3, longrope_magnitude(factor, original))
        short, long = (keys.reals(f"{which}_factor", dim // 2) for which in ("short", "long"))
        return longrope(theta, dim, short, long, original, magnitude)
    factor = keys.real("factor", 1e6)
    if kind == "linear":
        return linear(theta, dim, factor)
    if kind == "llama3":
        low, high = keys.real("low_freq_factor", 1e6), keys.real("high_freq_factor", 1e6)
        if low >= high:
            raise keys.bad("high_freq_factor", high, f"larger than low_freq_factor, {low}")
        return llama3(theta, dim, factor, low, high, original)
    return yarn(
        theta,
        dim,
        factor,
        original,
        magnitude=keys.real("attention_factor", 1e3, _mscale(keys, factor)),
        fast=keys.real("beta_fast", 1e6, 32.0),
        slow=keys.real("beta_slow", 1e6, 1.0),
        whole=keys.flag("truncate", True),
    )


def _mscale(keys: Keys, factor: float) -> float:
    """DeepSeek's way to say yarn's magnitude, or the usual one."""
    if "mscale" not in keys or "mscale_all_dim" not in keys:
        return yarn_magnitude(factor)
    scales = (keys.real(key, 1e3) for key in ("mscale", "mscale_all_dim"))
    over, under = (yarn_magnitude(factor, scale) for scale in scales)
    return over / under
