"""A model's weights as the backend packed them, kept on disk: the next load maps the file and packs nothing.

    "OCTAVOPK" · length and CRC-32 of the header · header, JSON · arrays, each from a 64-byte border on

One file per checkpoint, found by its path. The header's key says what was packed, and by which text of this
program. Whatever does not fit, the key, a length, the CRC-32 of any array, makes the file a miss. That guards
against damage, cut files and mixed versions, not against somebody who may write here: he could as well change
the program. Written beside, synced, renamed; what others have mapped is never changed. Knows no formats.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import mmap
import os
import secrets
import shutil
import stat
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernels import Ops, Packed, Storage, Stored

from .checkpoints import Checkpoint
from .fitting.cores import usable_cores
from .fitting.memory_plan import GIB, in_words
from .program_text import SOURCES

MAGIC, HEAD, BORDER = b"OCTAVOPK", struct.Struct("<8sQL"), 64
CHUNK = 16 << 20  # bytes written at once; between two, a writer can be stopped
LEAST = 256 << 20  # bytes: smaller models are packed sooner than a person can tell
LEFT_FREE, LEFT_SHARE = 2 * GIB, 10  # of the disk at least so much stays free, and a tenth
SAMPLES, SAMPLE = 16, 4096  # places of a checkpoint that are looked at, and bytes at each
ABANDONED_S = 3600.0  # an unfinished file as old as that has no writer any more
PATIENCE_S = 5.0  # how long `close` waits for a writer
NOT_THIS = (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error)  # from a foreign file

log = logging.getLogger("octavo.engine")


def packed_file(folder: Path, checkpoint: Path) -> Path:
    """Where the packed weights of a checkpoint are kept, if they are."""
    where = os.fsencode(str(checkpoint.absolute()))
    return folder / f"{blake2b(where, digest_size=16).hexdigest()}.packed"


class PackedCache:
    """The packed matrices of one checkpoint by name. Only `save` and `close` do not belong to the loader."""

    def __init__(self, folder: Path, checkpoint: Checkpoint, fingerprint: str, storage: Storage) -> None:
        self._storage, where = storage, str(checkpoint.path.absolute())
        self.path = packed_file(folder, checkpoint.path)
        self._key = {
            "checkpoint": where,
            **_identity(checkpoint),
            "header": fingerprint,
            "layout": storage.layout,
            "sources": SOURCES,
        }
        self._kept = self._read()
        self._new: dict[str, Packed] = {}
        self._stopped = threading.Event()
        self._writer: threading.Thread | None = None  # one that never ran would be a circle round all weights

    def get(self, name: str) -> Packed | None:
        """What was kept under that name; None: pack it."""
        return self._kept.get(name)

    def put(self, name: str, packed: Packed) -> None:
        """Remember what had to be packed."""
        self._new[name] = packed

    def save(self) -> None:
        """Write what is new, in a thread, and clear up. Nothing that goes wrong there matters to anyone."""
        self._writer = threading.Thread(target=self._write, name="octavo-packed", daemon=True)
        self._writer.start()

    def close(self) -> None:
        """Let the writer finish, or stop it where the disk is slow."""
        if self._writer and self._writer.is_alive():
            self._writer.join(PATIENCE_S)
            self._stopped.set()
            self._writer.join()

    def _read(self) -> dict[str, Packed]:
        try:
            with _open(self.path) as file:
                header, begin = _read_header(file)
                if header["key"] != self._key:
                    return {}
                if (found := file.seek(0, 2)) != begin + header["bytes"]:
                    raise ValueError(f"it has {found} bytes of {begin + header['bytes']}")
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # small pages do as well, a little slower
                    data.madvise(mmap.MADV_HUGEPAGE)
            kept, checks = {}, []
            for name, entry in header["entries"].items():
                arrays = []
                for dtype, shape, place, crc in entry["arrays"]:
                    array = np.frombuffer(data, dtype, math.prod(shape), begin + place).reshape(shape)
                    arrays.append(array)
                    checks.append((array, crc))
                kept[name] = self._storage.put_together(Stored(entry["facts"], tuple(arrays)))
            if not _whole(checks):
                raise ValueError("not the bytes that were written")
            return kept
        except FileNotFoundError:
            return {}
        except NOT_THIS as error:
            log.warning("%s is damaged (%s); the model is packed again.", self.path, error)
            return {}

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            _clear(self.path.parent)
        arrays = {name: self._storage.take_apart(packed) for name, packed in sorted(self._new.items())}
        size = sum(array.nbytes for entry in arrays.values() for array in entry.arrays)
        if not arrays or size < LEAST or self._stopped.is_set():
            return
        with contextlib.suppress(OSError):  # it was a miss; what reads it now goes on reading it
            self.path.unlink(missing_ok=True)
        partial = self.path.with_suffix(f".{secrets.token_hex(8)}.partial")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            disk = shutil.disk_usage(self.path.parent)
            spare = max(LEFT_FREE, disk.total // LEFT_SHARE)
            if disk.free - size < spare:
                words = "The packed weights are not kept: they need %s; %s are free, %s have to stay so."
                log.warning(words, *map(in_words, (size, disk.free, spare)))
                return
            with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb", 0) as file:
                for piece in _pieces(self._key, arrays):
                    if self._stopped.is_set():
                        return
                    while len(piece):
                        piece = piece[file.write(piece) :]
                os.fsync(file.fileno())
            partial.replace(self.path)
        except OSError as error:
            log.warning("The packed weights could not be kept at %s: %s.", self.path, error.strerror)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def open_cache(folder: Path | None, checkpoint: Checkpoint, fingerprint: str, ops: Ops) -> PackedCache | None:
    """The cache of a checkpoint in a folder; None where nothing can or shall be kept."""
    if folder is None or ops.storage is None:
        return None
    try:
        return PackedCache(folder, checkpoint, fingerprint, ops.storage)
    except OSError:  # a file was removed since it was mapped: it can be read, and never again be found
        return None


def _identity(checkpoint: Checkpoint) -> dict[str, Any]:
    """Sizes, times, and a look at some places of the weights: another model under the same name is noticed,
    also where it was given its predecessor's time; a few bytes changed elsewhere then are not.
    """
    files, look = [path.stat() for path in checkpoint.files], blake2b(digest_size=16)
    names = list(checkpoint.tensors)
    for name in names[:: max(1, len(names) // SAMPLES)]:
        look.update(checkpoint.raw(name).reshape(-1)[:SAMPLE].tobytes())
    times = [[facts.st_size, facts.st_mtime_ns] for facts in files]
    return {"files": times, "samples": look.hexdigest()}


def _open(path: Path) -> BinaryIO:
    """A regular file: whoever opens a pipe waits for its other end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("it is no file")
    return path.open("rb")


