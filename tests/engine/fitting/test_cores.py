"""How many threads compute: no more than the process may keep busy, a core left over where there are many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.fitting import cores
from engine.fitting.cores import cpu_quota, threads_for, usable_cores


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"cpu.max": "300000 100000\n"}, 3),
        ({"cpu.max": "150000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),  # half of one is one, too
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "\n"}, None),
        ({"cpu.max": "100000 0\n"}, None),
        ({}, None),
    ],
)
def test_the_quota_of_a_container(tmp_path: Path, files: dict[str, str], found: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpu_quota(tmp_path) == found


def test_the_smallest_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "physical_cores", lambda: list(range(8)))
    for physical, quota, wanted in ((None, "max", 8), (6, "max", 6), (6, "300000", 3), (16, "max", 8)):
        monkeypatch.setattr(cores.psutil, "cpu_count", lambda logical, count=physical: count)
        (tmp_path / "cpu.max").write_text(f"{quota} 100000")
        assert usable_cores(tmp_path) == wanted


def test_the_default_leaves_a_core_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, wanted in ((1, 1), (2, 2), (4, 4), (5, 4), (16, 15)):
        monkeypatch.setattr(cores, "usable_cores", lambda count=count: count)
        assert threads_for(None) == wanted
    assert threads_for(1) == 1 and threads_for(1024) == (os.cpu_count() or 1)
