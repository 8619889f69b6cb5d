"""A tiny random model of every family, as transformers builds and saves it: the oracle of its own checkpoint.

Weights are drawn so that layers outweigh the embedding, norms vary, and every switch of a family matters; the
contexts of tests are longer than the windows here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

SHAPE = {
    "vocab_size": 160,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
WINDOW, LENGTH = 24, 70  # tokens of a window, and of the text that is compared
HALF = 8  # turned pairs of a head
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0 + i / 20 for i in range(HALF)],
    "long_factor": [1.0 + i / 2 for i in range(HALF)],
    "original_max_position_embeddings": 128,
}
GEMMA = {"head_dim": 32, "sliding_window": WINDOW, "tie_word_embeddings": True}
GEMMA4 = {"num_hidden_layers": 8, "layer_types": ["sliding_attention", "full_attention"] * 4,
          "global_head_dim": 48, "final_logit_softcapping": 3.0}  # fmt: skip
MOE = {"num_experts": 8, "num_experts_per_tok": 3}


def rope(**scaling: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": 10000.0, **scaling}}


# Name -> transformers' configuration class without "Config", its model class's, and what differs from SHAPE.
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-biased": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-3": ("Llama", rope(**LLAMA3, original_max_position_embeddings=32)),
    "llama-linear": ("Llama", rope(rope_type="linear", factor=4.0)),
    "llama-yarn": ("Llama", rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "mistral": ("Mistral", {"sliding_window": None, "head_dim": 32}),
    "mistral-windowed": ("Mistral", {"sliding_window": WINDOW}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen2-windowed": ("Qwen2", {"use_sliding_window": True, "sliding_window": WINDOW,
                                 "max_window_layers": 2}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "smollm2": ("Llama", {"tie_word_embeddings": True, "num_attention_heads": 3, "num_key_value_heads": 1,
                          "hidden_size": 96}),
    "smollm3": ("SmolLM3", {"tie_word_embeddings": True}),
    "phi3": ("Phi3", {"sliding_window": WINDOW}),
    "phi3-long": ("Phi3", {"original_max_position_embeddings": 128} | rope(**LONGROPE)),
    "phi4-mini": ("Phi3", {"head_dim": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
                           "tie_word_embeddings": True} | rope(partial_rotary_factor=0.75)),
    "granite": ("Granite", {"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0,
                            "attention_multiplier": 0.0625}),
    "olmo2": ("Olmo2", {}),
    "gemma2": ("Gemma2", GEMMA | {"query_pre_attn_scalar": 24, "attn_logit_softcapping": 5.0,
                                  "final_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3Text", GEMMA | {"num_hidden_layers": 7, "query_pre_attn_scalar": 24}),
    # as its small models are: layers are told of a token once more, the last ones share keys and values
    "gemma4-small": ("Gemma4Text", GEMMA | GEMMA4 | {"num_kv_shared_layers": 4, "use_double_wide_mlp": True,
                     "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 160}),
    # and as its large ones: where a layer sees all, keys are the values
    "gemma4-large": ("Gemma4Text", GEMMA | GEMMA4 | {"num_global_key_value_heads": 1,
                     "attention_k_eq_v": True, "hidden_size_per_layer_input": 0}),
    "gemma4-moe": ("Gemma4Text", GEMMA | GEMMA4 | {"hidden_size_per_layer_input": 0, "enable_moe_block": True,
                   "num_experts": 8, "top_k_experts": 3, "moe_intermediate_size": 32}),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3-moe": ("Qwen3Moe", MOE | {"head_dim": 32, "moe_intermediate_size": 32, "norm_topk_prob": True}),
    "olmoe": ("Olmoe", MOE),
    "gpt-oss": ("GptOss", {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 32,
                           "sliding_window": WINDOW, "attention_bias": True}
                | rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, truncate=False)),
}  # fmt: skip
MODELS = {"Gemma3Text": "Gemma3ForCausalLM", "Gemma4Text": "Gemma4ForCausalLM"}


def make_model(name: str, **changes: Any) -> Any:
    """A transformers model in float32 and eval mode."""
    import transformers

    kind, settings = FAMILIES[name]
    config = getattr(transformers, f"{kind}Config")(**SHAPE | settings | changes, attn_implementation="eager")
    config._experts_implementation = "eager"  # the others take no float64
    torch.manual_seed(3)
    model = getattr(transformers, MODELS.get(kind, f"{kind}ForCausalLM"))(config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() == 1:  # gains and biases
                centre = 0.0 if "bias" in parameter_name or kind in ("Gemma2", "Gemma3Text") else 1.0
                parameter.copy_(centre + 0.2 * torch.randn(parameter.shape))
                if kind == "Gemma4Text" and "q_norm" in parameter_name:
                    parameter *= 0.2  # which scales scores there
            else:
                parameter.copy_(torch.randn(parameter.shape) * 1.5 * parameter.shape[-1] ** -0.5)
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith("layer_scalar"):
                buffer.uniform_(0.5, 1.5)
    return model


def save(model: Any, folder: Path) -> Path:
    """A folder as the hub has it."""
    model.save_pretrained(folder)
    return folder


def text(model: Any, length: int = LENGTH) -> list[int]:
    """Random tokens."""
    generator = torch.Generator().manual_seed(11)
    return torch.randint(3, model.config.vocab_size, (length,), generator=generator).tolist()


def logits_of(model: Any, tokens: list[int]) -> torch.Tensor:
    """What transformers computes: [tokens, vocabulary]."""
    with torch.inference_mode():
        return model(torch.tensor([tokens]), use_cache=False).logits[0]
