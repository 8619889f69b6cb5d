"""GGUF's keys to a ModelConfig.

Keys: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. What llama.cpp leaves out of the file,
because its own source knows it of a family, stands here: which layers have a window, which are told no
positions, and by what Gemma's queries are scaled.
"""

from __future__ import annotations

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint
from ..formats import to_vector
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
from .families import GEMMA2, GEMMA3, GEMMA4, GGUF_FAMILIES, GPT_OSS, MIXTRAL, PHI3, SMOLLM3, Family, Names
from .gemma4 import gguf_layers
from .keys import Keys
from .rope import RopeConfig, linear, longrope, plain, yarn

# Keys that would change the computation, and the value that changes nothing.
NEUTRAL = {
    "attention.causal": True,
    "attention.clamp_kqv": 0.0,
    "attention.key_length_mla": 0,
    "attention.max_alibi_bias": 0.0,
    "attention.temperature_length": 0,
    "expert_gating_func": 1,
    "expert_shared_count": 0,
    "expert_weights_scale": 1.0,
    "leading_dense_block_count": 0,
    "rope.scale_linear": 1.0,
    "use_parallel_residual": False,
}
NOT_GEMMA4 = {"attention.shared_kv_layers": 0, "embedding_length_per_layer_input": 0}
# Every how many layers one sees all; the others have a window.
FULL_EVERY = {GEMMA2.name: 2, GEMMA3.name: 6, GPT_OSS.name: 2}
# Gemma's largest models scale queries by their width over their heads, not by the width of a head.
SCALED_BY_WIDTH = {GEMMA2.name: 46, GEMMA3.name: 62}  # so many layers


def read_gguf_config(checkpoint: Checkpoint) -> ModelConfig:
    """The shape of a GGUF model. Raises what read_config does, which checks the tensors then."""
    architecture = str(checkpoint.metadata.get("general.architecture"))
    keys = Keys(checkpoint, f"{architecture}.")
    if architecture not in GGUF_FAMILIES:
        served = ", ".join(GGUF_FAMILIES)
        raise keys.unserved(f"its architecture is {architecture!r:.40}; these are served: {served}")
    family = GGUF_FAMILIES[architecture]
    mixture = _mixture(keys)
    if mixture and not family.experts:
        family = MIXTRAL if architecture == "llama" else family
    if bool(mixture) != family.experts and family is not GEMMA4:
        raise keys.unserved(
            f"{keys.prefix}expert_count is {keys.get('expert_count')!r:.40} in a {family.name}"
        )
    keys.neutral(NEUTRAL if family is GEMMA4 else NEUTRAL | NOT_GEMMA4)
    names = Names(family, "gguf")
    hidden_size, num_heads = keys.count("embedding_length"), keys.count("attention.head_count")
    num_layers = count_layers(keys, "block_count", "blk.")
    per_layer = num_layers if family is GEMMA4 else 1
    num_kv_heads = max(keys.counts("attention.head_count_kv", per_layer, num_heads, num_heads))
    keys.divides("attention.head_count_kv", num_kv_heads, num_heads)
    head_dim = _head_dim(keys, family, hidden_size, num_heads)
    tied_head = not has_head(checkpoint, names)
    return ModelConfig(
        names=names,
        layers=_layers(keys, family, num_layers, head_dim),
        hidden_size=hidden_size,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        ffn_size=mixture.size if mixture else max(keys.counts("feed_forward_length", per_layer)),
        vocab_size=_vocabulary(checkpoint, names),
        context_length=keys.count("context_length", most=1 << 30),
        rms_eps=keys.real("attention.layer_norm_rms_epsilon", most=1.0),
        biased=biased_parts(checkpoint, names, mixture is not None),
        tied_head=tied_head,
        mixture=mixture,
        input_size=keys.get("embedding_length_per_layer_input", 0)
        and keys.count("embedding_length_per_layer_input"),
        embedding_scale=hidden_size**0.5
        if family.scaled_embedding
        else keys.real("embedding_scale", 1e6, 1.0),
        residual_scale=keys.real("residual_scale", 1e6, 1.0),
        logit_scale=1 / keys.real("logit_scale", 1e6, 1.0),
        logit_cap=keys.real("final_logit_softcapping", 1e6) if "final_logit_softcapping" in keys else 0.0,
        score_scale=_score_scale(keys, family, num_layers, hidden_size / num_heads),
        score_cap=keys.real("attn_logit_softcapping", 1e6) if "attn_logit_softcapping" in keys else 0.0,
    )


def _head_dim(keys: Keys, family: Family, hidden_size: int, num_heads: int) -> int:
    if "attention.key_length" not in keys:
        keys.divides("attention.head_count", num_heads, hidden_size)
    head_dim = keys.count("attention.key_length", default=hidden_size // num_heads)
    keys.neutral({"attention.value_length": head_dim})
    if family is not GEMMA4:
        keys.neutral({"attention.key_length_swa": head_dim})
    return head_dim


def _vocabulary(checkpoint: Checkpoint, names: Names) -> int:
    """The embedding's rows, which must be as many as the vocabulary has tokens."""
    rows, tokens = embedding_rows(checkpoint, names), checkpoint.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list):
        raise BadCheckpoint(f"{checkpoint.path.name} has no vocabulary; the file is incomplete.")
    if len(tokens) != rows:
        raise BadCheckpoint(
            f"{checkpoint.path.name} is damaged: {len(tokens)} tokens and {rows} rows of token_embd.weight."
        )
    return rows


