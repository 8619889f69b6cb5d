"""The safetensors reader: what the library writes reads back; what is damaged ends in a typed error."""

from __future__ import annotations

import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings, strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from engine.checkpoints import Checkpoint, read_folder
from engine.checkpoints.safetensors_header import DTYPES
from engine.errors import BadCheckpoint
from tests.engine.checkpoints.malformed_safetensors import BAD, GOOD, build, entry


def write(folder: Path, data: bytes) -> Path:
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(data)
    return folder


def test_there_are_many_bad_files() -> None:
    assert len(BAD) >= 90


@pytest.mark.parametrize("name", BAD)
def test_bad_file(name: str, tmp_path: Path) -> None:
    data, expected = BAD[name]
    folder = write(tmp_path, data)
    tracemalloc.start()
    with pytest.raises(BadCheckpoint) as raised:
        read_folder(folder)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert expected in str(raised.value) and "model.safetensors" in str(raised.value)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 600
    assert peak < 32 << 20


def test_good_file_is_good(tmp_path: Path) -> None:
    """What the bad ones are made from."""
    with read_folder(write(tmp_path, GOOD)) as checkpoint:
        assert [(t.name, t.type, t.shape, t.nbytes) for t in checkpoint.tensors.values()] == [
            ("a", "F32", (2, 3), 24),
            ("b", "BF16", (4,), 8),
        ]
        assert (checkpoint.raw("a").shape, checkpoint.raw("b").shape) == ((2, 12), (8,))


def test_no_tensors_and_spaces_behind_the_header(tmp_path: Path) -> None:
    with read_folder(write(tmp_path, build(b"{}      ", 0))) as checkpoint:
        assert checkpoint.tensors == {}


TYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz,
    "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "U16": torch.uint16,
    "I16": torch.int16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "F32": torch.float32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F64": torch.float64,
    "C64": torch.complex64,
}


def test_every_type_the_library_writes(tmp_path: Path) -> None:
    assert DTYPES.keys() - TYPES.keys() == {"F4", "F6_E2M3", "F6_E3M2"}  # torch has none or packs them
    random = np.random.default_rng(0)
    shapes = [(3, 8), (8,), (), (2, 3, 4)]
    tensors = {}
    for n, (name, dtype) in enumerate(TYPES.items()):
        shape = shapes[n % 4]
        raw = random.integers(0, 2, (*shape, dtype.itemsize), np.uint8)
        tensors[name] = torch.from_numpy(raw).view(dtype).reshape(shape)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    with read_folder(tmp_path) as checkpoint:
        for name, tensor in tensors.items():
            found, raw = checkpoint.tensors[name], checkpoint.raw(name)
            assert (found.type, found.shape) == (name, tuple(tensor.shape))
            assert raw.shape == (*tensor.shape[:-1], raw.shape[-1])
            assert raw.tobytes() == tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def test_half_bytes(tmp_path: Path) -> None:
    with read_folder(write(tmp_path, build({"a": entry("F4", (2, 6), (0, 6))}, 6))) as checkpoint:
        assert checkpoint.raw("a").shape == (2, 3)


def test_cut_at_every_byte(tmp_path: Path) -> None:
    for size in range(len(GOOD)):
        with pytest.raises(BadCheckpoint, match=r"model\.safetensors"):
            read_folder(write(tmp_path, GOOD[:size]))
    with pytest.raises(BadCheckpoint, match="its tensors end at"):
        read_folder(write(tmp_path, GOOD + b"\0"))


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, len(GOOD) - 1), value=st.integers(0, 255), more=st.binary(max_size=8))
@example(place=0, value=0, more=b"")
def test_what_the_library_refuses_is_refused(tmp_path: Path, place: int, value: int, more: bytes) -> None:
    """Any change ends in a sound checkpoint or a BadCheckpoint, and we are never laxer than the library."""
    data = GOOD[:place] + bytes([value]) + more + GOOD[place + 1 :]
    folder = write(tmp_path, data)
    try:
        with read_folder(folder) as checkpoint:
            shapes = {name: tensor.shape for name, tensor in checkpoint.tensors.items()}
    except BadCheckpoint:
        return
    with safe_open(folder / "model.safetensors", "numpy") as theirs:  # must not raise
        names = list(theirs.keys())
        assert {name: tuple(theirs.get_slice(name).get_shape()) for name in names} == shapes


def test_the_library_is_not_enough(tmp_path: Path) -> None:
    """Why the header is read here: it takes a key that stands twice, and the second meaning wins."""
    path = write(tmp_path, BAD["tensor twice"][0]) / "model.safetensors"
    try:
        with safe_open(path, "numpy") as theirs:
            assert list(theirs.keys()) == ["a"]
    except SafetensorError:
        pytest.fail("the library refuses it now; think again about reading headers here")


def test_tensors_outlive_the_checkpoint(tmp_path: Path) -> None:
    checkpoint: Checkpoint = read_folder(write(tmp_path, GOOD))
    values = checkpoint.raw("a")
    checkpoint.close()
    assert values.sum() == 0
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(AssertionError, match="is closed"):
        checkpoint.raw("a")


def test_a_large_honest_header(tmp_path: Path) -> None:
    """20,000 tensors, as a mixture of experts has them in one file."""
    header = {f"model.layers.{i}.mlp.experts.w": entry("U8", (1,), (i, i + 1)) for i in range(20_000)}
    text = json.dumps(header).encode()
    data = struct.pack("<Q", len(text)) + text + bytes(20_000)
    with read_folder(write(tmp_path, data)) as checkpoint:
        assert len(checkpoint.tensors) == 20_000
