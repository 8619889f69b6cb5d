"""The parent of the program: exit codes come up, signals go down, 75 starts it again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from installer import launch
from installer.launch import MANY, RESTART, ended_in_order, is_crash, keep_running, run_once
from tests.source_tree import ROOT

COUNT = "import pathlib, sys; p = pathlib.Path('starts'); n = len(p.read_text()) if p.exists() else 0; "
COUNT += "p.write_text('x' * (n + 1)); sys.exit({after}[min(n, {last})])"
# Says that it is ready, then waits for a signal and says which.
LISTEN = """
import os, signal, sys, time
def end(number, frame):
    os.write(1, (signal.Signals(number).name + "\\n").encode())  # it may come in the middle of a print
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


KILLED = 128 + 9


def killed(times: int, then: int) -> str:
    """A program that is killed so many times, then ends with a code."""
    code = COUNT.format(after=[*[KILLED] * times, then], last=times).replace("sys.exit(", "end(")
    return f"""
import os
def end(code):
    os.kill(os.getpid(), 9) if code == {KILLED} else sys.exit(code)
{code}"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("crashes", "end"), [(0, (KILLED, 1)), (2, (KILLED, 3)), (3, (4, 4))])
def test_so_many_crashes_are_forgiven(
    tmp_path: Path, crashes: int, end: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    code = keep_running([sys.executable, "-c", killed(3, then=4)], tmp_path, crashes=crashes)
    assert (code, len((tmp_path / "starts").read_text())) == end
    assert ("Octavo was ended by the system (SIGKILL)" in capsys.readouterr().out) == (code == KILLED)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_crashes_long_ago_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "CRASH_S", 0.0)
    assert keep_running([sys.executable, "-c", killed(5, then=4)], tmp_path, crashes=1) == 4


def test_the_later_command_follows_one_that_was_up_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later = ([sys.executable, "-c", f"import sys; sys.exit({code})"] for code in (RESTART, 6))
    assert keep_running(first, tmp_path, again=lambda: later) == RESTART  # it only ever ended at once
    monkeypatch.setattr(launch, "QUICK_S", 0.0)
    assert keep_running(first, tmp_path, again=lambda: later) == 6


def test_its_complaints_are_kept_and_the_rest_is_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "import sys; print('the link'); sys.exit('why it ended')"]
    with (tmp_path / "log").open("w+") as log:
        assert keep_running(command, tmp_path, log=log) == 1
    assert (tmp_path / "log").read_text() == "why it ended\n" and capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("code", "order", "crash"),
    [
        (0, True, False),
        (1, False, False),  # it said why
        (RESTART, False, False),
        (128 + 15, True, False),
        (128 + 2, True, False),
        (128 + 9, False, True),
        (128 + 11, False, True),
        (0xC000013A, True, False),  # Ctrl-C on Windows
        (0xC0000005, False, True),  # an access violation there
    ],
)
def test_how_it_ended(code: int, order: bool, crash: bool) -> None:
    assert (ended_in_order(code), is_crash(code)) == (order, crash)
