"""The program ends when its installer does, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.source_tree import ROOT

PATIENCE_S = 20
# A program that says its number and ends in good order when it is asked to.
PROGRAM = """
import os, signal, sys, threading
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
print(os.getpid(), *sys.argv[1:], flush=True)
while not asked.wait(0.1):
    pass
open("ended", "w").close()
sys.exit(7)
"""
PARENT = """
import pathlib, sys
from installer.launch import keep_running
sys.exit(keep_running([sys.executable, "-m", "installer.child", *sys.argv[2:]], pathlib.Path(sys.argv[1])))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "__init__.py").touch()
    (tmp_path / "ui" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "installer").symlink_to(ROOT / "installer")
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="the checkout is made of links")
@pytest.mark.parametrize("way", ["kill", "terminate"])
def test_it_ends_with_its_parent(root: Path, way: str) -> None:
    command = [sys.executable, "-c", PARENT, str(root), "run", "--port", "1"]
    parent = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    number, *words = parent.stdout.readline().split()
    assert words == ["run", "--port", "1"]
    program = psutil.Process(int(number))
    getattr(parent, way)()
    parent.wait(PATIENCE_S)
    psutil.wait_procs([program], PATIENCE_S)
    assert (root / "ended").exists() and not program.is_running()
    assert parent.returncode == (7 if way == "terminate" else -9)
