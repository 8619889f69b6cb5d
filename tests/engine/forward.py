"""What the forward pass is held to: a text, transformers' Llama on a GGUF file's weights, a distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

TEXT = """The word octavo comes from the craft of the printer. A large sheet of paper is printed with eight
pages on each side, and then folded three times, so that it becomes eight leaves. Each fold halves
the size of the page and doubles their number. A sheet that is folded once is called a folio, and
one that is folded twice is called a quarto. The octavo was the first book that a person could carry
in a pocket. In Venice, around the year 1500, a printer named Aldus made small octavo books of the
Greek and Latin poets, so that people could read them on a journey. Before that, a book was a heavy
thing that lay on a desk in a library, and the reader had to come to it. What made the small book
possible was a new way of using memory, one might say: the same text, in less space, in pieces that
could be bound in any order and found again by their number. The idea is still with us. When a
computer keeps what it has read in pages of one size, it can share them, move them, and put them
aside, without ever copying the whole. It is no longer necessary to keep everything in one long row."""


NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def transformers_llama(path: Path) -> torch.nn.Module:
    """transformers' own Llama with a GGUF file's weights, dequantized by gguf-py: the independent oracle."""
    from transformers import LlamaConfig, LlamaForCausalLM

    reader = gguf.GGUFReader(path)
    tensors = {
        t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in reader.tensors
    }

    def field(name: str) -> float:
        return reader.fields[f"llama.{name}"].contents()

    config = LlamaConfig(
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=field("embedding_length"),
        intermediate_size=field("feed_forward_length"),
        num_hidden_layers=field("block_count"),
        num_attention_heads=field("attention.head_count"),
        num_key_value_heads=field("attention.head_count_kv"),
        max_position_embeddings=field("context_length"),
        rms_norm_eps=field("attention.layer_norm_rms_epsilon"),
        rope_theta=field("rope.freq_base"),
        tie_word_embeddings="output.weight" not in tensors,
        attn_implementation="eager",
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.load_state_dict(transformers_state(tensors, config), assign=True, strict=True)
    # buffers made on the meta device have no values
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return model.eval()


def transformers_state(tensors: dict[str, torch.Tensor], config: Any) -> dict[str, torch.Tensor]:
    """GGUF's tensors under transformers' names, query and key rows in transformers' order."""
    state = {
        "model.embed_tokens.weight": tensors["token_embd.weight"],
        "model.norm.weight": tensors["output_norm.weight"],
        "lm_head.weight": tensors.get("output.weight", tensors["token_embd.weight"]),
    }
    rotated = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    for i in range(config.num_hidden_layers):
        for theirs, ours in NAMES.items():
            weight = tensors[f"blk.{i}.{ours}.weight"]
            if heads := rotated.get(ours):
                # llama.cpp stores these rows for a rope over neighbours; transformers' turns halves
                weight = weight.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)
            state[f"model.layers.{i}.{theirs}.weight"] = weight
    return state


def divergence(reference: torch.Tensor, ours: torch.Tensor) -> np.ndarray:
    """KL(reference || ours) in nats at each position [T, vocabulary] -> [T]."""
    p, q = reference.double().log_softmax(-1), ours.double().log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1).numpy()
