"""The list of what was put where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from installer.manifest import Manifest, mind_home, missing_folders, read_manifest, write_manifest


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "program" / "installed.json"
    assert read_manifest(path) is None
    manifest = Manifest("0.1.0-3f2a91c4", "/bücher", ("/a b/octavo", "/c"), ("/a b",))
    write_manifest(path, manifest)
    assert read_manifest(path) == manifest


@pytest.mark.parametrize(
    "damage", ["", "[]", "{}", '{"files": 3, "folders": []}', '{"files": [], "other": 1}']
)
def test_a_damaged_one_is_none(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "installed.json"
    path.write_text(damage)
    assert read_manifest(path) is None


def test_the_folders_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    assert missing_folders(path) == [str(tmp_path / "a"), str(tmp_path / "a" / "b")]
    path.parent.mkdir(parents=True)
    assert missing_folders(path) == []


def test_the_chosen_data_folder_is_minded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "installed.json"
    monkeypatch.delenv("OCTAVO_HOME")
    mind_home(path)
    write_manifest(path, Manifest())
    mind_home(path)
    assert "OCTAVO_HOME" not in os.environ
    write_manifest(path, Manifest(home="/chosen"))
    mind_home(path)
    assert os.environ["OCTAVO_HOME"] == "/chosen"
    monkeypatch.setenv("OCTAVO_HOME", "/other")
    mind_home(path)
    assert os.environ["OCTAVO_HOME"] == "/other"
