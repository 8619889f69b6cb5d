"""The sampler against transformers' own; and its promise: a draw depends on (seed, position) only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers.generation import logits_process

from engine.errors import EngineError
from engine.running.sampler import SamplingRow, candidates, penalize, sample, uniform
from engine.types import SamplingParams

VOCABULARY = 3000


def some_logits(seed: int, spread: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(VOCABULARY) * spread).astype(np.float32)


def kept_by_transformers(logits: np.ndarray, params: SamplingParams) -> torch.Tensor:
    """The probabilities that transformers would draw from."""
    scores = torch.from_numpy(logits)[None] / params.temperature
    stages = []
    if params.top_k:
        stages.append(logits_process.TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        stages.append(logits_process.TopPLogitsWarper(params.top_p))
    if params.min_p:
        stages.append(logits_process.MinPLogitsWarper(params.min_p))
    for stage in stages:
        scores = stage(None, scores)
    return scores.softmax(-1)[0]


@pytest.mark.parametrize("spread", [0.1, 3.0, 8.0])  # flat rows need the full sort
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top_k": 7},
        {"top_p": 0.8},
        {"min_p": 0.05},
        {"top_k": 40, "top_p": 0.9},
        {"top_k": 400, "top_p": 0.5, "min_p": 0.02},
        {"top_k": 2 * VOCABULARY, "top_p": 0.999},
        {"top_p": 0.0},
        {"top_k": 1},
    ],
    ids=str,
)
def test_candidates_are_those_of_transformers(settings: dict, spread: float) -> None:
    params = SamplingParams(**{"temperature": 0.8, "top_p": 1.0} | settings)
    logits = some_logits(1, spread)
    weights = np.exp((logits - logits.max()) / np.float32(params.temperature))
    ids, kept = candidates(weights, params)
    ours = torch.zeros(VOCABULARY, dtype=torch.float64)
    ours[torch.as_tensor(ids)] = torch.from_numpy(kept / kept.sum(dtype=np.float64)).double()
    theirs = kept_by_transformers(logits, params).double()
    assert (ours > 0).sum() == (theirs > 0).sum()
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-4)


def test_penalties_are_those_of_transformers_and_openai() -> None:
    logits, tokens = some_logits(2), [5, 9, 9, 30, 31, 31, 31]
    params = SamplingParams(repetition_penalty=1.3)
    theirs = logits_process.RepetitionPenaltyLogitsProcessor(1.3)(
        torch.tensor([tokens]), torch.from_numpy(logits)[None].clone()
    )
    np.testing.assert_allclose(penalize(logits, SamplingRow(params, 0, 7, tokens, 3)), theirs[0], rtol=1e-6)

    params = SamplingParams(frequency_penalty=0.5, presence_penalty=0.25)
    ours = penalize(logits, SamplingRow(params, 0, 7, tokens, 3))  # the answer is 30 31 31 31
    np.testing.assert_allclose(logits[31] - ours[31], 3 * 0.5 + 0.25, rtol=1e-5)
    np.testing.assert_allclose(logits[30] - ours[30], 0.75, rtol=1e-5)
    assert ours[9] == logits[9]  # a token of the prompt is not punished


def test_greedy_takes_the_likeliest_and_leaves_the_logits_alone() -> None:
    logits = some_logits(3)
    before = logits.copy()
    assert sample(logits, SamplingRow(SamplingParams(temperature=0), 1, 1)) == logits.argmax()
    assert sample(logits, SamplingRow(SamplingParams(temperature=2, top_k=1), 1, 1)) == logits.argmax()
    np.testing.assert_array_equal(logits, before)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("temperature", [5e-324, 1e-46, 1e-40, 1e-30, 1e-6, 1e-5])
def test_next_to_no_temperature_is_greedy(temperature: float) -> None:
    logits = some_logits(5, 30.0)
    for more in ({}, {"top_p": 1.0}, {"top_k": 5, "min_p": 0.5}):
        params = SamplingParams(temperature=temperature, **more)
        assert sample(logits, SamplingRow(params, 1, 1)) == logits.argmax()


def test_draws_follow_the_probabilities() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    params, draws = SamplingParams(temperature=1, top_p=1), 20_000
    counts = np.bincount([sample(logits, SamplingRow(params, 11, i)) for i in range(draws)], minlength=4)
    np.testing.assert_allclose(counts / draws, [0.5, 0.3, 0.15, 0.05], atol=0.012)  # 3.4 standard errors


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    logits, params = some_logits(4), SamplingParams(temperature=1)
    first = [sample(logits, SamplingRow(params, 42, i)) for i in range(50)]
    assert first == [sample(logits.copy(), SamplingRow(params, 42, i)) for i in range(50)]
    assert first != [sample(logits, SamplingRow(params, 43, i)) for i in range(50)]
    assert len({uniform(seed, place) for seed in range(-20, 20) for place in range(50)}) == 2000


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_numbers_stop_the_request(bad: float) -> None:
    logits = np.full(8, bad, np.float32)
    with pytest.raises(EngineError, match="position 3"):
        sample(logits, SamplingRow(SamplingParams(), 0, 3))


def test_minus_infinity_is_never_drawn() -> None:
    logits = np.full(100, -np.inf, np.float32)
    logits[[3, 5]] = 0.0
    params = SamplingParams(temperature=1, top_p=1)
    assert {sample(logits, SamplingRow(params, 0, i)) for i in range(64)} == {3, 5}
