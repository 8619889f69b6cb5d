"""config.json, as transformers writes it, to a ModelConfig.

Older and newer spellings are both read: a pattern of windows became `layer_types`; ropes are hf_rope.py's.
What a family's own configuration class would fill in stands in DEFAULTS.
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
    GEMMA4,
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
from .gemma4 import hf_layers
from .hf_rope import read_rope
from .keys import Keys

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
    GEMMA4.name: {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 131072,
        "sliding_window": 512,
        "hidden_size_per_layer_input": 256,
        "attention_multiplier": 1.0,  # scores are what they are
        "rope_parameters": {
            "sliding_attention": {"rope_theta": 1e4},
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1e6,
                "partial_rotary_factor": 0.25,
            },
        },
    },
    MISTRAL.name: {"sliding_window": 4096},
    QWEN3.name: {"head_dim": 128},
    SMOLLM3.name: {"rope_theta": 2e6},
    MIXTRAL.name: {"rope_theta": 1e6},
    GPT_OSS.name: {"rope_theta": 150000.0, "rms_norm_eps": 1e-5, "sliding_window": 128, "head_dim": 64},
}
# Families that have windows without being asked, and those that have them with use_sliding_window alone.
WINDOWED = (MISTRAL, MIXTRAL, PHI3, GEMMA2, GEMMA3, GEMMA4, GPT_OSS)
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
    if family is not GEMMA4 or keys.get("use_bidirectional_attention") != "vision":  # which texts have not
        keys.neutral(NEUTRAL)
    for key in ("hidden_act", "hidden_activation"):
        keys.choice(key, ACTIVATIONS[family.activation], ACTIVATIONS[family.activation][0])
    hidden_size, num_heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    num_kv_heads = keys.count("num_key_value_heads", most=num_heads, default=num_heads)
    keys.divides("num_key_value_heads", num_kv_heads, num_heads)
    if "head_dim" not in keys:
        keys.divides("num_attention_heads", num_heads, hidden_size)
    head_dim = keys.count("head_dim", default=hidden_size // num_heads)
    has_experts = family.experts or (family is GEMMA4 and keys.flag("enable_moe_block", False))
    mixture = _mixture(keys, family) if has_experts else None
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
        input_size=_or_none(keys, "hidden_size_per_layer_input") if family.per_layer_embeddings else 0,
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


def _or_none(keys: Keys, key: str) -> int:
    return keys.count(key) if keys.get(key) else 0


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
    size = "moe_intermediate_size" if family in (QWEN3_MOE, GEMMA4) else "intermediate_size"
    top_k = "top_k_experts" if family is GEMMA4 else "num_experts_per_tok"
    most = keys.count(count, MOST_EXPERTS)
    normalized = family in (MIXTRAL, GPT_OSS, GEMMA4) or keys.flag("norm_topk_prob", False)
    return Mixture(most, keys.count(top_k, most=most), keys.count(size), normalized)


def _layers(keys: Keys, family: Family, head_dim: int) -> tuple[LayerConfig, ...]:
    num_layers = count_layers(keys, "num_hidden_layers", "model.layers.")
    silent = _silent(keys, num_layers) if family is SMOLLM3 else [False] * num_layers
    windowed = _windowed(keys, family, silent)
    if family is GEMMA4:
        return hf_layers(keys, family, windowed)
    window = keys.count("sliding_window", most=1 << 30) if any(windowed) else 0
    seen = window if window < keys.count("max_position_embeddings", most=1 << 30) else 0
    ropes = {is_windowed: read_rope(keys, family, head_dim, is_windowed) for is_windowed in set(windowed)}
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
        GEMMA4.name: 6,
    }.get(family.name)
    return [every is None or (i + 1) % every != 0 for i in range(num_layers)]
