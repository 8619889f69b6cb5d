"""How large tiers are without being asked, and what tells blocks of two computations apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import BadRequest
from engine.fitting.memory_plan import GIB, MemoryFacts, ModelFacts
from engine.tiers import opening
from engine.tiers.opening import MOST_DISK, computed_by, disk_picture, disk_quota, swap_space

FACTS = ModelFacts("name", "print", 2048, (), 0, 0, 0, 16, "numba, int4", "float16")


@pytest.mark.parametrize(
    ("asked", "unified", "available", "got"),
    [
        (None, True, 64 * GIB, 0),
        (None, False, 8 * GIB, 2 * GIB),
        (None, False, 64 * GIB, 4 * GIB),
        (5, True, 64 * GIB, 5),
        (0, False, 64 * GIB, 0),
        (10**15, False, 64 * GIB, 64 * GIB),  # no more than there is
    ],
)
def test_swap_space(asked: int | None, unified: bool, available: int, got: int) -> None:
    config = EngineConfig(swap_space=asked)
    assert swap_space(config, MemoryFacts(GIB, GIB, unified), available) == got


def test_swap_space_is_no_less_than_nothing() -> None:
    with pytest.raises(BadRequest, match="swap_space is -1"):
        EngineConfig(swap_space=-1)


@pytest.mark.parametrize(
    ("quota", "free", "taken", "got"),
    [
        (None, 50 * 10**9, 10 * 10**9, 6 * 10**9),
        (None, 10**13, 0, MOST_DISK),
        (7, 10**13, 0, 7),
        (0, 10**13, 0, 0),
    ],
)
def test_disk_quota(quota: int | None, free: int, taken: int, got: int) -> None:
    assert disk_quota(quota, free, taken) == got


def test_whoever_computes_in_another_way_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = computed_by(FACTS, [100])
    assert ours == computed_by(FACTS, [100])
    others = [computed_by(replace(FACTS, formats="reference, none"), [100]), computed_by(FACTS, [200])]
    monkeypatch.setattr(opening, "SOURCES", "another text")
    assert len({ours, *others, computed_by(FACTS, [100])}) == 4


def test_a_picture_where_nothing_is_yet(tmp_path: Path) -> None:
    picture = disk_picture(tmp_path / "cache" / "blocks", 10**9)
    assert (picture.num_bytes, picture.num_blocks, picture.most) == (0, 0, 10**9)
    assert not (tmp_path / "cache").exists()
