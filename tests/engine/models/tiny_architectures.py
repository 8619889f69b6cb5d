"""A tiny random model of every architecture that transformers knows as a decoder: a few sizes, whatever each
calls them, and for some what no general rule finds.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

WINDOW = 24
# What transformers' configurations call a size -> the size.
SIZES: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "vocab_size_per_layer_input"), 160),
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embedding_size", "word_embed_proj_dim"), 64),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "decoder_ffn_dim", "encoder_ffn_dim", "n_inner"), 96),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), 2),
    **dict.fromkeys(("decoder_layers", "encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "encoder_attention_heads"), 4),
    **{"num_key_value_heads": 2, "head_dim": 16, "rotary_dim": 8, "hidden_size_per_layer_input": 16},
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 256),
    **dict.fromkeys(("sliding_window", "attention_window"), WINDOW),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token"), 2),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 32),
    **{"expert_ffn_hidden_size": 32, "n_group": 1, "topk_group": 1},
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank"), 32),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"), 16),
    **{"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "is_decoder": True},
}
BOTH = ["full_attention", "sliding_attention"]
SPECIAL: dict[str, dict[str, Any]] = {
    "cohere_compass_text": {"layer_types": BOTH, "rope_parameters": {
        kind: {"rope_type": "default", "rope_theta": 1e4} for kind in BOTH}},
    "cpmant": {"dim_head": 16, "dim_ff": 96},
    "ctrl": {"dff": 96},
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "kv_n_heads": 2, "clip_qkv": 8.0},
             "ffn_config": {"ffn_hidden_size": 96, "moe_num_experts": 4, "moe_top_k": 2}},
    "dots1": {"n_shared_experts": 1, "layer_types": BOTH},
    "dots3_note_text": {"num_key_value_heads": 4},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gemma4_assistant": {"text_config": {"model_type": "gemma4_text", "hidden_size_per_layer_input": 0,
                                         "vocab_size_per_layer_input": 0}},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"num_key_value_heads": 4},
    "reformer": {"axial_pos_embds": False},
    "roc_bert": {"shape_embed_dim": 16, "pronunciation_embed_dim": 16},
    "xmod": {"default_language": "en_XX"},
    "youtu": {"tie_word_embeddings": False},
}  # fmt: skip
MOST_PARAMETERS = 2_000_000


def make_config(kind: str) -> Any:
    """transformers' configuration of a tiny one."""
    from transformers import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    known = {each.name for each in fields(made)} | set(made.attribute_map)
    sizes = {made.attribute_map.get(name, name): size for name, size in SIZES.items() if name in known}
    if "kv_lora_rank" in known:
        sizes["num_key_value_heads"] = sizes["num_attention_heads"]
    return made(**sizes | SPECIAL.get(kind, {}))


def make_architecture(config: Any) -> Any:
    """A model in float32 and eval mode, its weights drawn so that layers say something."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    model_class = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    config._attn_implementation = "eager"
    with torch.device("meta"):
        size = sum(each.numel() for each in model_class(config).parameters())
    assert size < MOST_PARAMETERS, (
        f"{config.model_type} has {size:,} parameters: what does it call its sizes?"
    )
    torch.manual_seed(3)
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape) * 1.5 * parameter.shape[-1] ** -0.5)
            else:
                parameter.add_(0.1 * (parameter.abs().mean() or 1.0) * torch.randn(parameter.shape))
    return model