def _mixture(keys: Keys) -> Mixture | None:
    if not keys.get("expert_count", 0):
        return None
    most = keys.count("expert_count", MOST_EXPERTS)
    size = "expert_feed_forward_length" if "expert_feed_forward_length" in keys else "feed_forward_length"
    # llama.cpp knows of a family whether shares are divided by their sum: OLMoE's are not
    normalized = keys.flag("expert_weights_norm", not keys.prefix.startswith("olmoe"))
    return Mixture(most, keys.count("expert_used_count", most=most), keys.count(size), normalized)


def _layers(keys: Keys, family: Family, num_layers: int, head_dim: int) -> tuple[LayerConfig, ...]:
    if family is GEMMA4:
        return gguf_layers(keys, num_layers, _rope(keys, family, head_dim))
    full_every, window = FULL_EVERY.get(family.name, 0), 0
    if full_every or family is PHI3:
        window = keys.get("attention.sliding_window", 0) and keys.count(
            "attention.sliding_window", most=1 << 30
        )
        window = window if window < keys.count("context_length", most=1 << 30) else 0
    else:
        keys.neutral({"attention.sliding_window": 0})
    rope = _rope(keys, family, head_dim)
    local = (
        plain(keys.real("rope.freq_base_swa", 1e15, 10000.0, above=1.0), head_dim)
        if family is GEMMA3
        else rope
    )
    layers = []
    for i in range(num_layers):
        sees_all = not window or (full_every and (i + 1) % full_every == 0)
        silent = family is SMOLLM3 and (i + 1) % 4 == 0
        # Gemma 3 turns by the layer's kind, also where a window is as long as the context
        turned = rope if not full_every or (i + 1) % full_every == 0 else local
        layers.append(LayerConfig(None if silent else turned, 0 if sees_all else window, family.experts))
    return tuple(layers)


def _rope(keys: Keys, family: Family, head_dim: int) -> RopeConfig:
    dim = keys.count("rope.dimension_count", most=head_dim, default=head_dim)
    keys.divides("rope.dimension_count", 2, dim)
    if family.neighbour_rope and dim != head_dim:
        raise keys.unserved(
            f"{keys.prefix}rope.dimension_count is {dim}; only {head_dim}, a whole head, is served"
        )
    theta = keys.real("rope.freq_base", most=1e15, default=10000.0, above=1.0)
    kind = keys.choice("rope.scaling.type", ("none", "linear", "yarn", "longrope"), "none")
    factor = keys.real("rope.scaling.factor", 1e6, 1.0)
    original = keys.count("rope.scaling.original_context_length", 1 << 30, keys.get("context_length"))
    tensors = keys.checkpoint.tensors
    if "rope_freqs.weight" in tensors:  # Llama 3's scaling, computed when the file was made
        factors = _factors(keys, "rope_freqs.weight", dim)
        return longrope(theta, dim, factors, factors, original, 1.0)
    if "rope_factors_long.weight" in tensors or kind == "longrope":
        short, long = (_factors(keys, f"rope_factors_{which}.weight", dim) for which in ("short", "long"))
        magnitude = keys.real("rope.scaling.attn_factor", 1e3, 1.0)
        return longrope(theta, dim, short, long, original, magnitude)
    if kind == "linear":
        return linear(theta, dim, factor)
    if kind == "yarn":
        fast = keys.real("rope.scaling.yarn_beta_fast", 1e6, 32.0)
        slow = keys.real("rope.scaling.yarn_beta_slow", 1e6, 1.0)
        whole = family is not GPT_OSS  # its ramp begins and ends between pairs
        return yarn(theta, dim, factor, original, fast=fast, slow=slow, whole=whole)
    return plain(theta, dim)


def _factors(keys: Keys, name: str, dim: int) -> tuple[float, ...]:
    """By what each pair's frequency is divided."""
    if name not in keys.checkpoint.tensors:
        raise BadCheckpoint(f"{keys.file} has no tensor {name}; the file is incomplete.")
    factors = to_vector(keys.checkpoint, name, dim // 2).tolist()
    if not all(x > 0 for x in factors):
        raise BadCheckpoint(f"{keys.file} is damaged: {name} has values that are not above 0.")
    return tuple(factors)


def _score_scale(keys: Keys, family: Family, num_layers: int, share: float) -> float:
    if family is GEMMA4:  # scores are what they are
        return 1.0
    if SCALED_BY_WIDTH.get(family.name) == num_layers:
        return share**-0.5
    return keys.real("attention.scale", 1e6) if "attention.scale" in keys else 0.0
