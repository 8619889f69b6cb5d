"""GGUF files in parts, as llama.cpp's gguf-split makes them: read as one, or refused with the part's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from engine.checkpoints import open_checkpoint, read_gguf
from engine.errors import BadCheckpoint

NAMES = (("a", "b"), ("c",), ("d", "e"))


def values(name: str) -> np.ndarray:
    return np.full((2, 32), ord(name), np.float32)


def write_part(path: Path, names: tuple[str, ...], **split: Any) -> Path:
    """A file with these tensors; `split` are its split keys: no, count, tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    if "no" in split:
        writer.add_uint16("split.no", split["no"])
    if "count" in split:
        writer.add_uint16("split.count", split["count"])
    if "tensors" in split:
        writer.add_int32("split.tensors.count", split["tensors"])
    if split.get("no", 0) == 0:
        writer.add_string("general.name", "the first")
    for name in names:
        writer.add_tensor(name, values(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def part(folder: Path, number: int, count: int = 3) -> Path:
    return folder / f"m-{number + 1:05}-of-{count:05}.gguf"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for number, names in enumerate(NAMES):
        write_part(part(tmp_path, number), names, no=number, count=3, tensors=5)
    return tmp_path


@pytest.mark.parametrize("number", [0, 1, 2])
def test_any_part_opens_all(parts: Path, number: int) -> None:
    with read_gguf(part(parts, number)) as checkpoint:
        assert list(checkpoint.tensors) == ["a", "b", "c", "d", "e"]
        assert [tensor.file for tensor in checkpoint.tensors.values()] == [0, 0, 1, 2, 2]
        assert checkpoint.metadata["general.name"] == "the first"
        assert not any(key.startswith("split.") for key in checkpoint.metadata)
        assert len(checkpoint.files) == 3
        for name in checkpoint.tensors:
            assert checkpoint.raw(name).tobytes() == values(name).tobytes()


def test_a_folder_of_parts_is_one_model(parts: Path) -> None:
    with open_checkpoint(parts) as checkpoint:
        assert len(checkpoint.tensors) == 5


def test_one_part_is_a_whole(tmp_path: Path) -> None:
    path = write_part(part(tmp_path, 0, 1), ("a",), no=0, count=1, tensors=1)
    with read_gguf(path) as checkpoint:
        assert list(checkpoint.tensors) == ["a"]


def test_a_missing_part(parts: Path) -> None:
    part(parts, 1).unlink()
    with pytest.raises(
        BadCheckpoint, match=r"There is no m-00002-of-00003\.gguf; all 3 parts must lie in one"
    ):
        read_gguf(part(parts, 0))


def test_a_part_under_another_name(parts: Path) -> None:
    with pytest.raises(
        BadCheckpoint, match=r"renamed\.gguf says that it is part 0 \(from 0\) of 3, not 0 of 1"
    ):
        read_gguf(part(parts, 0).rename(parts / "renamed.gguf"))


def test_parts_of_another_order(parts: Path) -> None:
    part(parts, 1).rename(parts / "x")
    part(parts, 2).rename(part(parts, 1))
    (parts / "x").rename(part(parts, 2))
    with pytest.raises(BadCheckpoint, match=r"m-00002-of-00003\.gguf says that it is part 2 \(from 0\) of 3"):
        read_gguf(part(parts, 0))


@pytest.mark.parametrize(
    "split, said",
    [
        ({"no": 2, "count": 4, "tensors": 5}, "part 2 .from 0. of 4, not 2 of 3"),
        ({}, "part 0 .from 0. of 1, not 2 of 3"),
        ({"no": 65535, "count": 65535}, "part 65535"),
    ],
)
def test_a_part_of_something_else(parts: Path, split: dict[str, int], said: str) -> None:
    write_part(part(parts, 2), ("d", "e"), **split)
    with pytest.raises(BadCheckpoint, match=said):
        read_gguf(part(parts, 0))


def test_a_tensor_in_two_parts(parts: Path) -> None:
    write_part(part(parts, 2), ("a", "e"), no=2, count=3, tensors=5)
    with pytest.raises(BadCheckpoint, match="tensor a is in an earlier part, too"):
        read_gguf(part(parts, 0))


def test_too_few_tensors(parts: Path) -> None:
    write_part(part(parts, 2), ("d",), no=2, count=3, tensors=5)
    with pytest.raises(BadCheckpoint, match="it names 5 tensors, its parts have 4"):
        read_gguf(part(parts, 0))


def test_more_parts_than_anyone_has(tmp_path: Path) -> None:
    path = write_part(part(tmp_path, 0, 99999), ("a",), no=0, count=3)
    with pytest.raises(BadCheckpoint, match="in 99999 parts; at most 500"):
        read_gguf(path)


def test_a_damaged_part(parts: Path) -> None:
    part(parts, 2).write_bytes(part(parts, 2).read_bytes()[:-1])
    with pytest.raises(BadCheckpoint, match=r"m-00003-of-00003\.gguf is damaged"):
        read_gguf(part(parts, 0))
