"""A model that transformers' code computes, loaded and asked: alone, in company, and with what is cached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import LLM, Delta, EngineConfig, Message, Request, SamplingParams, UnsupportedModel
from engine.inspection import inspect_checkpoint
from engine.scoring import perplexity
from tests.tiny_models import CORPUS
from tests.tiny_tokenizers import make_tokenizer, write_tokenizer

from .models.tiny_architectures import WINDOW, make_architecture, make_config
from .test_llm import ask, listen

CONFIG = EngineConfig(num_chats=3, max_num_seqs=4, max_step_tokens=48, context_length=256)
QUESTIONS = (
    "What is the opposite of hot?",
    "The quick brown fox jumps over the lazy dog, does it not?",
    "Why?",
)
NUM_TOKENS = 2 * WINDOW


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fallback")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    """Cohere 2, three of four layers with a window."""
    config, tokens = make_config("cohere2"), make_tokenizer("qwen2")
    config.vocab_size, config.num_hidden_layers = tokens.get_vocab_size() + 7, 4
    config.layer_types = ["sliding_attention"] * 3 + ["full_attention"]
    config.bos_token_id, config.eos_token_id = (tokens.token_to_id(text) for text in ("<s>", "<|im_end|>"))
    config.logit_scale = 1.0
    made = make_architecture(config)
    made.save_pretrained(folder)
    write_tokenizer(folder, "qwen2")
    return made


@pytest.fixture(scope="module")
def llm(folder: Path, model: Any) -> Iterator[LLM]:
    loaded = LLM.load(folder, CONFIG)
    yield loaded
    loaded.close()


def greedy(model: Any, prompt: list[int]) -> list[int]:
    """transformers' own answer."""
    tokens = list(prompt)
    with torch.inference_mode():
        for _ in range(NUM_TOKENS):
            tokens.append(int(model(torch.tensor([tokens]), use_cache=False).logits[0, -1].argmax()))
    return tokens[len(prompt) :]


def test_answers_are_transformers_own(llm: LLM, model: Any) -> None:
    assert [kind.window for kind in llm.plan.kinds] == [0, WINDOW]
    params = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, ignore_eos=True)
    asked = [(Message("user", question),) for question in QUESTIONS]
    theirs = [greedy(model, llm.prompt(messages)) for messages in asked]
    streams = [llm.submit(Request(messages, params, owner="together")) for messages in asked]
    together = [
        [i for part in stream if isinstance(part, Delta) for i in part.token_ids] for stream in streams
    ]
    assert together == theirs
    assert len(set(map(tuple, theirs))) == len(theirs), "the model says something"
    for question, expected in zip(QUESTIONS, theirs, strict=True):
        assert listen(llm, ask(question, max_tokens=NUM_TOKENS))[1] == expected
    assert llm.stats().used_blocks == 0 and llm.backend == "reference"


def test_what_is_cached_changes_nothing(llm: LLM, model: Any) -> None:
    system = " ".join(f"Rule {i}: be brief." for i in range(6))
    first = ask(QUESTIONS[0], system, max_tokens=NUM_TOKENS)
    expected = greedy(model, llm.prompt(first.messages))
    uncached, cached = (listen(llm, first) for _ in range(2))
    assert cached[2].usage.cached_tokens >= 48
    assert uncached[1] == cached[1] == expected


def test_texts_are_scored(folder: Path, model: Any, llm: LLM) -> None:
    text = " ".join(CORPUS)[:300]
    found = perplexity(folder, text, CONFIG)
    ids = llm.tokenizer.encode(text, special=False)
    with torch.inference_mode():
        rows = model(torch.tensor([ids[: found.window]]), use_cache=False).logits[0].log_softmax(-1)
    assert found.num_windows == 1
    scores = -rows[:-1].gather(1, torch.tensor(ids[1 : found.window])[:, None])
    assert found.perplexity == pytest.approx(float(scores.mean().exp()), rel=1e-4)


@pytest.mark.parametrize("settings", [{"backend": "numba"}, {"quantization": "int4"}])
def test_there_is_one_way_to_compute_it(folder: Path, model: Any, settings: dict[str, str]) -> None:
    with pytest.raises(UnsupportedModel, match="cohere2, by transformers, is computed in plain torch"):
        LLM.load(folder, EngineConfig(**settings))  # type: ignore[arg-type]


def test_an_inspection_says_who_computes_it(folder: Path, model: Any) -> None:
    found = inspect_checkpoint(folder)
    assert (found.architecture, found.family) == ("cohere2", "cohere2, by transformers")
    assert found.num_layers == 4 and not found.problems
