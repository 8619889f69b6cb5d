"""The pace finds the number of tokens that fills a step, wherever it starts."""

from __future__ import annotations

import pytest

from engine.pace import Pace


@pytest.mark.parametrize("first_guess", [0.00001, 0.001, 0.1])
@pytest.mark.parametrize(("fixed", "per_token"), [(0.02, 0.0005), (0.1, 0.004), (0.0, 0.1)])
def test_it_settles_at_the_target(first_guess: float, fixed: float, per_token: float) -> None:
    pace = Pace(0.25, first_guess)
    for _ in range(40):
        pace.observe(pace.num_tokens, fixed + per_token * pace.num_tokens)
    assert pace.num_tokens % 16 == 0
    duration = fixed + per_token * pace.num_tokens
    assert pace.num_tokens == 16 or 0.25 - 2 * 16 * per_token <= duration <= 0.25


def test_small_steps_teach_nothing() -> None:
    pace = Pace(0.25, 0.001)
    pace.observe(3, 100.0)
    pace.observe(0, 100.0)
    assert pace.num_tokens == 240


def test_a_night_asleep_counts_for_little() -> None:
    pace = Pace(0.25, 0.001)
    pace.observe(240, 30_000.0)
    assert pace.num_tokens == 160
    pace.observe(240, 0.0)
    assert pace.num_tokens > 200
