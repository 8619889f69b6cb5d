"""The guard speaks when a ratio fell, and only then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.guard import KEPT, fallen, keep, ratios, read_kept, read_rows


def line(ratio: float | None, name: str = "decode", ours: float = 30.0) -> dict[str, Any]:
    return {
        "name": name,
        "figure": "tokens_per_s",
        "model": "m.gguf",
        "against": "llama.cpp",
        "ratio": ratio,
        "ours": ours,
    }


NAME = "decode | tokens_per_s | m.gguf | llama.cpp"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    rows = [line(1.0), line(2.0, "batch"), line(1.2), line(None, "load")]
    path.write_text("a table for people\n" + "\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_the_last_row_of_a_kind_counts_and_one_without_a_peer_does_not(log: Path) -> None:
    assert ratios(read_rows([log])) == {NAME: 1.2, NAME.replace("decode", "batch"): 2.0}


@pytest.mark.parametrize("now, sentences", [(1.2, 0), (1.0, 0), (0.86, 0), (0.84, 1), (5.0, 0)])
def test_only_a_fall_beyond_the_tolerance_is_a_finding(now: float, sentences: int) -> None:
    assert len(fallen({NAME: now}, {NAME: 1.0}, 0.15)) == sentences


def test_a_finding_names_both_ratios() -> None:
    assert fallen({NAME: 0.5}, {NAME: 1.0}) == [f"{NAME}: 0.500, kept is 1.000; that is 50% less"]


def test_what_was_not_measured_is_not_judged_and_times_do_not_count() -> None:
    assert not fallen({}, {NAME: 1.0})
    assert ratios([line(1.0, ours=30)]) == ratios([line(1.0, ours=3)])


def test_keeping_replaces_what_was_measured_and_leaves_the_rest(tmp_path: Path) -> None:
    place = tmp_path / "ratios.json"
    keep({"a": 1.0, "b": 2.0}, place)
    keep({"b": 3.0}, place)
    assert read_kept(place) == {"a": 1.0, "b": 3.0}


def test_the_kept_ratios_can_be_read() -> None:
    assert all(ratio > 0 and name.count(" | ") == 3 for name, ratio in read_kept(KEPT).items())
