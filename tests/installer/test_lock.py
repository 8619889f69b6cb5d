"""One installer at a time, and none waits for one that died."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from installer.lock import _take, locked
from tests.source_tree import ROOT

HOLD = "import sys, pathlib; from installer.lock import locked\n"
HOLD += "with locked(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"


def test_another_process_waits_until_the_holder_ends(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as holder:  # type: ignore[call-overload]
        assert holder.stdout.readline() == "held\n"
        with path.open("a+b") as file:
            assert not _take(file)
            holder.kill()
            holder.wait()
            assert _take(file)
    with locked(path):
        pass
