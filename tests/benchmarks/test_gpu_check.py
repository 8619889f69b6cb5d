"""The check of a card, without one: rows are judged as they should be, and a dry run gets through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu_check.report import Report, Row, judged
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


def test_a_dry_run_judges_no_speed(tmp_path: Path) -> None:
    assert report(tmp_path, RIGHT, *speeds(0, 3), judge_speed=False).verdict()


def test_a_dry_run_gets_through(tmp_path: Path) -> None:
    sections = ["--only", "machine", "--only", "ceilings", "--only", "repeats"]
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--dry-run", *sections, "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "correct      8 of 8 pass" in done.stdout
