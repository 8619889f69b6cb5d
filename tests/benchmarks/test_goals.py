"""Which goal a row has, and when it is met."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import ALONE
from benchmarks.goals import GOALS, Goal, Kind, goal_of
from benchmarks.measures import MEASURES

LARGE, SMALL = "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.mark.parametrize(
    "measure, figure, model, peer, said",
    [
        ("decode", "tokens_per_s", LARGE, "llama.cpp", "at least 1.15 x"),
        ("decode", "tokens_per_s", SMALL, "llama.cpp", "at least 2 x"),
        ("decode", "tokens_per_s", LARGE, "read", "at least 0.9 x"),
        ("decode", "tokens_per_s", SMALL, "vllm", None),
        ("batch", "tokens_per_s", SMALL, "vllm", "at least 4 x"),
        ("load", "seconds", LARGE, "", "at most 2"),
        ("quality", "mean_kl", SMALL, "", "at most 0.005"),
    ],
)
def test_the_goal_of_a_row(measure: str, figure: str, model: str, peer: str, said: str | None) -> None:
    goal = goal_of(measure, figure, model, peer)
    assert (str(goal) if goal else None) == said


@pytest.mark.parametrize(
    "kind, ours, ratio, met",
    [
        (Kind.RATIO, 1, 2.0, True),
        (Kind.RATIO, 99, 1.99, False),
        (Kind.RATIO, 99, None, None),
        (Kind.LEAST, 2, None, True),
        (Kind.LEAST, 1, 9.0, False),
        (Kind.MOST, 2, None, True),
        (Kind.MOST, 3, 9.0, False),
    ],
)
def test_when_a_goal_is_met(kind: Kind, ours: float, ratio: float | None, met: bool | None) -> None:
    assert Goal(kind, 2).met(ours, ratio) is met


def test_every_goal_is_about_something_that_is_measured() -> None:
    assert {name for name, *_ in GOALS} <= {*MEASURES, *ALONE}
    compared = {(name, figure) for name, measure in MEASURES.items() for figure in measure.compared}
    assert {(name, figure) for name, figure, *_ in GOALS if name not in ALONE} <= compared
