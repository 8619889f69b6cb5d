"""The record of what came from the hub: told by its place, believed only if it is whole and sound."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from app.models.installed import Record, installed, read_record, write_record

RECORD = Record("tiny", "Tiny", "MIT", 10, 5, "GGUF Q4_0", "m/Tiny", "a" * 40, (("x.gguf", 3, "b" * 64),))


def put(models: Path, record: Record = RECORD, place: str = "tiny/gguf-q4_0") -> Path:
    folder = models / place
    folder.mkdir(parents=True)
    (folder / "x.gguf").write_bytes(b"abc")
    write_record(folder, record)
    return folder


def test_a_record_without_what_came_later_counts(tmp_path: Path) -> None:
    folder = put(tmp_path)
    facts = dataclasses.asdict(RECORD)
    del facts["borrowed"]
    (folder / "octavo.json").write_text(json.dumps(facts))
    assert read_record(folder) == RECORD


def test_what_was_fetched(tmp_path: Path) -> None:
    folder = put(tmp_path)
    (found,) = installed(tmp_path)
    assert (found.record, found.path, found.key) == (RECORD, folder, "tiny@gguf-q4_0")
    assert found.whole and found.record.bytes == 3
    (folder / "x.gguf").write_bytes(b"ab")
    assert not found.whole
    (folder / "x.gguf").unlink()
    assert not found.whole


def test_a_folder_does_not_pass_for_another_model(tmp_path: Path) -> None:
    put(tmp_path, place="other/gguf-q4_0")
    put(tmp_path, place="tiny/bf16")
    put(tmp_path, place="tiny/.gguf-q4_0.draft")
    assert list(installed(tmp_path)) == []


@pytest.mark.parametrize(
    "harm",
    [
        {"id": 3},
        {"context": "10"},
        {"files": [["../x", 3, "b"]]},
        {"files": [["a/b", 3, "b"]]},
        {"files": [["x.", 3, "b"]]},
        {"files": [["nul.gguf", 3, "b"]]},
        {"files": [["x.gguf", "many", "b"]]},
        {"files": [3]},
        {"files": None},
        {"borrowed": 1},
        {"more": 1},
    ],
)
def test_what_is_no_record(tmp_path: Path, harm: dict[str, object]) -> None:
    folder = put(tmp_path)
    (folder / "octavo.json").write_text(json.dumps({**dataclasses.asdict(RECORD), **harm}))
    assert read_record(folder) is None and list(installed(tmp_path)) == []


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\x00", "null"])
def test_what_is_no_json(tmp_path: Path, text: str) -> None:
    folder = put(tmp_path)
    (folder / "octavo.json").write_text(text)
    assert read_record(folder) is None
