"""One installer at a time in one folder: an operating system's lock on a file, gone when its holder is.

A second installer says that it waits, and does. Knows nothing of what is done while the lock is held.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .console import say

POLL_S = 0.2


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; its folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if not _take(file):
            say("Another installer is at work here; waiting for it.")
            while not _take(file):
                time.sleep(POLL_S)
        yield


def _take(file: IO[bytes]) -> bool:
    """Whether the lock is ours now. A file system that knows no locks counts as yes."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True


def is_held(path: Path) -> bool:
    """Whether another process holds the lock file at `path`."""
    try:
        with path.open("r+b") as file:
            return not _take(file)
    except FileNotFoundError:
        return False
