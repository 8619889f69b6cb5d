"""The check of a card, without one: rows are judged as they should be, and a dry run gets through."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.gpu_check import __main__ as check, correctness
from benchmarks.gpu_check.correctness import Case
from benchmarks.gpu_check.report import Report, Row, attempt, judged
from tests.source_tree import ROOT

RIGHT = Row("correct", "cases", 3, "of 3", passed=True)


def report(path: Path, *rows: Row, judge_speed: bool = True) -> Report:
    made = Report(path / "rows.jsonl", judge_speed)
    for row in rows:
        made.add(row)
    return made


def speeds(right: int, wrong: int) -> list[Row]:
    return [judged("products", "x", 1, "us", 1, share, 0.5) for share in [0.6] * right + [0.4] * wrong]


@pytest.mark.parametrize(
    "rows,passes",
    [
        ([RIGHT, *speeds(4, 1)], True),
        ([RIGHT, *speeds(3, 1)], False),
        ([RIGHT, Row("correct", "other", 1, "", passed=False), *speeds(5, 0)], False),
        ([RIGHT, Row("model", "failed", 0, "", passed=False)], False),
        (speeds(5, 0), False),
    ],
    ids=[
        "four of five are fast",
        "three of four are",
        "one is wrong",
        "a section failed",
        "nothing was proved",
    ],
)
def test_the_verdict(rows: list[Row], passes: bool, tmp_path: Path) -> None:
    assert report(tmp_path, *rows).verdict() == passes


def test_rows_are_kept_as_they_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(tmp_path, RIGHT, *speeds(1, 1))
    kept = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["passed"] for row in kept] == [True, True, False]
    assert made.table().index("FAIL") < made.table().index("PASS")
    assert "FAIL products" in capsys.readouterr().out


def test_a_new_run_begins_a_new_file_and_one_that_goes_on_does_not(tmp_path: Path) -> None:
    report(tmp_path, RIGHT, *speeds(0, 1))
    assert Report(tmp_path / "rows.jsonl", go_on=True).rows == [RIGHT, *speeds(0, 1)]
    assert not Report(tmp_path / "rows.jsonl").rows and not (tmp_path / "rows.jsonl").exists()


def test_an_error_is_a_row_and_the_section_goes_on() -> None:
    def rows() -> Iterator[Row]:
        yield RIGHT
        raise RuntimeError("CUDA error: no kernel image\nmore")

    (first, last) = attempt("model", "w4", rows())
    assert first == RIGHT and last.passed is False
    assert (last.name, last.note) == ("w4 failed", "RuntimeError: CUDA error: no kernel image more")


def test_a_case_whose_time_is_over_ends_its_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no wrong result, though cases may fail in any way; what was found before it is kept."""

    def late() -> float:
        raise check.OutOfTime

    cases = [Case("quick", lambda: 1.0, 0.5), Case("late", late, 0.5), Case("never", late, 0.5)]
    monkeypatch.setattr(correctness, "cases", lambda setup: iter(cases))
    rows = list[Row]()
    dry: Any = SimpleNamespace(dry=True)
    check.run(check.Section("correct", "correctness", "correctness", 5), dry, rows.append)
    assert [(row.name, row.passed) for row in rows] == [("quick", False), ("out of time", None)]


@pytest.mark.parametrize("rest,asked", [(["model"], ["ceilings", "model"]), ([], ["none"])])
def test_a_lost_card_leaves_the_rest_to_another_process(
    rest: list[str], asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[list[str]]()
    monkeypatch.setattr(check.os, "execv", lambda program, command: given.append(command))
    check.go_on(rest, tmp_path)
    (command,) = given
    assert command[3:6] == ["--go-on", "--out", str(tmp_path)] and command[7::2] == asked


def test_a_whole_run_fits_into_ten_minutes() -> None:
    """With what a machine needs to start."""
    assert sum(section.seconds for section in check.SECTIONS) <= 9.5 * 60


def test_a_dry_run_judges_no_speed(tmp_path: Path) -> None:
    assert report(tmp_path, RIGHT, *speeds(0, 3), judge_speed=False).verdict()


def test_a_dry_run_gets_through(tmp_path: Path) -> None:
    sections = ["--only", "machine", "--only", "ceilings", "--only", "repeats"]
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--dry-run", *sections, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "correct      8 of 8 pass" in done.stdout
