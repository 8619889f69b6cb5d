"""Packed weights kept on disk: the same bits come back, and never others, whatever happened to the file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import kernels
from engine import LLM, EngineConfig, Message, Request, SamplingParams, packed_cache
from engine.checkpoints import read_gguf
from engine.fitting.model_facts import fingerprint
from engine.models import Decoder, load_decoder, read_config
from engine.packed_cache import PackedCache, open_cache
from kernels import Ops, Packed
from tests.source_tree import ROOT
from tests.tiny_models import write_tiny_gguf

Arrays = dict[str, list[np.ndarray]]


@pytest.fixture(scope="module")
def ops() -> Iterator[Ops]:
    ops = kernels.select("cpu", "numba", threads=1)
    yield ops
    ops.close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Formats of several kinds in one file, and biases."""
    path = tmp_path_factory.mktemp("packed") / "tiny.gguf"
    return write_tiny_gguf(path, architecture="qwen2", quantization="Q4_K", tied=False).path


@pytest.fixture(autouse=True)
def _small_models_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_cache, "LEAST", 0)
    monkeypatch.setattr(packed_cache, "LEFT_FREE", 0)
    monkeypatch.setattr(packed_cache, "LEFT_SHARE", 10**9)
    monkeypatch.setattr(packed_cache, "PATIENCE_S", 600.0)  # however busy the disk is


def load(model: Path, folder: Path, ops: Ops) -> tuple[Decoder, PackedCache]:
    """A model's weights, by way of the folder. What is new is not written yet."""
    with read_gguf(model) as checkpoint:
        config = read_config(checkpoint)
        assert ops.storage is not None
        cache = PackedCache(folder, checkpoint, fingerprint(checkpoint), ops.storage)
        return load_decoder(checkpoint, config, ops, 64, lambda part: None, cache=cache), cache


def keep(model: Path, folder: Path, ops: Ops) -> Path:
    """Load and write; the file."""
    _, cache = load(model, folder, ops)
    cache.save()
    cache.close()
    return cache.path


def matrices(decoder: Decoder) -> list[Packed]:
    layers = [(layer.qkv, layer.output, *layer.feed_forward) for layer in decoder.layers]
    return [decoder.embedding, decoder.head, *chain.from_iterable(layers)]


def bits(decoder: Decoder) -> bytes:
    """All that was packed."""
    return b"".join(
        bytes(packed.bias) + b"".join(part.data.tobytes() for part in packed.parts)
        for packed in matrices(decoder)
    )


def is_mapped(decoder: Decoder) -> bool:
    """Whether nothing was packed."""
    mapped = {not part.data.flags.writeable for packed in matrices(decoder) for part in packed.parts}
    assert len(mapped) == 1, "all or nothing"
    return mapped.pop()