def _read_header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin."""
    magic, length, crc = HEAD.unpack(file.read(HEAD.size))
    text = file.read(min(length, CHUNK))
    if magic != MAGIC or len(text) != length or zlib.crc32(text) != crc:
        raise ValueError("its header is not whole")
    return json.loads(text), _up(HEAD.size + length)


def _up(place: int) -> int:
    return -(-place // BORDER) * BORDER


def _whole(checks: list[tuple[np.ndarray, int]]) -> bool:
    """Whether arrays have their CRC-32; this also brings the file into memory. The largest first."""
    checks.sort(key=lambda check: -check[0].nbytes)
    with ThreadPoolExecutor(usable_cores()) as pool:
        return all(pool.map(lambda check: zlib.crc32(check[0].data) == check[1], checks))


def _pieces(key: dict[str, Any], stored: dict[str, Stored]) -> Iterator[memoryview]:
    """The whole file, in order. Places are counted from the header's end."""
    entries: dict[str, Any] = {}
    end = 0
    for name, entry in stored.items():
        listed = []
        for array in entry.arrays:
            listed.append((array.dtype.str, array.shape, end, zlib.crc32(array.data)))
            end = _up(end + array.nbytes)
        entries[name] = {"facts": entry.facts, "arrays": listed}
    text = json.dumps({"key": key, "bytes": end, "entries": entries}).encode()
    head = HEAD.pack(MAGIC, len(text), zlib.crc32(text)) + text
    yield memoryview(head.ljust(_up(len(head)), b"\0"))
    for entry in stored.values():
        for array in entry.arrays:
            data = array.reshape(-1).view(np.uint8)
            for place in range(0, len(data), CHUNK):
                yield data[place : place + CHUNK].data
            yield memoryview(bytes(-len(data) % BORDER))


def _clear(folder: Path) -> None:
    """Away with what no load will read: forms of models that are gone, and what writers left behind."""
    for path in (*folder.glob("*.packed"), *folder.glob("*.partial")):
        with contextlib.suppress(OSError):  # another process was here, or it is a folder
            if _is_left(path):
                path.unlink()


def _is_left(path: Path) -> bool:
    if path.suffix == ".partial":
        return time.time() - path.stat().st_mtime > ABANDONED_S
    try:
        with _open(path) as file:
            return not Path(_read_header(file)[0]["key"]["checkpoint"]).exists()
    except FileNotFoundError:
        raise
    except NOT_THIS:
        return True
