"""Tiny tokenizer.json files of every kind that decoder families have, trained here by the tokenizers library.

llama3    bytes as letters, a regular expression cuts words, whole words are tokens first, bos put in front
qwen2     the same, text composed (NFC) first, no bos
prefix    the same as GPT-2 had it, a space put before every text
llama2    pieces, "▁" put before every text by a normalizer, bytes for unknown characters
phi3      the same, control tokens swallow the white space after them
mistral   pieces, "▁" put where a prompt begins only
always    pieces, "▁" put after control tokens, too
gemma     pieces, nothing put in front, runs of spaces are tokens
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from tests.tiny_models import CORPUS, QWEN2_SPLIT, TEMPLATE

KINDS = ("llama3", "qwen2", "prefix", "llama2", "phi3", "mistral", "always", "gemma")
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
_NORMALIZERS: dict[str, Any] = {
    "qwen2": normalizers.NFC(),
    "llama2": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "phi3": normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    "gemma": normalizers.Replace(" ", "▁"),
}
_letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
_words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2_SPLIT), "isolated"), _letters])
_PRE_TOKENIZERS: dict[str, Any] = {
    "llama3": _words,
    "qwen2": _words,
    "prefix": pre_tokenizers.ByteLevel(add_prefix_space=True),
    "mistral": pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
    "always": pre_tokenizers.Metaspace(prepend_scheme="always", split=True),
    "gemma": pre_tokenizers.Split(" ", "merged_with_previous"),
}


@cache
def make_tokenizer(kind: str) -> Tokenizer:
    """One of KINDS, with about 500 tokens."""
    is_bytes = kind in ("llama3", "qwen2", "prefix")
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = _letters if is_bytes else pre_tokenizers.Metaspace()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if is_bytes else []
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(CORPUS, trainer)
    model = json.loads(trained.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    tokens = [*SPECIAL, *([] if is_bytes else BYTES), *pieces]
    made = Tokenizer(
        models.BPE(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=[tuple(merge) for merge in model["merges"]],
            byte_fallback=not is_bytes,
            fuse_unk=not is_bytes,
            unk_token=None if is_bytes else "<unk>",
            ignore_merges=kind == "llama3",
        )
    )
    if kind in _NORMALIZERS:
        made.normalizer = _NORMALIZERS[kind]
    if kind in _PRE_TOKENIZERS:
        made.pre_tokenizer = _PRE_TOKENIZERS[kind]
    made.decoder = decoders.ByteLevel() if is_bytes else decoders.Replace("▁", " ")
    eats = {"rstrip": kind == "phi3", "normalized": False}
    made.add_special_tokens([AddedToken(token, special=True, **eats) for token in SPECIAL])
    made.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("<tool", normalized=False)])
    made.add_special_tokens([AddedToken("<mask>", special=True, lstrip=kind == "llama3", normalized=False)])
    if kind not in ("qwen2", "prefix"):
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
        )
    return made


def write_tokenizer(folder: Path, kind: str, template: str | None = TEMPLATE, **config: Any) -> Tokenizer:
    """tokenizer.json and tokenizer_config.json, as transformers writes them."""
    from transformers import PreTrainedTokenizerFast

    made = make_tokenizer(kind)
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="<|im_end|>", unk_token="<unk>", **config
    )
    theirs.chat_template = template
    theirs.save_pretrained(folder)
    return made
