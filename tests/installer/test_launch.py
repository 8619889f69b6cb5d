"""The parent of the program: exit codes come up, signals go down, 75 starts it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from installer.launch import MANY, RESTART, keep_running, run_once
from tests.source_tree import ROOT

COUNT = "import pathlib, sys; p = pathlib.Path('starts'); n = len(p.read_text()) if p.exists() else 0; "
COUNT += "p.write_text('x' * (n + 1)); sys.exit({after}[min(n, {last})])"
# Says that it is ready, then waits for a signal and says which.
LISTEN = """
import signal, sys, time
def end(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(5)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
print("ready", flush=True)
while True:
    time.sleep(60)
"""
PARENT = "import sys, pathlib; from installer.launch import run_once; "
PARENT += f"sys.exit(run_once([sys.executable, '-c', {LISTEN!r}], pathlib.Path('.')))"


def starts(folder: Path, codes: list[int]) -> tuple[int, int]:
    """(exit code, number of starts) of a program that ends with these codes in turn."""
    code = COUNT.format(after=codes, last=len(codes) - 1)
    return keep_running([sys.executable, "-c", code], folder), len((folder / "starts").read_text())


@pytest.mark.parametrize(("codes", "end"), [([0], (0, 1)), ([3], (3, 1)), ([75, 75, 4], (4, 3))])
def test_75_means_again(tmp_path: Path, codes: list[int], end: tuple[int, int]) -> None:
    assert starts(tmp_path, codes) == end


def test_a_program_that_only_restarts_is_left_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert starts(tmp_path, [RESTART]) == (RESTART, MANY)
    assert "stays off" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(
    ("sent", "heard"), [("SIGINT", "SIGINT"), ("SIGTERM", "SIGTERM"), ("SIGHUP", "SIGTERM")]
)
def test_signals_reach_the_program_once_and_its_code_comes_back(sent: str, heard: str) -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        parent.send_signal(signal.Signals[sent])
        assert parent.stdout.read() == f"{heard}\n"
    assert parent.returncode == 5


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_killed_program_ends_as_shells_say_it(tmp_path: Path) -> None:
    assert run_once([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], tmp_path) == 137
