"""A segment: some blocks in one file. Each is a record that says what it is and proves that it is whole.

    "OCTAVOKV" · mark · who computed it · chain hash · kind · number of tokens · bytes of the block
    the tokens · the block

The mark is a BLAKE2b of all after it, keyed by the installation: a cut, damaged, foreign or forged record is
not read. Its bytes are zeros once it was erased. Knows neither SQLite nor threads.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..scheduling.block_pool import Chain

HEAD = struct.Struct("<8s16s16s16sLLQ")
MAGIC, MARKED = b"OCTAVOKV", 24  # what the mark does not cover: the magic and itself
SUFFIX = ".segment"
NAME = re.compile(r"[0-9a-f]{32}")

Contents = bytes | bytearray | memoryview  # what a block's memory holds
Copied = Callable[[], Contents]  # the same, maybe on its way from the device: called, it waits for that


@dataclass(frozen=True, slots=True)
class Block:
    """A full block, taken from the device."""

    kind: int
    chain: Chain
    num_bytes: int
    copied: Copied

    @property
    def contents(self) -> Contents:
        """What it holds; waits until that is here."""
        return self.copied()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies."""

    segment: str
    offset: int
    length: int


class Seal:
    """Makes records and knows them again: those of one way to compute, in one installation."""

    def __init__(self, secret: bytes, computed_by: str) -> None:
        self._key = blake2b(secret, digest_size=32, person=b"octavo tiers").digest()
        self.identity = blake2b(computed_by.encode(), key=self._key, digest_size=16).digest()

    def head(self, kind: int, chain: Chain, contents: Contents) -> bytes:
        """All of a record but the block's own bytes."""
        numbers = len(chain.tokens), len(contents)
        head = HEAD.pack(MAGIC, b"", self.identity, chain.chain_hash, kind, *numbers)
        rest = head[MARKED:] + struct.pack(f"<{len(chain.tokens)}q", *chain.tokens)
        mark = blake2b(rest, key=self._key, digest_size=16)
        mark.update(contents)
        return MAGIC + mark.digest() + rest

    def open(self, record: memoryview, kind: int, chain: Chain) -> memoryview | None:
        """The block in a record, if it is the one that is wanted, and whole."""
        contents = record[HEAD.size + 8 * len(chain.tokens) :]
        head = record[: len(record) - len(contents)]
        return contents if head == self.head(kind, chain, contents) else None

    def prove(self, record: memoryview) -> bool:
        """Whether a record was written here, whatever it holds; as long as it takes to open it."""
        return record[8:MARKED] == blake2b(record[MARKED:], key=self._key, digest_size=16).digest()


def segment_path(folder: Path, name: str) -> Path:
    """A segment's file. Raises ValueError for a name that no segment has."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no segment's name")
    return folder / (name + SUFFIX)


def write_segment(folder: Path, seal: Seal, blocks: Sequence[Block]) -> list[Place]:
    """Put blocks into a new file; where each lies. Raises OSError, and leaves nothing then."""
    name, offset, places = secrets.token_hex(16), 0, []
    path = segment_path(folder, name)
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb", 0) as file:
            for block in blocks:
                contents = block.contents
                head = seal.head(block.kind, block.chain, contents)
                for part in (memoryview(head), memoryview(contents)):
                    while len(part):
                        part = part[file.write(part) :]
                length = len(head) + len(contents)
                places.append(Place(name, offset, length))
                offset += length
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return places


def read_records(folder: Path, places: Sequence[Place]) -> list[memoryview]:
    """Records of one segment. Raises OSError or ValueError."""
    path = segment_path(folder, places[0].segment)
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is no file")
    records = []
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for place in places:
            if not 0 < place.length <= size - place.offset or place.offset < 0:
                raise ValueError(f"{path} has {size} bytes, and a block should end at {place}")
            file.seek(place.offset)
            record = memoryview(bytearray(place.length))
            if file.readinto(record) != place.length:
                raise ValueError(f"{path} was cut while it was read")
            records.append(record)
    return records


def erase(folder: Path, places: Sequence[Place]) -> None:
    """Write zeros over records of one segment; where the file is gone, nothing is left to do."""
    try:
        with segment_path(folder, places[0].segment).open("r+b", buffering=0) as file:
            for place in places:
                file.seek(place.offset)
                file.write(bytes(place.length))
            os.fsync(file.fileno())
    except FileNotFoundError:
        pass
