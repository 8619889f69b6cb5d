"""Every measure on a side whose clock is a formula: the figures are those of the formula."""

from __future__ import annotations

import pytest

from benchmarks.measures import MEASURES, batch, prompt, rate
from benchmarks.sides import Figures, Side

from .fakes import fake


def figures(name: str, speed: float = 10) -> Figures:
    with Side(fake("peer", speed)) as side:
        side.ask("load", seqs=1, context=64)
        return MEASURES[name].round(side, 0)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("prefill", 512),
        ("decode", 10),
        ("batch", 80),
        ("prefix", 10),
        ("reopen", 10),
        ("mixed", 3),
        ("load", 0.1),
    ],
)
def test_the_first_figure_is_what_the_clock_says(name: str, expected: float) -> None:
    found = figures(name)
    assert next(iter(found)) == MEASURES[name].compared[0]
    assert found[MEASURES[name].compared[0]] == pytest.approx(expected)


def test_a_late_prompt_is_waited_for_from_its_arrival() -> None:
    assert figures("mixed")["late_first_token_s"] == pytest.approx(10 * 0.3)


def test_memory_is_what_is_resident_beyond_weights_and_keys_and_values() -> None:
    found = figures("memory")
    assert found["beyond_mb"] == pytest.approx(found["resident_mb"] - 0.002)
    assert found["resident_mb"] > 1


def test_a_restart_ends_with_the_first_token_of_a_new_process() -> None:
    assert figures("restart")["seconds"] > 0


def test_batch_counts_as_many_chats_as_were_asked_for() -> None:
    with Side(fake("peer", 10)) as side:
        assert batch(side, 0, chats=3) == {"tokens_per_s": pytest.approx(30), "chats": 3}


def test_a_rate_counts_what_comes_while_all_chats_are_answering() -> None:
    assert rate([[0.0, 1.0, 2.0, 3.0], [1.5, 2.5, 3.5, 9.0]]) == pytest.approx(3 / 1.5)


def test_prompts_are_as_long_as_asked_for_the_same_each_time_and_share_no_beginning() -> None:
    assert prompt(512, 1) == prompt(512, 1)
    assert len(prompt(512, 1)) == 512
    assert prompt(8, 1)[0] != prompt(8, 2)[0]
