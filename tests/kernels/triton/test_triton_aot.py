"""What kernels/triton ships compiles for its targets to good machine code (aot.py says what that is)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.source_tree import ROOT


@pytest.mark.parametrize(
    "options", [["--quick", "--jobs", "2"], pytest.param(["--jobs", "2"], marks=pytest.mark.slow)]
)
def test_all_that_is_shipped_compiles(options: list[str], tmp_path: object) -> None:
    """In a process of its own: in this one Triton only interprets."""
    command = [sys.executable, "-m", "tests.kernels.triton.aot", *options]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
