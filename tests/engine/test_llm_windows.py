"""A loaded model with two page kinds, from file to answer: Gemma's layers with and without a window."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine import LLM, Delta, EngineConfig, Finish, Message, Request, SamplingParams
from tests.tiny_models import make_spm

from .models.family_gguf import write_gguf
from .models.tiny_families import WINDOW, make_model, save

QUESTIONS = (
    "What is the opposite of hot?",
    "The quick brown fox jumps over the lazy dog, does it not?",
    "Why?",
)
NUM_TOKENS = 60  # more than two windows
# What differs from the tiny models; how many layers with pages of each kind.
CHANGES = {"gemma3": {"query_pre_attn_scalar": 32}, "gemma4-small": {"vocab_size_per_layer_input": 448}}
LAYERS = {"gemma3": (1, 6), "gemma4-small": (2, 2)}


@pytest.mark.parametrize("backend", ["reference", "numba"])
@pytest.mark.parametrize("family", CHANGES)
def test_answers_beyond_the_window_are_transformers_own(tmp_path: Path, family: str, backend: str) -> None:
    model = make_model(family, vocab_size=448, **CHANGES[family])
    path = write_gguf(model, save(model, tmp_path), tmp_path / "tiny.gguf", make_spm()[0])
    llm = LLM.load(path, EngineConfig(backend=backend, context_length=256, threads=2))
    try:
        full, window = llm.plan.kinds
        assert (full.window, window.window) == (0, WINDOW)
        assert (len(full.layers), len(window.layers)) == LAYERS[family]
        assert full.bytes_per_block / len(full.layers) == (1.5 if family == "gemma4-small" else 1) * (
            window.bytes_per_block / len(window.layers)
        )
        params = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True)
        asked = [(Message("user", question),) for question in QUESTIONS]
        streams = [llm.submit(Request(messages, params, owner="me")) for messages in asked]
        for messages, stream in zip(asked, streams, strict=True):
            *deltas, finish = stream
            assert isinstance(finish, Finish) and not finish.error
            tokens = [i for delta in deltas if isinstance(delta, Delta) for i in delta.token_ids]
            assert len(tokens) == NUM_TOKENS
            if backend == "reference":
                assert tokens == greedy(model, llm.prompt(messages))
        assert llm.stats().used_blocks == 0
    finally:
        llm.close()


def greedy(model: torch.nn.Module, prompt: list[int]) -> list[int]:
    """transformers' own answer."""
    tokens = list(prompt)
    with torch.inference_mode():
        for _ in range(NUM_TOKENS):
            tokens.append(int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    return tokens[len(prompt) :]
