"""What models take, and no download that does not fit."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from app.errors import PullFailed
from app.models.disk import GB, SPARE, check_room, disk_use
from app.models.model_store import ModelStore
from app.settings import Home
from tests.app.fake_hub import hub_catalogue

usage = namedtuple("usage", "total used free")


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    store = ModelStore(Home(tmp_path), hub_catalogue())
    (store.folder / "a" / "b").mkdir(parents=True)
    (store.folder / "a" / "b" / "x").write_bytes(b"x" * 700)
    (store.folder / "a" / "y").write_bytes(b"y" * 300)
    return store


def test_use(store: ModelStore, tmp_path: Path) -> None:
    use = disk_use(store, tmp_path / "cache" / "packed", 3)
    assert (use.models, use.packed, use.quota) == (1000, 0, 3 * GB) and use.free > 0


def test_room(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.models.disk.shutil.disk_usage", lambda path: usage(10 * GB, 9 * GB, 1 * GB))
    packed = store.folder / "packed"
    assert [disk_use(store, packed, quota).room for quota in (0, 1)] == [GB - SPARE] * 2
    os.truncate(store.folder / "a" / "y", 400_000_000)
    assert disk_use(store, packed, 1).room == GB - 400_000_700 < disk_use(store, packed, 0).room
    os.truncate(store.folder / "a" / "y", 300)
    check_room(store, "M", 700_000_000, 0)
    with pytest.raises(
        PullFailed, match=r"M needs 800\.0 MB more and .* to spare, but only 1\.00 GB are free"
    ):
        check_room(store, "M", 800_000_000, 0)
    check_room(store, "M", 700_000_000, 1)
    with pytest.raises(PullFailed, match=r"M needs 1\.00 GB more, but models take 1\.0 kB of the 1\.00 GB"):
        monkeypatch.setattr("app.models.disk.SPARE", 0)
        check_room(store, "M", GB, 1)
