"""Sides are measured in turn, and what comes out is a figure for each round of each."""

from __future__ import annotations

import pytest

from benchmarks.compare import compare
from benchmarks.measures import MEASURES
from benchmarks.sides import SideFailed

from .fakes import fake


def test_every_side_is_measured_in_every_round(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(MEASURES["decode"], [fake("octavo", 20), fake("llama.cpp", 10)], rounds=3)
    assert [round(each["tokens_per_s"]) for each in found["octavo"]] == [20] * 3
    assert [round(each["tokens_per_s"]) for each in found["llama.cpp"]] == [10] * 3
    told = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines() if line.startswith("round")]
    assert told == ["octavo", "llama.cpp"] * 3


def test_a_side_that_does_not_start_is_named() -> None:
    with pytest.raises(SideFailed, match="vllm"):
        compare(MEASURES["decode"], [fake("octavo", 20), fake("vllm", 0)], rounds=1)
