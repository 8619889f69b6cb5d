"""Tiny models as folders: transformers makes and saves model and tokenizer, so it is the oracle of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.tiny_models import TEMPLATE
from tests.tiny_tokenizers import make_tokenizer, write_tokenizer

SHAPE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}


def write_tiny_folder(
    folder: Path,
    *,
    tokenizer: str = "llama3",  # see tiny_tokenizers.KINDS
    template: str | None = TEMPLATE,
    dtype: torch.dtype = torch.float32,
    padding: int = 7,  # rows of the embedding without a token
    shards: bool = False,
    wrapped: bool = False,  # a model that takes images
) -> Any:
    """Write a model of 2 layers; the transformers model, in float32 and eval mode."""
    from transformers import LlamaConfig, LlamaForCausalLM, LlavaConfig, LlavaForConditionalGeneration

    torch.manual_seed(0)
    made = make_tokenizer(tokenizer)
    ids = {
        f"{name}_token_id": made.token_to_id(text) for name, text in (("bos", "<s>"), ("eos", "<|im_end|>"))
    }
    settings = SHAPE | ids | {"vocab_size": made.get_vocab_size() + padding}
    model: Any
    if wrapped:
        config = LlavaConfig(
            text_config=settings | {"model_type": "llama"},
            vision_config=VISION | {"model_type": "clip_vision_model"},
            image_token_index=3,
            tie_word_embeddings=False,
        )
        model = LlavaForConditionalGeneration(config)
    else:
        model = LlamaForCausalLM(LlamaConfig(**settings))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(torch.randn(parameter.shape) * 2 * parameter[0].numel() ** -0.5)
    model = model.to(dtype).eval()
    model.save_pretrained(folder, max_shard_size="60KB" if shards else "1GB")
    write_tokenizer(folder, tokenizer, template)
    return model.float()
