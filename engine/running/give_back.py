"""Memory that other programs may have while its addresses stay ours: it reads as zeros, or as it was, when it
is used again.

The system's own call, in whole pages of its size. Run on Linux only; the rows for macOS and Windows follow
their manuals and were not run.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import sys

# system -> (library, function, what it is told beside address and size)
WAYS: dict[str, tuple[str | None, str, tuple[int, ...]]] = {
    "linux": (None, "madvise", (4,)),  # MADV_DONTNEED: gone at once
    "darwin": (None, "madvise", (5,)),  # MADV_FREE: gone when someone needs it
    "win32": ("kernel32", "DiscardVirtualMemory", ()),
}
M_ARENA_MAX = -8  # of glibc's malloc.h


def can_give_back() -> bool:
    """Whether this system has a way."""
    return sys.platform in WAYS


def give_back(address: int, num_bytes: int) -> int:
    """Let the system have the whole pages of this range; how many bytes it took."""
    begin = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (address + num_bytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if begin >= end or sys.platform not in WAYS:
        return 0
    library, name, more = WAYS[sys.platform]
    call = getattr(ctypes.CDLL(library), name)
    failed = call(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), *more)
    return 0 if failed else end - begin


def share_one_heap() -> None:
    """From now on new threads take memory from one heap, where the C library has one for each: what a thread
    freed at its own heap's end would stay ours, and `trim` does not reach it. Heaps that are there already
    go on being handed out, to the threads of a loader, too: best said before the first thread begins.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # musl has one heap
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def trim() -> None:
    """Let the system have what was freed and is kept for the next who asks, where the C library can."""
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # musl has no such thing
            ctypes.CDLL(None).malloc_trim(0)
