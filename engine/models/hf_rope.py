"""A rope as config.json says it, in all its spellings, to its frequencies.

`rope_scaling` and `rope_theta` became `rope_parameters`, which may have a table for each kind of layer.
"""

from __future__ import annotations

from .families import GEMMA3, PHI3, Family
from .keys import Keys
from .rope import (
    RopeConfig,
    linear,
    llama3,
    longrope,
    longrope_magnitude,
    plain,
    proportional,
    yarn,
    yarn_magnitude,
)


def read_rope(keys: Keys, family: Family, head_dim: int, windowed: bool) -> RopeConfig:
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
    part = ropes.real("partial_rotary_factor", 1.0)
    if table["rope_type"] == "proportional":
        theta = ropes.real("rope_theta", 1e15, above=1.0)
        return proportional(theta, head_dim, part, ropes.real("factor", 1e6, 1.0))
    dim = int(head_dim * part)
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
