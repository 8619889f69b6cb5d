"""Perplexity is what transformers' own logits make of the same windows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import BadRequest, EngineConfig, UnsupportedModel, perplexity
from engine.checkpoints import open_checkpoint
from engine.scoring import STEP, split
from engine.text.tokenizer import Tokenizer
from tests.tiny_folders import write_tiny_folder
from tests.tiny_models import CORPUS, write_tiny_gguf

EXACT = EngineConfig(backend="reference")
TEXT = "\n".join(CORPUS * 4)


def expected(model: Any, windows: list[list[int]]) -> tuple[float, int]:
    """(perplexity, how many tokens were scored), by transformers."""
    scores: list[float] = []
    for ids in windows:
        logits = model.double()(torch.tensor([ids])).logits[0, :-1].log_softmax(-1)
        scores += logits.gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()
    return math.exp(-sum(scores) / len(scores)), len(scores)


@pytest.mark.parametrize("context_length", [80, 512])
@pytest.mark.parametrize("tokenizer", ["bpe", "spm"])
def test_it_is_transformers_own(tmp_path: Path, tokenizer: str, context_length: int) -> None:
    path = tmp_path / "tiny.gguf"
    model = write_tiny_gguf(path, tokenizer=tokenizer, context_length=context_length).model
    with open_checkpoint(path) as checkpoint:
        words = Tokenizer.of(checkpoint)
    start = [words.bos_id] if words.add_bos else []
    ids = words.encode(TEXT, special=False)
    windows = split(ids, start, context_length)
    heard: list[tuple[str, float]] = []
    found = perplexity(path, TEXT, EXACT, lambda *said: heard.append(said))
    wanted, scored = expected(model, windows)
    assert found.perplexity == pytest.approx(wanted, rel=1e-4)
    assert (found.num_tokens, found.num_scored) == (len(ids), scored)
    assert (found.num_windows, found.window) == (len(windows), context_length)
    assert len(windows) > 1 and (context_length == 80) == (max(map(len, windows)) < STEP)
    assert heard[-1] == ("text", 1.0) and ("weights", 1.0) in heard


def test_windows_hold_all_of_a_text_and_begin_alike() -> None:
    assert split(range(7), [9], 4) == [[9, 0, 1, 2], [9, 3, 4, 5], [9, 6]]
    assert split(range(7), [], 3) == [[0, 1, 2], [3, 4, 5]]  # alone, 6 has nothing before it


def test_quantizing_shows(tmp_path: Path) -> None:
    write_tiny_folder(tmp_path, dtype=torch.bfloat16)
    plain, rounded = (
        perplexity(tmp_path, TEXT, EngineConfig(backend="reference", quantization=to)).perplexity
        for to in ("none", "int4")
    )
    assert 0 < abs(rounded / plain - 1) < 0.5


def test_what_cannot_be_scored(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf").path
    with pytest.raises(BadRequest, match="The text is too short: it has 1 of at least 16 tokens"):
        perplexity(path, "a", EXACT)
    with pytest.raises(UnsupportedModel, match="Only a model's own files can be gptq"):
        perplexity(path, TEXT, EngineConfig(quantization="gptq"))
