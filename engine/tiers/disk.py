"""The disk tier of a loaded model: two threads write and read blocks, and are not asked what is there.

Whatever goes wrong is a block that is not here: it is computed again. After a failed write (the disk is full)
nothing is written for a while. How fast the disk gives blocks back is measured with every read.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import groupby
from operator import attrgetter

from ..scheduling.block_pool import Chain
from .segments import Block, Contents, Place, Seal, read_records
from .store import FAILED, BlockStore, Key

QUEUE = 32 << 20  # bytes that wait to be written; more are not taken
LEFT_FREE = 2 << 30  # bytes of the disk that stay free
REST_S = 60.0  # after a failed write
LOOK_S = 0.05  # until it is worth asking again whether there is room in the queue
FIRST_GUESS = 150e6  # bytes a second, before anything was read: a slow disk
MEASURED = 8 << 20  # bytes of what is there that are read at the start, to measure

log = logging.getLogger("octavo.engine")


class Disk:
    """Blocks that were computed as `seal` says. The engine's thread calls, unless a method says otherwise."""

    def __init__(self, store: BlockStore, seal: Seal, quota: int) -> None:
        self.quota, self.hits, self.bytes_per_s = quota, 0, FIRST_GUESS
        self.totals = 0, 0  # bytes and blocks of the whole folder, as they were last seen
        self._store, self._seal = store, seal
        self._places: dict[Key, Place] = {}
        self._pending: dict[Key, Block] = {}
        self._queued, self._resting = 0, 0.0
        self._writer, self._reader = (ThreadPoolExecutor(1, f"octavo-{name}") for name in ("write", "read"))
        self._open()

    # ---- what is here

    def has(self, kind: int, chain: Chain) -> bool:
        """Whether a block is here, or is being written. For any thread."""
        return (kind, chain.chain_hash) in self._places or (kind, chain.chain_hash) in self._pending

    def load(self, wanted: Sequence[tuple[int, Chain]]) -> Future[list[Contents | None]]:
        """Read blocks, in a thread; None for those that are not here, or not as they were written."""
        return self._reader.submit(self._load, list(wanted))

    def seconds(self, num_bytes: int) -> float:
        """How long they take to load."""
        return num_bytes / self.bytes_per_s

    def doubt(self, factor: float) -> None:
        """Its speed may not be what was measured last."""
        self.bytes_per_s *= factor

    # ---- what comes in, and goes

    @property
    def wait_s(self) -> float:
        """How long until more can be taken; 0: now."""
        resting = self._resting - time.monotonic()
        return max(0.0, resting, LOOK_S if self._queued >= QUEUE else 0.0)

    def save(self, blocks: list[Block]) -> None:
        """Write blocks to a segment of their own, in a thread."""
        self._pending |= {(block.kind, block.chain.chain_hash): block for block in blocks}
        self._queued += sum(block.num_bytes for block in blocks)
        self._submit(self._write, blocks)

    def use(self, chat: str, hashes: Iterable[bytes]) -> None:
        """See BlockStore."""
        self._submit(self._store.use, chat, list(hashes))

    def forget(self, chat: str) -> None:
        """See BlockStore; also what is being written now."""

        def forget() -> None:
            self._lose(self._store.forget(chat))

        self._submit(forget)

    def clear(self) -> None:
        """Remove everything, also what other models have there; done when this returns. Raises OSError."""

        def clear() -> None:
            self._places.clear()
            self._store.clear()
            self.totals = 0, 0

        self._writer.submit(clear).result()

    def close(self, patience_s: float) -> None:
        """Write what waits, as far as there is time for it, and end the threads."""
        with contextlib.suppress(RuntimeError):  # it is closed
            wait([self._writer.submit(lambda: None)], patience_s)
        for pool in (self._writer, self._reader):
            pool.shutdown(cancel_futures=True)

    def _open(self) -> None:
        try:
            self._places = self._store.places(self._seal.identity)
        except FAILED as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                return
            log.warning("The index in %s can't be read (%s); it is begun anew.", self._store.folder, error)
            with contextlib.suppress(OSError):
                self._store.clear()
        self._submit(self._store.sweep)
        self._reader.submit(self._measure)

    def _submit(self, work: Callable[..., object], *args: object) -> None:
        def done() -> None:
            try:
                work(*args)
                self.totals = self._store.totals()
            except FAILED as error:
                log.warning("Blocks on the disk, %s: %s.", self._store.folder, error)

        with contextlib.suppress(RuntimeError):  # it is closed
            self._writer.submit(done)

    # ---- from here on: the two threads

    def _measure(self) -> None:
        """Learn from the youngest segment how long a block takes."""
        places = [*self._places.values()]
        places = [place for place in places if place.segment == places[-1].segment]
        while sum(place.length for place in places) > MEASURED and len(places) > 1:
            places.pop()
        with contextlib.suppress(OSError, ValueError):
            began = time.perf_counter()
            for record in read_records(self._store.folder, places) if places else ():
                self._seal.prove(record)
            self._learn(sum(place.length for place in places), began)

    def _learn(self, size: int, began: float) -> None:
        if size:
            rate = size / max(time.perf_counter() - began, 1e-6)
            self.bytes_per_s = rate if self.bytes_per_s == FIRST_GUESS else (self.bytes_per_s + rate) / 2

    def _write(self, blocks: list[Block]) -> None:
        size = sum(block.num_bytes for block in blocks)
        keys = [(block.kind, block.chain.chain_hash) for block in blocks]
        try:
            self._make_room(size)
            self._places |= dict(zip(keys, self._store.add(self._seal, blocks), strict=True))
        except FAILED:
            self._resting = time.monotonic() + REST_S
            raise
        finally:
            self._queued -= size
            for key in keys:
                self._pending.pop(key, None)

    def _make_room(self, size: int) -> None:
        self._store.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        total, _ = self._store.totals()
        free = shutil.disk_usage(self._store.folder).free
        allowed = min(self.quota, total + free - LEFT_FREE)
        if size > allowed:
            raise OSError(
                errno.ENOSPC, f"{size:,} bytes are more than the {max(0, allowed):,} that may be used"
            )
        if total + size > allowed:
            gone = set(self._store.trim(allowed - size))
            self._lose(place for place in [*self._places.values()] if place.segment in gone)

    def _load(self, wanted: list[tuple[int, Chain]]) -> list[Contents | None]:
        began, size = time.perf_counter(), 0
        found: dict[Key, Contents] = {}
        places = {}
        for kind, chain in wanted:
            key = kind, chain.chain_hash
            if block := self._pending.get(key):
                found[key] = block.contents
            elif place := self._places.get(key):
                places[place] = kind, chain
        for _, group in groupby(places, attrgetter("segment")):
            together = list(group)
            try:
                records = read_records(self._store.folder, together)
            except (OSError, ValueError):
                self._lose(together)
                continue
            for place, record in zip(together, records):
                kind, chain = places[place]
                if (contents := self._seal.open(record, kind, chain)) is None:
                    self._lose([place])
                else:
                    found[kind, chain.chain_hash] = contents
                    size += len(contents)
        self._learn(size, began)
        if size:
            self._submit(self._store.touch, {place.segment for place in places})
        self.hits += len(found)
        return [found.get((kind, chain.chain_hash)) for kind, chain in wanted]

    def _lose(self, places: Iterable[Place]) -> None:
        gone = set(places)
        for key, place in [*self._places.items()]:
            if place in gone:
                self._places.pop(key, None)
