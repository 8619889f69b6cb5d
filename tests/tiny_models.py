"""Tiny real models for tests: random weights, a small trained vocabulary, in GGUF as llama.cpp converts them.

`write_tiny_gguf` builds a transformers model, stores it through gguf-py (quantized, where asked) and puts the
stored weights, dequantized, back into it: so the transformers model is the exact oracle of the file. gguf-py
cannot quantize the K types; their blocks are random bytes with sensible scales. Same arguments, same bytes.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] }}"
    "{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CORPUS = (
    "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all.",
    "What is the opposite of hot? Cold. What is 2+2? It is 4; 1234567890 is a number.",
    "def answer(question: str) -> str:\n    return 'forty-two' if question else \"nothing\"",
    "It isn't the first time that they're asking; we've been told so, and I'd say they'll ask again.",
    "Ein schöner Tag, déjà vu, señor, naïve café. 你好,世界。こんにちは 🙂 👩‍🚀",
    "There is nothing either good or bad, but thinking makes it so. The rest is silence.",
)
# Types of single matrices that differ from the file's own, as in the files people have.
MIXES = {
    "Q4_0": {"token_embd": "Q8_0"},
    "Q4_1": {"token_embd": "Q8_0"},
    "Q4_K": {"attn_v": "Q6_K", "ffn_down": "Q6_K", "output": "Q6_K"},
}
NAMES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class TinyModel:
    """A file and its oracles: a transformers model (float32; .double() for more) and a tokenizer."""

    path: Path
    model: Any  # LlamaForCausalLM or Qwen2ForCausalLM in eval mode
    tokenizer: Any  # tokenizers.Tokenizer ("bpe") or sentencepiece.SentencePieceProcessor ("spm")


def write_tiny_gguf(
    path: Path,
    *,
    architecture: str = "llama",  # "llama" or "qwen2"
    tokenizer: str = "bpe",  # "bpe" or "spm"
    quantization: str = "F32",  # F32 F16 BF16 Q4_0 Q4_1 Q8_0 Q4_K Q6_K; see MIXES
    width: int | None = None,  # None: 64, or 256 for the K types, which need it
    tied: bool = True,  # the output head is the embedding
    context_length: int = 512,
    template: str | None = TEMPLATE,
    seed: int = 0,
) -> TinyModel:
    """Write a model of 2 layers with 4 query and 2 key heads."""
    pre = "qwen2" if architecture == "qwen2" else "smollm"
    vocabulary, oracle = make_bpe(pre) if tokenizer == "bpe" else make_spm()
    width = width or (256 if quantization.endswith("_K") else 64)
    model = _make_model(architecture, len(vocabulary["tokens"]), width, tied, context_length)
    writer = gguf.GGUFWriter(path, architecture)
    _write_config(writer, model.config)
    write_vocabulary(writer, vocabulary, template)
    random = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = _write_tensor(writer, name, parameter, quantization, model.config, random)
            parameter.copy_(torch.from_numpy(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return TinyModel(path, model, oracle)


def _make_model(architecture: str, vocab_size: int, width: int, tied: bool, context_length: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    classes = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}
    config_class, model_class = classes[architecture]
    config = config_class(
        vocab_size=vocab_size,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context_length,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        tie_word_embeddings=tied,
        attn_implementation="eager",
    )
    return model_class(config).eval()


def _write_config(writer: Any, config: Any) -> None:
    writer.add_name(f"tiny {config.model_type}")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if config.model_type == "llama":
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)


def write_vocabulary(writer: Any, vocabulary: dict[str, Any], template: str | None = TEMPLATE) -> None:
    writer.add_tokenizer_model(vocabulary["model"])
    writer.add_tokenizer_pre(vocabulary["pre"])
    writer.add_token_list(vocabulary["tokens"])
    writer.add_token_types(vocabulary["types"])
    if vocabulary["model"] == "gpt2":
        writer.add_token_merges(vocabulary["merges"])
    else:
        writer.add_token_scores(vocabulary["scores"])
        writer.add_unk_token_id(0)
    writer.add_bos_token_id(vocabulary["bos"])
    writer.add_eos_token_id(vocabulary["eos"])
    writer.add_add_bos_token(vocabulary["model"] == "llama")
    if (template := vocabulary.get("template", template)) is not None:
        writer.add_chat_template(template)


def _write_tensor(
    writer: Any, name: str, parameter: Any, quantization: str, config: Any, random: np.random.Generator
) -> np.ndarray:
    """Draw a tensor's values, store them, and give back what a reader gets, in transformers' row order."""
    parts = name.split(".")  # model.layers.0.self_attn.q_proj.weight
    short = NAMES[parts[-2]]
    stored_name = f"blk.{parts[2]}.{short}.{parts[-1]}" if "layers" in parts else f"{short}.{parts[-1]}"
    shape = tuple(parameter.shape)
    if len(shape) == 1:
        values = random.normal(0 if parts[-1] == "bias" else 1, 0.2, shape).astype(np.float32)
        writer.add_tensor(stored_name, values)
        return values
    kind = gguf.GGMLQuantizationType[MIXES.get(quantization, {}).get(short, quantization)]
    # Layers outweigh the embedding, so that greedy text wanders: 40 different tokens in 60.
    spread = 2 * shape[1] ** -0.5
    raw = random_rows(kind.name, shape, spread, random)
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(short)
    stored = neighbours(raw, heads) if heads and config.model_type == "llama" else raw
    writer.add_tensor(stored_name, stored, raw_dtype=kind)
    return gguf.quants.dequantize(raw, kind)


def neighbours(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows in halves order to rotated pairs as neighbours, as llama.cpp's converter stores q and k."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def random_rows(
    type_name: str, shape: tuple[int, int], spread: float, random: np.random.Generator
) -> np.ndarray:
    """Rows of values with this standard deviation in a GGUF type, as gguf-py's dequantize takes them."""
    if type_name not in ("Q4_K", "Q6_K"):
        values = random.normal(0, spread, shape).astype(np.float32)
        return gguf.quants.quantize(values, gguf.GGMLQuantizationType[type_name])
    blocks = shape[0] * shape[1] // 256
    body = random.integers(0, 256, (blocks, 140 if type_name == "Q4_K" else 208), np.uint8)
    near_one = random.uniform(0.7, 1.3, (blocks, 2))
    if type_name == "Q4_K":  # scale and minimum, then 12 bytes of 6-bit scales and minima, 128 of nibbles
        scales = (near_one * [spread / 257, spread * 7.5 / 257]).astype(np.float16).view(np.uint8)
        return np.concatenate([scales, body], 1).reshape(shape[0], -1)
    scale = (near_one[:, :1] * spread / 1370).astype(np.float16).view(np.uint8)
    return np.concatenate([body, scale], 1).reshape(shape[0], -1)


