"""The language between what measures and what is measured: answers, faults, crashes, noise on stdout."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sides import Side, SideFailed, contender

from .fakes import fake


def test_a_side_answers_and_keeps_its_state() -> None:
    with Side(fake("octavo", 10)) as side:
        assert side.ask("load", seqs=1, context=64)["loaded"] == 1
        assert side.ask("load", seqs=1, context=64) == {"seconds": 0.1, "loaded": 2}
        assert side.ask("run", prompts=[[1], [2]], tokens=3)["times"] == [[1.0, 1.1, 1.2]] * 2


def test_what_libraries_print_goes_to_the_log() -> None:
    with Side(fake("octavo", 10)) as side:
        side.ask("load", seqs=1, context=64)
        assert "and one from C" in side.last_words()


def test_what_a_side_cannot_do_is_a_sentence_and_it_goes_on() -> None:
    with Side(fake("vllm", 10)) as side:
        with pytest.raises(SideFailed, match=r"^vllm cannot refuse: NotImplementedError: not this one$"):
            side.ask("refuse")
        with pytest.raises(SideFailed, match="vllm cannot sing"):
            side.ask("sing")
        assert side.ask("sizes")["weights"] == 1000


def test_a_side_that_dies_says_its_last_words() -> None:
    with Side(fake("llama.cpp", 10)) as side, pytest.raises(SideFailed, match="out of cheese"):
        side.ask("die")


def test_a_side_ends_with_its_stdin() -> None:
    side = Side(fake("octavo", 10))
    side.close()
    assert side.process.returncode == 0


def test_ours_runs_in_this_python_with_the_threads_that_were_asked_for() -> None:
    who = contender("octavo", Path("a.gguf"), 3, Path("nowhere"))
    assert who.command[1:] == ("-m", "benchmarks.ours", "--model", "a.gguf", "--threads", "3")
