"""A saved transformers model as GGUF, the way llama.cpp's converter writes it: names by gguf-py's own map.

What the converter changes is changed here: pairs that a rope turns become neighbours, Gemma's norms get their
one, experts are stacked, llama3's scaling becomes a tensor, longrope's lists become two.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors.torch import load_file

from tests.tiny_models import neighbours, write_vocabulary

# transformers' model_type -> llama.cpp's architecture
ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "mixtral": "llama",
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "qwen3_moe": "qwen3moe",
    "gpt_oss": "gpt-oss",
}
NEIGHBOURS = ("llama", "smollm3", "granite")
EXPERT = re.compile(r"(.*\.experts)\.(\d+)\.(\w+)\.weight")
MIXTRAL = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}


def write_gguf(model: Any, folder: Path, path: Path, vocabulary: dict[str, Any] | None = None) -> Path:
    """`folder` is where the model was saved; with a vocabulary of tiny_models.py one can talk to it."""
    config, kind = model.config, model.config.model_type
    architecture = ARCHITECTURES.get(kind, kind)
    writer = gguf.GGUFWriter(path, architecture)
    _write_keys(writer, config)
    if vocabulary:
        write_vocabulary(writer, vocabulary)
    else:
        writer.add_token_list([f"<{i}>" for i in range(config.vocab_size)])
    names = gguf.get_tensor_name_map(
        next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture),
        config.num_hidden_layers,
    )
    for name, values in _stacked(load_file(folder / "model.safetensors")).items():
        if kind in ("gemma2", "gemma3_text") and name.endswith("norm.weight"):
            values = values + 1
        stored = _gemma4_name(name) or names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert stored, name
        array = values.contiguous().numpy()
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
        if architecture in NEIGHBOURS and (count := heads.get(stored.split(".")[-2])):
            array = neighbours(array, getattr(config, count))
        writer.add_tensor(stored, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gemma4_name(name: str) -> str:
    """What the converter names by itself."""
    ends = {"router.scale": "ffn_gate_inp.scale", "router.per_expert_scale": "ffn_down_exps.scale"}
    found = re.fullmatch(r"model\.layers\.(\d+)\.(router\.\w+)", name)
    return f"blk.{found[1]}.{ends[found[2]]}" if found and found[2] in ends else ""


def _stacked(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Experts' matrices in one tensor each."""
    experts: dict[str, dict[int, torch.Tensor]] = {}
    for name in list(state):
        if found := EXPERT.fullmatch(name):
            stem, number, matrix = found.groups()
            stem = stem.replace("block_sparse_moe", "mlp")
            target = f"{stem}.{MIXTRAL.get(matrix, matrix)}.weight"
            experts.setdefault(target, {})[int(number)] = state.pop(name)
    for name in list(state):
        if re.fullmatch(r"model\.layers\.\d+\.experts\.\w+", name):  # Gemma 4's stay together
            state[f"{name}.weight"] = state.pop(name)
        elif ".experts.gate_up_proj" in name:  # gpt-oss: by turns, and matrices lie [inputs, outputs]
            both, ending = state.pop(name), "bias" if name.endswith("_bias") else "weight"
            for which, matrix in enumerate(("gate_proj", "up_proj")):
                values = both[..., which::2] if ending == "bias" else both[..., which::2].mT
                state[f"{name.partition('gate_up_proj')[0]}{matrix}.{ending}"] = values
        elif ".experts.down_proj" in name and not name.endswith(".weight"):
            values = state.pop(name)
            ending = "bias" if name.endswith("_bias") else "weight"
            state[f"{name}.weight" if ending == "weight" else name.replace("_bias", ".bias")] = (
                values if ending == "bias" else values.mT
            )
        elif name.endswith((".sinks", ".layer_scalar")):
            state[f"{name}.weight"] = state.pop(name)
    return state | {
        name: torch.stack([matrices[i] for i in range(len(matrices))]) for name, matrices in experts.items()
    }


