"""Tokenizers for tests: the starter model's (49,152 tokens) and tiny ones of each kind."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from engine.checkpoints import read_gguf
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary_gguf import gguf_vocabulary
from tests.tiny_models import make_bpe, make_spm


def tiny_metadata(kind: str) -> dict[str, Any]:
    """What a GGUF says of 448 tokens: "smollm" and "qwen2" are BPE, "spm" is SentencePiece."""
    facts, _ = make_spm() if kind == "spm" else make_bpe(kind)
    keys = {"types": "token_type", "bos": "bos_token_id", "eos": "eos_token_id"}
    return {f"tokenizer.ggml.{keys.get(key, key)}": value for key, value in facts.items()}


def tokenizer_of(metadata: dict[str, Any]) -> Tokenizer:
    """A GGUF's tokenizer, from its keys."""
    return Tokenizer(gguf_vocabulary(metadata))


@cache
def tiny_tokenizer(kind: str) -> Tokenizer:
    return tokenizer_of(tiny_metadata(kind))


@cache
def starter_metadata(path: Path) -> dict[str, Any]:
    with read_gguf(path) as checkpoint:
        return checkpoint.metadata


@cache
def starter_tokenizer(path: Path) -> Tokenizer:
    return tokenizer_of(starter_metadata(path))
