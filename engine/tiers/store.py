"""The disk's part of the cache: segments, and an index in SQLite that says what lies where and who uses it.

    folder/index.db       segments (name, who computed it, bytes, last used) · blocks (hash, kind, place) ·
                          uses (hash, which chat)
    folder/NAME.segment   segments.py

It is a cache: nothing is synced, every operation has a connection of its own, and an index that can't be read
is begun anew. A row is written after its file and goes after it, so a kill at any moment leaves a miss, or a
file that nobody knows, which the next start removes. Several processes may share the folder. Raises what
FAILED lists; disk.py knows what to do then.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

from .segments import SUFFIX, Block, Place, Seal, erase, segment_path, write_segment

SCHEMA = """
CREATE TABLE IF NOT EXISTS segments
    (id INTEGER PRIMARY KEY, name TEXT UNIQUE, identity BLOB, bytes INTEGER, used REAL);
CREATE TABLE IF NOT EXISTS blocks
    (segment INTEGER, offset INTEGER, length INTEGER, hash BLOB, kind INTEGER, PRIMARY KEY (segment, offset))
    WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_hash ON blocks (hash);
CREATE TABLE IF NOT EXISTS uses (hash BLOB, chat TEXT, PRIMARY KEY (hash, chat)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_chat ON uses (chat);
"""
UNUSED = "SELECT segment, offset FROM blocks WHERE hash NOT IN (SELECT hash FROM uses)"
BUSY_S = 5.0  # how long another process may hold the index
ABANDONED_S = 600.0  # a file as old as that and in no index has no writer any more

FAILED = (OSError, sqlite3.Error, ValueError)  # what any of it may raise
Key = tuple[int, bytes]  # of a block: its kind and chain hash


class BlockStore:
    """All segments of a folder. Any thread may call."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._path = folder, folder / "index.db"

    def places(self, identity: bytes) -> dict[Key, Place]:
        """Where the blocks lie that were computed in one way."""
        rows = (
            "SELECT kind, hash, name, offset, length FROM blocks JOIN segments ON segment = id "
            "WHERE identity = ? ORDER BY id"
        )
        with self._open(reads=True) as db:
            return {
                (kind, chain_hash): Place(*where) for kind, chain_hash, *where in db.execute(rows, [identity])
            }

    def totals(self) -> tuple[int, int]:
        """Bytes and blocks of all, whoever computed them."""
        if not self._path.exists():
            return 0, 0
        with self._open(reads=True) as db:
            (size,) = db.execute("SELECT coalesce(sum(bytes), 0) FROM segments").fetchone()
            (count,) = db.execute("SELECT count(*) FROM blocks").fetchone()
            return size, count

    def use(self, chat: str, hashes: Iterable[bytes]) -> None:
        """A chat's prefix goes through these blocks, whether they are here yet or not."""
        with self._open() as db:
            db.executemany("INSERT OR IGNORE INTO uses VALUES (?, ?)", [(each, chat) for each in hashes])

    def add(self, seal: Seal, blocks: Sequence[Block]) -> list[Place]:
        """A new segment; where its blocks lie."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        places = write_segment(self.folder, seal, blocks)
        name, size = places[0].segment, sum(place.length for place in places)
        with self._open() as db:
            row = (name, seal.identity, size, time.time())
            insert = "INSERT INTO segments (name, identity, bytes, used) VALUES (?, ?, ?, ?)"
            id = db.execute(insert, row).lastrowid
            rows = [
                (id, place.offset, place.length, block.chain.chain_hash, block.kind)
                for place, block in zip(places, blocks)
            ]
            db.executemany("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", rows)
        return places

    def touch(self, segments: Iterable[str]) -> None:
        """They were used now."""
        with self._open() as db:
            rows = [(time.time(), name) for name in segments]
            db.executemany("UPDATE segments SET used = ? WHERE name = ?", rows)

    def trim(self, most: int) -> list[str]:
        """Remove the segments that were used longest ago, until the rest has at most so many bytes; which."""
        with self._open() as db:
            rows = db.execute("SELECT name, bytes FROM segments ORDER BY used DESC, id").fetchall()
            gone = []
            for name, size in rows:
                most -= size
                if most < 0:
                    gone.append(name)
            self._remove(db, gone)
            return gone

    def forget(self, chat: str) -> list[Place]:
        """Remove what only this chat used; which."""
        return self._forget(lambda db: db.execute("DELETE FROM uses WHERE chat = ?", [chat]))

    def keep_only(self, chats: Iterable[str]) -> list[Place]:
        """Remove what none of these chats uses, and what a writer left behind."""

        def forget(db: sqlite3.Connection) -> None:
            known = set(chats)
            found = [chat for (chat,) in db.execute("SELECT DISTINCT chat FROM uses")]
            db.executemany(
                "DELETE FROM uses WHERE chat = ?", [(chat,) for chat in found if chat not in known]
            )

        return self._forget(forget) if self._path.exists() else []

    def clear(self) -> None:
        """Remove everything."""
        for path in (*self.folder.glob(f"*{SUFFIX}"), *self.folder.glob("index.db*")):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove files that are in no index, unless somebody may be writing them now, and uses of nothing."""
        with self._open() as db:
            db.execute("DELETE FROM uses WHERE hash NOT IN (SELECT hash FROM blocks)")
            known = {name + SUFFIX for (name,) in db.execute("SELECT name FROM segments")}
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(FileNotFoundError):
                if path.name not in known and time.time() - path.stat().st_mtime > ABANDONED_S:
                    path.unlink()

    # ---- inside

    @contextmanager
    def _open(self, reads: bool = False) -> Iterator[sqlite3.Connection]:
        """The index in a transaction; one that only reads waits for nobody."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
        try:
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA secure_delete = ON")
            db.executescript(SCHEMA)
            db.execute("BEGIN" if reads else "BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
        finally:
            db.close()

    def _forget(self, uses: Callable[[sqlite3.Connection], object]) -> list[Place]:
        """Drop uses, then what nobody uses. Its bytes go first: whoever is killed here does it once more."""
        with self._open() as db:
            uses(db)
            rows = db.execute(
                f"SELECT name, offset, length FROM blocks JOIN segments ON segment = id "
                f"WHERE (segment, offset) IN ({UNUSED}) ORDER BY id, offset"
            )
            gone = [Place(*row) for row in rows]
            for _, places in groupby(gone, lambda place: place.segment):
                erase(self.folder, list(places))
            db.execute(f"DELETE FROM blocks WHERE (segment, offset) IN ({UNUSED})")
            empty = "SELECT name FROM segments WHERE id NOT IN (SELECT segment FROM blocks)"
            self._remove(db, [name for (name,) in db.execute(empty)])
            return gone

    def _remove(self, db: sqlite3.Connection, names: Sequence[str]) -> None:
        for name in names:
            with suppress(ValueError):  # a foreign index
                segment_path(self.folder, name).unlink(missing_ok=True)
            db.execute("DELETE FROM blocks WHERE segment = (SELECT id FROM segments WHERE name = ?)", [name])
            db.execute("DELETE FROM segments WHERE name = ?", [name])
