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
    {work}
print(len(passes.buffer))
"""
# a backend and the products of all formats
ALL = """
    from kernels import Int4, select
    import torch
    group = torch.zeros(1, 1, dtype=torch.float16)
    ops = select("cpu", "numba")
    ops.pack([Int4(torch.zeros(1, 16, dtype=torch.uint8), group, group)])
    ops.close()
"""
ONE = "from kernels.cpu import machine, norms; machine.compiled(norms.make_cap)"
# where no file may have more than 100 bytes, as on a full disk
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "


def passes(cache: Path, work: str) -> int:
    """How often numba's compiler was at work in a fresh process."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", SCRIPT.format(work=work)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert passes(tmp_path, ALL) > 0
    assert passes(tmp_path, ALL) == 0


def test_a_full_disk_and_damaged_files_cost_a_compilation(tmp_path: Path) -> None:
    assert passes(tmp_path, FULL + ONE) > 0
    assert passes(tmp_path, ONE) > 0
    for path in tmp_path.rglob("*.nb?"):
        os.truncate(path, path.stat().st_size // 2)
    assert passes(tmp_path, ONE) > 0
    assert passes(tmp_path, ONE) == 0


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