@cache
def make_bpe(pre: str) -> tuple[dict[str, Any], Any]:
    """A byte-level BPE of 448 tokens, pre-tokenizer "smollm" or "qwen2": what GGUF says, a Tokenizer."""
    from tokenizers import (
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers as pre_tokenizer_kinds,
        trainers,
    )

    tokenizer = Tokenizer(models.BPE())
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
        first = pre_tokenizer_kinds.Split(Regex(QWEN2_SPLIT), "isolated")
    else:
        first = pre_tokenizer_kinds.Digits(individual_digits=True)
    bytes_level = pre_tokenizer_kinds.ByteLevel(add_prefix_space=False, use_regex=pre != "qwen2")
    tokenizer.pre_tokenizer = pre_tokenizer_kinds.Sequence([first, bytes_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=448,
        special_tokens=[AddedToken(text, special=True) for text in SPECIAL],
        initial_alphabet=sorted(pre_tokenizer_kinds.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    merges = [
        m if isinstance(m, str) else " ".join(m) for m in json.loads(tokenizer.to_str())["model"]["merges"]
    ]
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    types = [gguf.TokenType.CONTROL if token in SPECIAL else gguf.TokenType.NORMAL for token in tokens]
    facts = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "types": types,
        "merges": merges,
        "bos": 1,
        "eos": 2,
    }
    return facts, tokenizer


@cache
def make_spm() -> tuple[dict[str, Any], Any]:
    """A SentencePiece BPE of 448 pieces with byte fallback, like Llama 2's: what GGUF says, a processor."""
    import sentencepiece

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in CORPUS for line in text.split("\n")]),
        model_writer=trained,
        model_type="bpe",
        vocab_size=448,
        byte_fallback=True,
        character_coverage=0.98,
        control_symbols=SPECIAL[1:],
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        minloglevel=2,
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
    kinds = (
        (processor.is_unknown, gguf.TokenType.UNKNOWN),
        (processor.is_control, gguf.TokenType.CONTROL),
        (processor.is_byte, gguf.TokenType.BYTE),
        (lambda i: True, gguf.TokenType.NORMAL),
    )
    ids = range(processor.get_piece_size())
    facts = {
        "model": "llama",
        "pre": "default",
        "tokens": [processor.id_to_piece(i) for i in ids],
        "scores": [processor.get_score(i) for i in ids],
        "types": [next(kind for is_kind, kind in kinds if is_kind(i)) for i in ids],
        "bos": processor.bos_id(),
        "eos": processor.piece_to_id("<|im_end|>"),
    }
    return facts, processor
