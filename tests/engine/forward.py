"""The model's forward pass without scheduler or service: tokens in, logits of every position out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from engine.batch import make_batch
from engine.checkpoints import read_gguf
from engine.kv_cache import make_kv_cache
from engine.models import Buffers, ModelConfig, load_decoder
from kernels import Ops

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


class Forward:
    """A loaded decoder with a pool of its own; a sequence's blocks are 1, 2, 3 ... unless told otherwise."""

    def __init__(self, path: Path, ops: Ops, max_tokens: int = 512, num_blocks: int = 96) -> None:
        with read_gguf(path) as checkpoint:
            config = ModelConfig.from_gguf(checkpoint)
            self.model = load_decoder(checkpoint, config, ops, num_blocks * ops.block_size, lambda part: None)
        self.ops, self.block_size = ops, ops.block_size
        self.cache = make_kv_cache(config, ops, num_blocks, self.block_size)
        self.batch = make_batch(max_tokens, 16, num_blocks, max_tokens, 1)
        self.buffers = Buffers.make(config, ops, max_tokens, max_tokens)
        self.replay = ops.record(lambda: self.model.forward(ops, self.batch, self.cache.layers, self.buffers))

    def __call__(self, *parts: tuple[Sequence[int], int, Sequence[int]]) -> list[torch.Tensor]:
        """One step over (new token ids, tokens already computed, block table) of each -> its logits."""
        batch, first = self.batch, 0
        for s, (token_ids, start, table) in enumerate(parts):
            last = first + len(token_ids)
            places, blocks = torch.arange(start, start + len(token_ids)), torch.tensor(table)
            batch.token_ids[first:last], batch.positions[first:last] = torch.tensor(token_ids), places
            batch.block_tables[0][s, : len(blocks)] = blocks
            batch.slots[0][first:last] = (
                blocks[places // self.block_size] * self.block_size + places % self.block_size
            )
            batch.cu_lens[s + 1], batch.context_lens[s] = last, start + len(token_ids)
            first = last
        batch.logit_rows[:first] = torch.arange(first)
        batch.counts[:] = torch.tensor([first, len(parts), first])
        self.replay()
        return list(self.buffers.logits[:first].clone().split([len(ids) for ids, _, _ in parts]))


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
