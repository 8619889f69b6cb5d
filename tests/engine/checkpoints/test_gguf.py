"""The GGUF reader: what gguf-py writes reads back; what is damaged ends in a typed error, soon and small."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from engine.checkpoints import Checkpoint, TensorInfo, read_gguf
from engine.checkpoints.gguf_header import MAX_ELEMENTS, MAX_KEYS, MAX_STRING, MAX_TENSORS, TENSOR_TYPES
from engine.errors import BadCheckpoint, UnsupportedModel
from tests.engine.checkpoints.malformed_gguf import (
    ARCHITECTURE,
    BAD,
    BOOL,
    GOOD,
    HUGE,
    STRING,
    U8,
    array,
    build,
    key,
    tensor,
    text,
    u64,
)
from tests.tiny_models import write_tiny_gguf


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], Path]:
    path = tmp_path / "some.gguf"

    def write_bytes(data: bytes) -> Path:
        path.write_bytes(data)
        return path

    return write_bytes


@pytest.fixture
def small_memory() -> Iterator[None]:
    """What is read may not take more than a few times what the file holds."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20, f"{peak} bytes were allocated"


def test_there_are_many_bad_files() -> None:
    assert len(BAD) >= 60


@pytest.mark.parametrize("name", BAD)
def test_bad_file(name: str, write: Callable[[bytes], Path], small_memory: None) -> None:
    data, expected = BAD[name]
    with pytest.raises((BadCheckpoint, UnsupportedModel)) as raised:
        read_gguf(write(data))
    assert expected in str(raised.value) and "some.gguf" in str(raised.value)
    assert str(raised.value).isprintable() and len(str(raised.value)) < 600


def test_good_file_is_good(write: Callable[[bytes], Path]) -> None:
    """What the bad ones are made from."""
    with read_gguf(write(GOOD)) as checkpoint:
        assert checkpoint.metadata == {"general.architecture": "llama", "x.names": ["a", "Ġb"]}
        assert checkpoint.tensors["a"].shape == (2, 32)
        assert checkpoint.raw("a").shape == (2, 128)


@pytest.mark.parametrize("version", [2, 3])
def test_all_value_types(write: Callable[[bytes], Path], version: int) -> None:
    formats = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
    numbers = {kind: 7 if kind in (0, 2, 4, 10) else -2 for kind in formats}
    scalars = [key(f"s{k}", k, struct.pack("<" + f, numbers[k])) for k, f in formats.items()]
    lists = [array(f"a{k}", k, 3, struct.pack("<3" + f, *[numbers[k]] * 3)) for k, f in formats.items()]
    more = [key("yes", BOOL, b"\1"), array("flags", BOOL, 2, b"\0\1"), array("none", STRING, 0)]
    metadata = read_gguf(write(build(keys=(*scalars, *lists, *more), version=version))).metadata
    for kind, number in numbers.items():
        assert metadata[f"s{kind}"] == number and metadata[f"a{kind}"] == [number] * 3
    assert (metadata["yes"], metadata["flags"], metadata["none"]) == (True, [False, True], [])


def test_tensors_in_any_order_and_no_tensors(write: Callable[[bytes], Path]) -> None:
    tensors = (tensor("b", offset=256), tensor("c", (8,), offset=512), tensor("a"))
    with read_gguf(write(build(tensors=tensors, data=544))) as checkpoint:
        assert [t.name for t in sorted(checkpoint.tensors.values(), key=lambda t: t.offset)] == [
            "a",
            "b",
            "c",
        ]
    with read_gguf(write(build(tensors=(), data=0, keys=(ARCHITECTURE,), alignment=1))) as checkpoint:
        assert checkpoint.tensors == {}


def test_names_from_the_file_are_safe_to_print(write: Callable[[bytes], Path]) -> None:
    with pytest.raises(BadCheckpoint) as raised:
        read_gguf(write(build(tensors=(tensor("\x1b[2J\n\u202e", kind=99),))))
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    "data",
    [
        build(num_keys=MAX_KEYS + 1, data=64 * MAX_KEYS),
        build(num_tensors=MAX_TENSORS + 1, data=64 * MAX_TENSORS),
        build(keys=(array("x", U8, MAX_ELEMENTS + 1, bytes(MAX_ELEMENTS + 1)),)),
        build(
            keys=tuple(
                array(f"x{i}", U8, MAX_ELEMENTS // 2 + 1, bytes(MAX_ELEMENTS // 2 + 1)) for i in range(2)
            )
        ),
        build(keys=(key("x", STRING, text(bytes(MAX_STRING + 1))),)),
    ],
    ids=["keys", "tensors", "elements", "elements of all arrays", "string"],
)
def test_our_bounds_hold_where_the_file_is_large_enough(write: Callable[[bytes], Path], data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match=r"room for|more than"):
        read_gguf(write(data))


