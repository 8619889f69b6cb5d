"""The real engine as a side: what a comparison asks of it, on the starter model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.measures import prompt
from benchmarks.sides import Side, contender


@pytest.fixture(scope="module")
def ours(starter_model: Path) -> Iterator[Side]:
    with Side(contender("octavo", starter_model, 2, Path())) as side:
        assert side.ask("load", seqs=8, context=256)["seconds"] > 0
        yield side


def test_each_prompt_has_its_tokens_and_their_times(ours: Side) -> None:
    answer = ours.ask("run", prompts=[prompt(20, 0), prompt(40, 1)], tokens=5)
    assert [len(ids) for ids in answer["ids"]] == [5, 5]
    assert all(times == sorted(times) and len(times) == 5 for times in answer["times"])


def test_a_run_is_the_same_again_and_shared_or_not(ours: Side) -> None:
    runs = [
        ours.ask("run", prompts=[prompt(64, 2)], tokens=8, share=share)["ids"]
        for share in (False, False, True)
    ]
    assert runs[0] == runs[1] == runs[2]


def test_a_late_prompt_ends_the_run_with_its_first_token(ours: Side) -> None:
    late = {"prompt": prompt(100, 3), "after": 4}
    answer = ours.ask("run", prompts=[prompt(16, 4)], tokens=2000, late=late)
    chat, last = answer["times"]
    assert 4 <= len(chat) < 2000
    assert chat[3] < last[0]


def test_sizes_are_bytes(ours: Side, starter_model: Path) -> None:
    sizes = ours.ask("sizes")
    assert 0.9 < sizes["weights"] / starter_model.stat().st_size <= 1
    assert sizes["kv"] > 0


def test_it_scores_a_text(ours: Side, tmp_path: Path) -> None:
    answer = ours.ask("score", ids=prompt(300, 5), keep=4, path=str(tmp_path / "logits.npy"))
    assert len(answer["logprobs"]) == 299
    assert max(answer["logprobs"]) < 0
