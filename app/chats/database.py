"""One SQLite file, one connection, one thread: every read, write and checkpoint of the file happens there.

A second connection that writes or checkpoints can corrupt a WAL database before SQLite 3.51.3. Commits are
synced, so what a call returned from is on the disk; what a full disk refuses raises StoreError and changes
nothing, and works again once there is space. Deleted content is overwritten. A damaged file is kept aside,
never emptied.

The rest of the app gets sqlite-utils from here, where it is imported without pandas.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from engine import in_words

from ..errors import StoreError


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Imports in here find no pandas: sqlite-utils would spend half a second on it, to know one type."""
    if "pandas" in sys.modules:
        yield
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["pandas"]


with _without_pandas():
    from sqlite_utils import Database as Database, Migrations as Migrations

T = TypeVar("T")
MEMORY = Path(":memory:")  # SQLite's own name for no file at all
PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "fullfsync=ON",  # macOS: past the disk's own cache
    "secure_delete=ON",
    "foreign_keys=ON",
    "temp_store=MEMORY",
    "trusted_schema=ON",  # triggers may call our functions
    "busy_timeout=2000",
)
ALWAYS_CHECKED = 2**27  # bytes; a larger file only after a kill: that takes half a second for each gigabyte
FULL_BELOW = 2**20  # a quota or limit is reported as a write that failed; so is a disk with less than this
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
DAMAGED_INDEX = 267  # SQLITE_CORRUPT_VTAB
UNREADABLE = (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError, struct.error)
# after these the connection is opened anew: what it remembers may not be what the disk has
SUSPECT = (sqlite3.SQLITE_IOERR, *DAMAGED)


@dataclass(frozen=True, slots=True)
class Form:
    """What a file's tables are. `mend` makes its index anew out of the rest, if it is not `indexed`."""

    migrations: Migrations
    functions: Mapping[str, Callable[[str], str]] = field(default_factory=dict)  # that its triggers call
    indexed: Callable[[Database], bool] = lambda db: True
    mend: Callable[[Database], None] = lambda db: None
    tidy: Callable[[Database], bool] = lambda db: False  # does some of what purging it takes; is there more?

    @property
    def version(self) -> int:
        """How many steps lead to it."""
        return len(self.migrations.pending(Database(memory=True, execute_plugins=False)))


