"""Ending the real program's instance, by a note that it and the installer understand alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.access.instance import Instance
from app.settings import Home
from installer.errors import SetupError
from installer.running import end_running
from tests.source_tree import ROOT

RUNNING = """
import sys, time
from pathlib import Path
from app.access.instance import Instance
from app.settings import Home
instance = Instance(Home(Path(sys.argv[1])))
print("running", flush=True)
while not (instance.asked_to_end and sys.argv[2]):
    time.sleep(0.01)
instance.close()
"""


@contextmanager
def running(home: Path, polite: str = "polite") -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", RUNNING, str(home), polite]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "running\n"
        yield process
        process.kill()


def test_it_ends_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as process:
        end_running(tmp_path)
        assert process.wait(20) == 0
    assert "it is asked to end" in capsys.readouterr().out
    assert not (tmp_path / "instance.quit").exists()
    Instance(Home(tmp_path)).close()


def test_where_none_runs_nothing_is_said_or_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end_running(tmp_path / "nowhere")
    Instance(Home(tmp_path)).close()
    end_running(tmp_path)
    assert capsys.readouterr().out == "" and {path.name for path in tmp_path.iterdir()} == {"instance.lock"}


def test_one_that_stays_is_a_sentence(tmp_path: Path) -> None:
    with running(tmp_path, polite=""), pytest.raises(SetupError, match="did not end in 0 s"):
        end_running(tmp_path, patience=0)