def _write_keys(writer: Any, config: Any) -> None:
    scaling = config.rope_parameters
    scaling = scaling.get("full_attention", scaling)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(scaling["rope_theta"])
    if config.model_type == "gemma4_text":
        head_dim = turned = _write_gemma4(writer, config, scaling)
    else:
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        turned = int(head_dim * scaling.get("partial_rotary_factor", 1.0))
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(turned)
    for key, write in {
        "sliding_window": writer.add_sliding_window,
        "attention_multiplier": writer.add_attention_scale,
        "embedding_multiplier": writer.add_embedding_scale,
        "residual_multiplier": writer.add_residual_scale,
        "logits_scaling": writer.add_logit_scale,
        "attn_logit_softcapping": writer.add_attn_logit_softcapping,
        "final_logit_softcapping": writer.add_final_logit_softcapping,
        "num_local_experts": writer.add_expert_count,
        "num_experts": writer.add_expert_count,
        "num_experts_per_tok": writer.add_expert_used_count,
        "top_k_experts": writer.add_expert_used_count,
        "moe_intermediate_size": writer.add_expert_feed_forward_length,
    }.items():
        if getattr(config, key, None):
            write(getattr(config, key))
    _write_scaling(writer, scaling, config.max_position_embeddings, turned)


def _write_gemma4(writer: Any, config: Any, scaling: dict[str, Any]) -> int:
    """What differs from layer to layer; the width of a head that sees all is given back."""
    count, narrow = config.num_hidden_layers, config.to_dict()["head_dim"]
    windowed = [kind == "sliding_attention" for kind in config.layer_types]
    wide = config.per_layer_config[windowed.index(False)].head_dim
    wider = [i >= count - config.num_kv_shared_layers and config.use_double_wide_mlp for i in range(count)]
    writer.add_sliding_window_pattern(windowed)
    writer.add_shared_kv_layers(config.num_kv_shared_layers)
    writer.add_embedding_length_per_layer_input(config.hidden_size_per_layer_input)
    writer.add_feed_forward_length([config.intermediate_size * (2 if twice else 1) for twice in wider])
    writer.add_head_count_kv([config.per_layer_config[i].num_key_value_heads for i in range(count)])
    writer.add_key_length_swa(narrow)
    writer.add_value_length_swa(narrow)
    writer.add_rope_dimension_count_swa(narrow)
    turned = int(wide * scaling["partial_rotary_factor"] // 2)
    factors = [1.0] * turned + [1e30] * (wide // 2 - turned)
    writer.add_tensor("rope_freqs.weight", torch.tensor(factors).numpy())
    return wide


def _write_scaling(writer: Any, scaling: dict[str, Any], longest: int, turned: int) -> None:
    kind, original = scaling["rope_type"], scaling.get("original_max_position_embeddings")
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(scaling["factor"])
    if kind in ("yarn", "longrope"):
        writer.add_rope_scaling_orig_ctx_len(original)
    if kind == "longrope":
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(longest / original) / math.log(original)))
        for which in ("long", "short"):
            writer.add_tensor(
                f"rope_factors_{which}.weight", torch.tensor(scaling[f"{which}_factor"]).numpy()
            )
    if kind == "llama3":
        waves = 2 * math.pi * scaling["rope_theta"] ** (torch.arange(0, turned, 2) / turned)
        low, high = (original / scaling[f"{which}_freq_factor"] for which in ("low", "high"))
        smooth = (original / waves - scaling["low_freq_factor"]) / (
            scaling["high_freq_factor"] - scaling["low_freq_factor"]
        )
        factors = 1 / ((1 - smooth) / scaling["factor"] + smooth)
        factors = torch.where(waves < high, 1.0, torch.where(waves > low, scaling["factor"], factors))
        writer.add_tensor("rope_freqs.weight", factors.float().numpy())