class DatabaseFile:
    """Any thread may call; calls run one after another. `notice` says what was found at the start.

    Without a path it is kept in memory alone, and gone when it is closed.
    """

    def __init__(self, path: Path | None, form: Form) -> None:
        self.path, self.form, self.version, self.notice = path or MEMORY, form, form.version, ""
        self._db: Database | None = None
        self._file_number = 0  # of the file that is open
        self._thread = ThreadPoolExecutor(1, "octavo-database")
        try:
            self._call(self._start)
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[[Database], T]) -> T:
        """Run `work` as one transaction; when this returns it is on the disk."""
        # at once with the right to write: SQLite waits for that, but not once something has been read
        return self._call(lambda: self._within("BEGIN IMMEDIATE", work))

    def read(self, work: Callable[[Database], T]) -> T:
        """Run `work`, which changes nothing, on one state of the file, whoever writes meanwhile."""
        return self._call(lambda: self._within("BEGIN", work))

    def purge(self) -> None:
        """Leave no copy of deleted content in the index and the write-ahead log."""
        while self.transact(self.form.tidy):
            pass

        def run() -> None:
            self._db = self._db or self._connect()
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

        self._call(run)

    def close(self) -> None:
        """Finish what was asked for and let go of the file."""
        self._call(self._disconnect)
        self._thread.shutdown()

    def _call(self, work: Callable[[], T]) -> T:
        try:
            called = self._thread.submit(self._guarded, work)
        except RuntimeError as error:
            raise StoreError("The chats are closed: Octavo is ending.") from error
        return called.result()

    # ---- in the thread

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return self._mended(work)
        except UNREADABLE as error:
            if _code(error) in SUSPECT:
                self._disconnect()
            raise StoreError(self._explain(error)) from error

    def _mended(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) != DAMAGED_INDEX:
                raise
        self._within("BEGIN IMMEDIATE", self.form.mend)
        return work()

    def _within(self, begin: str, work: Callable[[Database], T]) -> T:
        db = self._db = self._db or self._connect()
        with db.conn as connection:  # commits, or takes all back
            connection.execute(begin)
            before = connection.total_changes
            result = work(db)
            if connection.total_changes > before:
                self._check_place()
            return result

    def _start(self) -> None:
        if self.path == MEMORY:
            self._open()
            return
        killed = self.path.with_name(self.path.name + "-wal").exists()  # a clean end removes it
        if killed and not self.path.exists():
            self._keep_aside()
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            sound = self._open(check=killed or size < ALWAYS_CHECKED)
        except sqlite3.Error as error:
            if _code(error) not in DAMAGED:
                raise
            sound = False
        if not sound:
            self._keep_aside()
            self._open()

    def _open(self, check: bool = False) -> bool:
        """Connect, and bring the file into this program's form; False where `check` finds it damaged."""
        self._db = self._connect()
        complaint = self._db.execute("PRAGMA quick_check(1)").fetchone()[0] if check else "ok"
        if complaint != "ok" and "fts5" not in complaint.lower():
            return False
        written_by = self._db.execute("PRAGMA user_version").fetchone()[0]
        if written_by > self.version:
            raise StoreError(
                f"{self.path} was written by a newer Octavo (its form is {written_by}, this one knows "
                f"{self.version}). Update Octavo, or set OCTAVO_HOME to another folder."
            )
        self.form.migrations.apply(self._db)
        self._db.execute(f"PRAGMA user_version={self.version}")
        if complaint != "ok" or not self.form.indexed(self._db):
            self._within("BEGIN IMMEDIATE", self.form.mend)
        return True

    def _connect(self) -> Database:
        connection = sqlite3.connect(self.path)
        try:
            for name, function in self.form.functions.items():
                connection.create_function(name, 1, function, deterministic=True)
            if self.path != MEMORY:
                self.path.chmod(0o600)
                self._file_number = self.path.stat().st_ino
            connection.row_factory = sqlite3.Row
            # a damaged text is shown as far as it can be read, and keeps nobody from the others
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            for pragma in PRAGMAS:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return Database(connection, execute_plugins=False)
        except BaseException:
            connection.close()
            raise

    def _check_place(self) -> None:
        """Refuse to write to a file that was deleted, or replaced by another: nobody would ever read it."""
        if self.path == MEMORY:
            return
        if not self.path.exists() or self.path.stat().st_ino != self._file_number:
            raise StoreError(
                f"This could not be saved: {self.path} was deleted or replaced. Start Octavo again."
            )

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    def _keep_aside(self) -> None:
        self._disconnect()
        kept = self.path.with_name(f"{self.path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
        for suffix in ("", "-wal", "-shm"):
            file = self.path.with_name(self.path.name + suffix)
            if file.exists():
                file.rename(kept.with_name(kept.name + suffix))
        self.notice = f"{self.path} is damaged. It was kept as {kept.name}, and an empty one was begun."

    def _explain(self, error: Exception) -> str:
        code = _code(error)
        if code == sqlite3.SQLITE_BUSY:
            return f"Another program works with {self.path}. Close it and try again."
        if code not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return f"{self.path} can't be used: {error}."
        free = shutil.disk_usage(self.path.parent).free
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and free < FULL_BELOW):
            return f"This could not be saved: the disk is full ({in_words(free)} free). Make some room."
        return f"This could not be saved: {error} ({in_words(free)} free). Try again."


def _code(error: Exception) -> int:
    """SQLite's primary result code, 0 for other errors."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
