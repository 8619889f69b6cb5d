"""Perplexity and divergence are what their formulas say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import quality
from benchmarks.sides import Side

from .fake_side import VOCABULARY
from .fakes import fake


def test_the_divergence_of_equal_distributions_is_nothing_whatever_is_added_to_the_logits() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 7))
    assert quality.divergence(logits, logits + 5) == pytest.approx(np.zeros(3), abs=1e-12)


def test_the_divergence_is_in_nats_with_the_reference_first() -> None:
    p, q = np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]])
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert quality.divergence(np.log(p), np.log(q)) == pytest.approx([expected])


def test_perplexity_is_the_number_of_equally_likely_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quality, "text_ids", lambda model: list(range(300)))
    monkeypatch.setattr(
        quality, "float_logits", lambda model: np.zeros((quality.POSITIONS, VOCABULARY), np.float32)
    )
    with Side(fake("llama.cpp", 1)) as side:
        found = quality.quality(side, 0)
    assert found["perplexity"] == pytest.approx(VOCABULARY)
    assert found["mean_kl"] == pytest.approx(0, abs=1e-12)
    assert found["tokens"] == 300


def test_the_text_is_long_enough(starter_model: Path) -> None:
    assert 1000 <= len(quality.text_ids(starter_model)) <= 2000
