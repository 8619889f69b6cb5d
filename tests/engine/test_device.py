"""What the machine is said to be, with container limits made of real files in a folder of our own."""

from __future__ import annotations

from pathlib import Path

import psutil

from engine.device import cgroup_memory, detect


def test_this_machine_is_described() -> None:
    facts = detect()
    assert facts.kind == "cpu" and facts.name
    assert 1 <= facts.cores <= (psutil.cpu_count() or 1)
    assert 0 < facts.memory_available <= facts.memory_total <= psutil.virtual_memory().total


def test_a_container_limit_counts_as_the_machines_memory(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("4294967296\n")
    (tmp_path / "memory.current").write_text("1073741824\n")
    facts = detect(tmp_path)
    assert facts.memory_total == 4 << 30
    assert facts.memory_available == 3 << 30
    assert "container" in facts.reason


def test_version_one_limits_are_read_and_no_limit_is_none(tmp_path: Path) -> None:
    assert cgroup_memory(tmp_path) is None
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2147483648")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("5")
    assert cgroup_memory(tmp_path) == (2 << 30, 5)
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712")  # version 1's "none"
    assert cgroup_memory(tmp_path) is None
    (tmp_path / "memory.max").write_text("max")
    (tmp_path / "memory.current").write_text("7")
    assert cgroup_memory(tmp_path) is None
