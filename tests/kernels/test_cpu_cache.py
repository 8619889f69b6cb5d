"""A second process compiles nothing, and a change of any kernel file is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.cpu import machine
from tests.source_tree import ROOT

# Every pass of numba's compiler announces itself: no announcement, nothing compiled.
SCRIPT = """
from numba.core import event
with event.install_recorder("numba:run_pass") as passes:
    from kernels import Int4, select
    import torch
    group = torch.zeros(1, 1, dtype=torch.float16)
    ops = select("cpu", "numba")
    ops.pack([Int4(torch.zeros(1, 16, dtype=torch.uint8), group, group)])
    ops.close()
print(len(passes.buffer))
"""


def passes(cache: Path) -> int:
    """How often numba's compiler was at work in a fresh process that makes a backend and the products of all
    formats.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert passes(tmp_path) > 0
    assert passes(tmp_path) == 0


def test_a_change_in_another_file_makes_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(args: int, i: int, n: int) -> None:
        pass

    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    cache = machine._Cache(kernel)
    codegen = machine.CFunc._targetdescr.target_context.codegen()
    before = cache._index_key((), codegen)
    assert cache._index_key((), codegen) == before
    monkeypatch.setattr(machine, "SOURCES", "another text")
    assert cache._index_key((), codegen) != before