def test_the_same_bits_come_back(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    fresh, cache = load(tiny, tmp_path / "new" / "folder", ops)
    assert not is_mapped(fresh)
    cache.save()
    cache.close()
    again, _ = load(tiny, cache.path.parent, ops)
    assert is_mapped(again)
    assert bits(again) == bits(fresh)
    assert all(part.data.ctypes.data % 64 == 0 for packed in matrices(again) for part in packed.parts)
    assert [path.name for path in cache.path.parent.iterdir()] == [cache.path.name]
    before = cache.path.stat()
    keep(tiny, cache.path.parent, ops)
    after = cache.path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "written once"
    if os.name == "posix":
        assert cache.path.stat().st_mode & 0o777 == 0o600
        assert cache.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_loaded_model_answers_alike(tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = EngineConfig(num_chats=1, max_num_seqs=1, max_step_tokens=64, threads=1)
    request = Request((Message("user", "Hello"),), SamplingParams(temperature=0, max_tokens=12))
    answers = []
    for _ in range(2):
        llm = LLM.load(tiny, config, packed=tmp_path)
        answers.append([getattr(part, "token_ids", ()) for part in llm.submit(request)])
        llm.close()
    assert answers[0] == answers[1]
    assert len(list(tmp_path.glob("*.packed"))) == 1
    assert not caplog.records


def test_the_reference_backend_keeps_nothing(tiny: Path, tmp_path: Path) -> None:
    config = EngineConfig(num_chats=1, max_num_seqs=1, max_step_tokens=64, backend="reference")
    LLM.load(tiny, config, packed=tmp_path).close()
    assert not list(tmp_path.iterdir())


def test_a_cut_file_is_a_miss(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    path = keep(tiny, tmp_path, ops)
    whole, fresh = path.read_bytes(), bits(load(tiny, tmp_path / "none", ops)[0])
    for length in (0, 1, 8, 19, 20, 21, 500, len(whole) // 2, len(whole) - 64, len(whole) - 1):
        path.write_bytes(whole[:length])
        decoder, _ = load(tiny, tmp_path, ops)
        assert not is_mapped(decoder), length
        assert bits(decoder) == fresh
    path.write_bytes(whole + b"\0")
    assert not is_mapped(load(tiny, tmp_path, ops)[0])
    keep(tiny, tmp_path, ops)
    assert path.read_bytes() == whole, "a miss is written anew"


def test_a_changed_byte_is_a_miss(
    tiny: Path, tmp_path: Path, ops: Ops, caplog: pytest.LogCaptureFixture
) -> None:
    """Everywhere but in the gaps before an array, which nobody reads."""
    path = keep(tiny, tmp_path, ops)
    whole, fresh = path.read_bytes(), bits(load(tiny, tmp_path / "none", ops)[0])
    misses = 0
    for place in [*range(24), *range(24, len(whole), len(whole) // 150)]:
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        decoder, _ = load(tiny, tmp_path, ops)
        assert bits(decoder) == fresh, place
        misses += not is_mapped(decoder)
    assert misses > 160
    assert "damaged" in caplog.text


def test_a_header_that_lies_is_a_miss(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    """Whole by its checksum, but not ours."""
    path = keep(tiny, tmp_path, ops)
    whole = path.read_bytes()
    _, length, _ = packed_cache.HEAD.unpack(whole[: packed_cache.HEAD.size])
    header = json.loads(whole[packed_cache.HEAD.size :][:length])
    name = next(iter(header["entries"]))
    entry = header["entries"][name]
    dtype, shape, place, crc = entry["arrays"][1]
    for arrays in (
        [],
        [[dtype, shape, 2**40, crc]],
        [["|O", shape, place, crc]],
        [[dtype, [-1, 5], place, crc]],
    ):
        lie = {**header, "entries": {**header["entries"], name: {**entry, "arrays": arrays}}}
        write_lie(path, lie, whole)
        assert not is_mapped(load(tiny, tmp_path, ops)[0])
    for lie in ([], {}, {"key": header["key"]}, {**header, "entries": 5}, {**header, "bytes": "5"}):
        write_lie(path, lie, whole)
        assert not is_mapped(load(tiny, tmp_path, ops)[0])


def write_lie(path: Path, header: object, whole: bytes) -> None:
    text = json.dumps(header).encode()
    head = packed_cache.HEAD.pack(packed_cache.MAGIC, len(text), packed_cache.zlib.crc32(text)) + text
    path.write_bytes(head.ljust(packed_cache._up(len(head)), b"\0") + whole[-(2**20) :])


def test_another_program_or_layout_is_a_miss(
    tiny: Path, tmp_path: Path, ops: Ops, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keep(tiny, tmp_path, ops)
    with monkeypatch.context() as changed:
        changed.setattr(packed_cache, "SOURCES", "another text")
        assert not is_mapped(load(tiny, tmp_path, ops)[0])
    with monkeypatch.context() as changed:
        changed.setattr(type(ops.storage), "layout", "another one")
        assert not is_mapped(load(tiny, tmp_path, ops)[0])
        assert keep(tiny, tmp_path, ops) == path, "it takes the old one's place"
    assert not is_mapped(load(tiny, tmp_path, ops)[0])


def test_another_model_under_the_same_name_is_a_miss(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    model, other = tmp_path / "model.gguf", tmp_path / "other.gguf"
    write_tiny_gguf(other, architecture="qwen2", quantization="Q4_K", tied=False, seed=1)
    model.write_bytes(tiny.read_bytes())
    os.utime(model, ns=(1, 1))
    folder = tmp_path / "kept"
    keep(model, folder, ops)
    assert is_mapped(load(model, folder, ops)[0])
    os.utime(model, ns=(1, 2))
    assert not is_mapped(load(model, folder, ops)[0])
    assert other.stat().st_size == model.stat().st_size
    model.write_bytes(other.read_bytes())
    os.utime(model, ns=(1, 1))  # as a copy that keeps times would have it
    decoder, _ = load(model, folder, ops)
    assert not is_mapped(decoder)
    assert bits(decoder) == bits(load(other, folder, ops)[0])


def test_models_that_are_gone_leave_nothing(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    model, folder = tmp_path / "model.gguf", tmp_path / "kept"
    model.write_bytes(tiny.read_bytes())
    gone = keep(model, folder, ops)
    (folder / "junk.packed").write_bytes(b"junk")
    folders = {folder / "folder.packed", folder / "folder.partial"}  # nobody's, and no reason to stop
    for each in folders:
        each.mkdir()
        os.utime(each, (1, 1))
    old, young = folder / "a.partial", folder / "b.partial"
    old.touch()
    os.utime(old, (1, 1))
    young.touch()
    model.unlink()
    path = keep(tiny, folder, ops)
    assert gone != path
    assert set(folder.iterdir()) == {path, young, *folders}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes among its files")
def test_pipes_are_not_waited_for(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    path = keep(tiny, tmp_path, ops)
    path.unlink()
    os.mkfifo(path)
    os.mkfifo(tmp_path / "other.packed")
    assert not is_mapped(load(tiny, tmp_path, ops)[0])
    assert keep(tiny, tmp_path, ops) == path
    assert is_mapped(load(tiny, tmp_path, ops)[0])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="Windows lets nobody delete a mapped file")
def test_a_model_that_is_removed_while_it_is_loaded(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(tiny.read_bytes())
    with read_gguf(model) as checkpoint:
        model.unlink()
        assert open_cache(tmp_path / "kept", checkpoint, fingerprint(checkpoint), ops) is None


def test_nothing_is_written_where_the_disk_is_nearly_full(
    tiny: Path, tmp_path: Path, ops: Ops, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(packed_cache, "LEFT_FREE", 2**62)
    keep(tiny, tmp_path, ops)
    assert not list(tmp_path.iterdir())
    assert "not kept" in caplog.text and "bytes" not in caplog.text


def test_small_models_are_not_kept(
    tiny: Path, tmp_path: Path, ops: Ops, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_cache, "LEAST", 2**40)
    keep(tiny, tmp_path, ops)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_costs_nothing(
    tiny: Path, tmp_path: Path, ops: Ops, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    decoder, cache = load(tiny, tmp_path / "file" / "folder", ops)
    cache.save()
    cache.close()
    assert not is_mapped(decoder)
    assert "could not be kept" in caplog.text


def test_a_writer_that_is_stopped_leaves_nothing(
    tiny: Path, tmp_path: Path, ops: Ops, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, pieces = threading.Event(), packed_cache._pieces
    _, cache = load(tiny, tmp_path, ops)

    def slow(*args: object) -> Iterator[memoryview]:
        for piece in pieces(*args):
            begun.set()
            cache._stopped.wait(30)
            yield piece

    monkeypatch.setattr(packed_cache, "_pieces", slow)
    monkeypatch.setattr(packed_cache, "PATIENCE_S", 0.0)
    cache.save()
    assert begun.wait(30)
    assert list(tmp_path.iterdir())
    cache.close()
    assert not list(tmp_path.iterdir())


def test_many_write_at_once(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    fresh = bits(load(tiny, tmp_path / "none", ops)[0])
    caches = [load(tiny, tmp_path, ops)[1] for _ in range(6)]
    for cache in caches:
        cache.save()
    seen = [load(tiny, tmp_path, ops)[0] for _ in range(5)]
    for cache in caches:
        cache.close()
    seen.append(load(tiny, tmp_path, ops)[0])
    assert is_mapped(seen[-1])
    assert {bits(decoder) for decoder in seen} == {fresh}
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_mapped_outlives_its_file(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    path = keep(tiny, tmp_path, ops)
    decoder, _ = load(tiny, tmp_path, ops)
    before = bits(decoder)
    path.unlink()
    keep(tiny, tmp_path, ops)
    assert bits(decoder) == before


# Loads a model in a process of its own and writes; sys.argv: model, folder, what happens while it writes.
WRITER = """
import os, resource, signal, sys, threading
from pathlib import Path
import kernels
from engine import packed_cache
from tests.engine.test_packed_cache import load
packed_cache.LEAST, packed_cache.LEFT_FREE, packed_cache.LEFT_SHARE = 0, 0, 10**9
packed_cache.PATIENCE_S = 600.0
model, folder, event = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
_, cache = load(model, folder, kernels.select("cpu", "numba", threads=1))
if event == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
elif event == "killed":
    pieces = packed_cache._pieces
    def deadly(*args):
        for i, piece in enumerate(pieces(*args)):
            if i == 9:
                os.kill(os.getpid(), signal.SIGKILL)
            yield piece
    packed_cache._pieces = deadly
cache.save()
cache.close()
print("done")
"""


def writer(model: Path, folder: Path, event: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(model), str(folder), event]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_write_at_once(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    both = [writer(tiny, tmp_path, "nothing") for _ in range(2)]
    assert [process.communicate() for process in both] == [("done\n", "")] * 2
    decoder, cache = load(tiny, tmp_path, ops)
    assert is_mapped(decoder)
    assert bits(decoder) == bits(load(tiny, tmp_path / "none", ops)[0])
    assert list(tmp_path.iterdir()) == [cache.path]


@pytest.mark.skipif(os.name != "posix", reason="needs limits and signals of POSIX")
def test_a_full_disk_and_a_killed_writer_leave_a_miss(tiny: Path, tmp_path: Path, ops: Ops) -> None:
    out, complaint = writer(tiny, tmp_path, "full").communicate()
    assert out == "done\n" and "could not be kept" in complaint, complaint
    assert not list(tmp_path.iterdir())
    process = writer(tiny, tmp_path, "killed")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    (partial,) = tmp_path.iterdir()
    assert partial.suffix == ".partial" and partial.stat().st_size > 0
    fresh, cache = load(tiny, tmp_path, ops)
    assert not is_mapped(fresh)
    os.utime(partial, (1, 1))
    cache.save()
    cache.close()
    assert list(tmp_path.iterdir()) == [cache.path]
    assert bits(load(tiny, tmp_path, ops)[0]) == bits(fresh)