def test_cut_at_every_byte(tmp_path: Path, write: Callable[[bytes], Path]) -> None:
    """A file of a real shape, cut anywhere, is refused."""
    writer = gguf.GGUFWriter(tmp_path / "whole.gguf", "llama")
    writer.add_block_count(2)
    writer.add_token_list([f"token{i}" for i in range(20)])
    writer.add_token_scores([0.5] * 20)
    writer.add_chat_template("{{ messages }}")
    writer.add_tensor("token_embd.weight", np.ones((20, 32), np.float16))
    writer.add_tensor("output_norm.weight", np.ones(32, np.float32))
    finish(writer)
    whole = (tmp_path / "whole.gguf").read_bytes()
    end = max(t.end for t in read_gguf(write(whole)).tensors.values())
    tracemalloc.start()
    for size in range(end):
        with pytest.raises(BadCheckpoint):
            read_gguf(write(whole[:size]))
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(4, len(GOOD) - 1), st.binary(min_size=1, max_size=8))
@example(8, u64(HUGE))
def test_mutations_end_in_typed_errors_or_sound_tensors(
    write: Callable[[bytes], Path], at: int, patch: bytes
) -> None:
    data = GOOD[:at] + patch + GOOD[at + len(patch) :]
    try:
        with read_gguf(write(data)) as checkpoint:
            for name, info in checkpoint.tensors.items():
                assert info.end <= len(data) and checkpoint.raw(name).size == info.nbytes
    except (BadCheckpoint, UnsupportedModel):
        pass


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.gguf", tmp_path):
        with pytest.raises(BadCheckpoint, match=path.name):
            read_gguf(path)


def test_types_are_gguf_pys() -> None:
    theirs = {kind.value: (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert theirs == TENSOR_TYPES


@pytest.mark.parametrize("architecture,tokenizer", [("llama", "bpe"), ("llama", "spm"), ("qwen2", "bpe")])
def test_reads_what_gguf_py_writes(tmp_path: Path, architecture: str, tokenizer: str) -> None:
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path, architecture=architecture, tokenizer=tokenizer, quantization="Q4_1")
    compare_with_gguf_py(path)


def test_reads_the_starter_model(starter_model: Path) -> None:
    compare_with_gguf_py(starter_model)
    with read_gguf(starter_model) as checkpoint:
        assert len(checkpoint.tensors) == 272
        assert len(checkpoint.metadata["tokenizer.ggml.tokens"]) == 49152
        assert checkpoint.tensors["token_embd.weight"] == TensorInfo(
            "token_embd.weight", (49152, 576), "Q8_0", 1785664, 49152 * 612
        )


def compare_with_gguf_py(path: Path) -> None:
    theirs = gguf.GGUFReader(path)
    with read_gguf(path) as ours:
        fields = {name: field for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
        assert list(ours.metadata) == list(fields)
        for name, field in fields.items():
            assert ours.metadata[name] == plain(field.contents()), name
        assert set(ours.tensors) == {t.name for t in theirs.tensors}
        for t in theirs.tensors:
            info = ours.tensors[t.name]
            assert info.shape == tuple(int(n) for n in reversed(t.shape))
            assert (info.type, info.offset, info.nbytes) == (t.tensor_type.name, t.data_offset, t.n_bytes)
            assert np.array_equal(ours.raw(t.name).ravel(), t.data.view(np.uint8).ravel())


def plain(value: Any) -> Any:
    return [plain(v) for v in value] if isinstance(value, list) else getattr(value, "item", lambda: value)()


def finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_arrays_outlive_the_file_and_cannot_be_written(write: Callable[[bytes], Path]) -> None:
    path = write(GOOD)
    checkpoint: Checkpoint = read_gguf(path)
    raw = checkpoint.raw("a")
    checkpoint.close()
    checkpoint.close()
    assert not raw.any()
    with pytest.raises(ValueError):
        raw[0, 0] = 1
    del raw
    path.unlink()  # on Windows this fails while anything holds the file


def test_a_refused_file_is_let_go(write: Callable[[bytes], Path]) -> None:
    path = write(BAD["overlap"][0])
    with pytest.raises(BadCheckpoint):
        read_gguf(path)
    path.unlink()
