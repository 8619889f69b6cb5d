"""Tokens drawn by the processor's kernels are those that engine/running/sampler.py draws from the same
logits, seed and position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.running.sampler import SamplingRow, sample
from engine.types import SamplingParams
from kernels import Draw
from kernels.cpu.sampling import CpuSampler
from kernels.cpu.threads import Team
from tests.kernels.draws import CASES, SEED, VOCABULARY, draw, wanted


@pytest.fixture(scope="module")
def team() -> Iterator[Team]:
    team = Team(2)
    yield team
    team.close()


def drawn(sampler: CpuSampler, logits: Tensor, draws: list[Draw]) -> list[int]:
    sampler._spare.fill(np.nan)
    out = torch.full((len(logits),), 2**30)
    sampler.set(draws)
    sampler.sample(logits, out)
    return out.tolist()


def compare(team: Team, logits: Tensor, **params: Any) -> list[int]:
    asked, positions = SamplingParams(**params), list(range(len(logits)))
    sampler = CpuSampler(team, len(logits), logits.shape[1], 1)
    found = drawn(sampler, logits, [draw(asked, at) for at in positions])
    assert found == wanted(logits, asked, positions)
    return found


@pytest.mark.parametrize("params", CASES.values(), ids=CASES)
@pytest.mark.parametrize("spread", [0.5, 3.0, 12.0])
def test_as_the_engine_draws(team: Team, params: dict[str, Any], spread: float) -> None:
    """From nearly even logits, where candidates are too many to be sorted, to steep ones, where few are."""
    torch.manual_seed(1)
    compare(team, torch.randn(4, VOCABULARY) * spread, **params)


@pytest.mark.parametrize(
    "params",
    [
        {"top_k": 30, "top_p": 1.0},  # fewer than that are likely
        {"top_k": 30, "top_p": 0.9999999},
        {"top_k": 200, "top_p": 1.0},
        {"top_k": 200, "top_p": 0.9, "min_p": 1e-6},
        {"top_p": 0.9999999},
        {"top_p": 1.0, "min_p": 1e-6},
    ],
    ids=str,
)
@pytest.mark.parametrize("spread", [0.2, 5.0])
def test_what_the_candidates_do_not_suffice_for(team: Team, params: dict[str, Any], spread: float) -> None:
    torch.manual_seed(2)
    compare(team, torch.randn(2, VOCABULARY) * spread, temperature=1.0, **params)


@pytest.mark.parametrize("params", [{"top_k": 100}, {"top_p": 0.5}, {"top_p": 0.5, "top_k": 250}], ids=str)
def test_equal_logits_come_in_the_vocabulary_s_order(team: Team, params: dict[str, Any]) -> None:
    logits = torch.zeros(3, VOCABULARY)
    logits[1, 50:] = -1
    logits[2, ::2] = 3
    compare(team, logits, temperature=1.0, **{"top_p": 1.0, **params})


def test_excluded_tokens_are_never_drawn(team: Team) -> None:
    logits = torch.full((2, VOCABULARY), -torch.inf)
    logits[0, :10], logits[1, 290:] = torch.randn(2, 10)
    for params in CASES.values():
        first, second = compare(team, logits, **params)
        assert first < 10 and second >= 290


@pytest.mark.parametrize(
    "wrong,where",
    [(torch.nan, 200), (torch.nan, slice(None)), (torch.inf, 200), (-torch.inf, slice(None))],
    ids=["one nan", "all nan", "infinite", "none possible"],
)
def test_logits_that_are_no_numbers(team: Team, wrong: float, where: int | slice) -> None:
    logits = torch.randn(3, VOCABULARY)
    logits[1, where] = wrong
    for name in ("greedy", "of all", "all three"):
        asked = SamplingParams(**CASES[name])
        found = drawn(CpuSampler(team, 3, VOCABULARY, 1), logits, [draw(asked, at) for at in range(3)])
        assert found[1] == -1
        assert [found[0], found[2]] == wanted(logits[[0, 2]], asked, [0, 2])


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_penalties(team: Team, temperature: float) -> None:
    params = SamplingParams(temperature, 0.9, 40, 0.0, 1.3, 0.7, 0.4)
    torch.manual_seed(3)
    logits, rng = torch.randn(6, VOCABULARY) * 4, np.random.default_rng(0)
    prompt = rng.integers(0, VOCABULARY, 30).tolist()
    answer = [*logits.topk(3).indices.flatten().tolist(), 5, 5]
    sampler = CpuSampler(team, 6, VOCABULARY, 4)
    sampler.counts.fill(99)
    sampler.begin(2, prompt, answer[:4])
    for token in answer[4:]:
        sampler.set([draw(params, 0, -1), draw(params, 0, 2)])
        sampler.count(torch.tensor([7, token]))
    found = drawn(sampler, logits, [draw(params, at, 2 if at != 3 else -1) for at in range(6)])
    for at, row in enumerate(logits):
        tokens = [*prompt, *answer]
        settings = params if at != 3 else SamplingParams(temperature, 0.9, 40)
        assert found[at] == sample(row.numpy(), SamplingRow(settings, SEED, at, tokens, len(prompt)))


def test_tokens_that_the_host_does_not_know_yet_are_filled_in(team: Team) -> None:
    """Rows of the step before, by -1 - row; one without a token gives token 0. Known ones stay."""
    sampler, out = CpuSampler(team, 8, VOCABULARY, 4), torch.tensor([7, -1, 299])
    ids = torch.tensor([5, -3, 0, -1, -2, 11] + [4] * 600 + [-1])
    sampler.fill(ids, out)
    assert ids.tolist() == [5, 299, 0, 7, 0, 11] + [4] * 600 + [7]


def test_only_rows_with_a_slot_and_a_token_are_counted(team: Team) -> None:
    sampler, none = CpuSampler(team, 8, VOCABULARY, 4), SamplingParams()
    sampler.begin(1, [5, 5, 6], [6, 7, 7])
    assert np.flatnonzero(sampler.counts[1]).tolist() == [5, 6, 7]
    assert sampler.counts[1, [5, 6, 7]].tolist() == [1, 3, 4]
    sampler.set([draw(none, 0, slot) for slot in (-1, 1, 3)])
    sampler.count(torch.tensor([9, 7, -1]))
    assert sampler.counts[1, [5, 6, 7, 9]].tolist() == [1, 3, 6, 0] and not sampler.counts[[0, 2, 3]].any()


def test_shares_at_both_ends(team: Team) -> None:
    logits = torch.randn(1, VOCABULARY)
    for params in CASES.values():
        asked = SamplingParams(**params)
        for share in (0.0, 1 - 2**-53):
            each = [dataclasses.replace(draw(asked, 0), share=share)]
            (found,) = drawn(CpuSampler(team, 1, VOCABULARY, 1), logits, each)
            assert 0 <= found < VOCABULARY


@pytest.mark.parametrize("vocabulary", [4096, 50_257])
def test_a_large_vocabulary_of_nearly_even_logits(team: Team, vocabulary: int) -> None:
    torch.manual_seed(4)
    compare(team, torch.randn(3, vocabulary) * 0.1, temperature=1.0, top_p=0.95)
