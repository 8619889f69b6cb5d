"""A whole engine that draws its tokens on the card says what one says that draws them on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.types import SamplingParams
from kernels.ops import Sampler as SamplerProtocol
from kernels.reference import ReferenceOps
from kernels.triton.sampling import Sampler
from tests.engine.ladder import Ladder, Outcome
from tests.tiny_models import write_tiny_gguf

PARAMS = {
    "greedy": SamplingParams(temperature=0),
    "plain": SamplingParams(temperature=1.2),
    "top-k": SamplingParams(temperature=1.0, top_k=5, min_p=0.02),
    "top-p": SamplingParams(temperature=1.5, top_p=0.8),
    "penalties": SamplingParams(temperature=1.0, top_p=0.9, repetition_penalty=1.3, presence_penalty=0.5),
}


class Drawing(ReferenceOps):
    """The reference, but tokens are drawn by the kernels."""

    def sampler(self, rows: int, vocabulary: int, slots: int) -> SamplerProtocol:  # type: ignore[override]
        return Sampler(self.device, rows, vocabulary, slots, tile=256, most=64, group=16)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("drawing") / "tiny.gguf").path


def said(ladder: Ladder) -> dict[str, Outcome]:
    for name, params in PARAMS.items():
        ladder.add(name, [5, 6, 7, 8], 3, params)
    return ladder.run()


def guess(limits: list) -> list[list[int]]:
    """Drafts, some of which are wrong."""
    return [([7, 8] if most > 1 else []) for _, most in limits]


def test_the_same_tokens(path: Path) -> None:
    there, here = (said(Ladder(path, ops, propose=guess)) for ops in (Drawing(), ReferenceOps()))
    assert {name: each.tokens for name, each in there.items()} == {n: e.tokens for n, e in here.items()}


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")
def test_logits_that_are_no_numbers_end_their_own_request(tmp_path: Path) -> None:
    ladder = Ladder(write_tiny_gguf(tmp_path / "untied.gguf", tied=False).path, Drawing())
    ladder.runner.model.embedding.matrix[9] = torch.nan
    ladder.add("broken", [4, 9], 2)
    ladder.add("sound", [4, 5], 1)
    outcomes = ladder.run()
    assert "no number for the token at position 2" in outcomes["broken"].error
    assert outcomes["broken"].error.endswith("came out of: the embedding.")
    assert not outcomes["sound"].error and len(outcomes["sound"].tokens) == 1
