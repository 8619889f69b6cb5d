"""The real starter model against transformers: the reference word for word, Numba in distribution."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import kernels
from engine.checkpoints import read_gguf
from engine.running.forward import Forward
from engine.text.tokenizer import Tokenizer

from .forward import TEXT, divergence, transformers_llama

BLOCKS = list(range(1, 40))


@pytest.fixture(scope="module")
def oracle(starter_model: Path) -> torch.nn.Module:
    return transformers_llama(starter_model)


@pytest.fixture(scope="module")
def tokenizer(starter_model: Path) -> Tokenizer:
    with read_gguf(starter_model) as checkpoint:
        return Tokenizer.of(checkpoint)


@pytest.fixture(scope="module")
def numba(starter_model: Path) -> Iterator[Forward]:
    ops = kernels.select("cpu", "numba", threads=2)
    yield Forward.of(starter_model, ops)
    ops.close()


def test_greedy_text_through_the_reference_is_transformers_own(
    starter_model: Path, oracle: torch.nn.Module, tokenizer: Tokenizer
) -> None:
    forward = Forward.of(starter_model, kernels.select("cpu", "reference", dtype=torch.float32))
    prompt = tokenizer.encode("The capital of France is", special=True)
    tokens = list(prompt)
    (logits,) = forward((prompt, 0, BLOCKS))
    for _ in range(24):
        tokens.append(int(logits[-1].argmax()))
        (logits,) = forward(([tokens[-1]], len(tokens) - 1, BLOCKS))
    theirs = oracle.generate(
        torch.tensor([prompt]), do_sample=False, max_new_tokens=24, min_new_tokens=24, pad_token_id=0
    )
    assert tokens == theirs[0].tolist()


def test_the_processors_kernels_stay_close_to_float32(
    numba: Forward, oracle: torch.nn.Module, tokenizer: Tokenizer
) -> None:
    tokens = tokenizer.encode(TEXT, special=False)[:256]
    assert len(tokens) >= 200
    with torch.inference_mode():
        reference = oracle(torch.tensor([tokens])).logits[0]
    (ours,) = numba((tokens, 0, BLOCKS))
    assert divergence(reference, ours).mean() <= 0.005
    assert (reference.argmax(-1) == ours.argmax(-1)).float().mean() >= 0.95


def test_one_token_at_a_time_gives_the_same_bits_as_a_prompt(numba: Forward, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(TEXT, special=False)[:100]
    (whole,) = numba((tokens, 0, BLOCKS))
    single = [numba(([token], i, BLOCKS))[0] for i, token in enumerate(tokens)]
    assert torch.equal(whole, torch.cat(single))
    beside = [(tokens[:n], 0, [41 + 6 * i + j for j in range(6)]) for i, n in enumerate((3, 77, 31))]
    (*others, last) = numba(*beside, (tokens[40:], 40, BLOCKS))  # a chunk after a cached prefix, in company
    assert torch.equal(last, whole[40:])
    for (ids, _, _), logits in zip(beside, others, strict=True):
        assert torch.equal(logits, whole[: len(ids)])
