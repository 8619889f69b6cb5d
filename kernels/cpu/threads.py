"""The threads that run a kernel together: each on a core of its own, asleep in compiled code between runs.

They are all ours: the caller waits, and its own thread is never pinned, for other libraries' threads inherit
their maker's mask. Nobody needs the interpreter's lock to begin, for which those who hear the last step's
tokens may stand in line; and a run is one call of compiled code, which no signal leaves half handed out. They
sleep on the interpreter's own locks, which every system has. This file knows no model.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable

import numpy as np

from ..cores import physical_cores
from .machine import arrive, call, compiled, i64, lock, unlock

# What a run is: the kernel (0: the threads end), its arguments, how many threads have ended it; two functions
# of the interpreter, the caller's lock, each thread's lock.
KERNEL, ARGUMENTS, ENDED, ACQUIRE, RELEASE, CALLER, LOCKS = range(7)
CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)  # calls compiled code without the interpreter's lock
PYTHON = ctypes.pythonapi
PYTHON.PyThread_allocate_lock.restype = ctypes.c_void_p
PYTHON.PyThread_free_lock.argtypes = [ctypes.c_void_p]
PYTHON.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]


def yield_address() -> int:
    """The address of the system's function that offers the core to other threads."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return _address(function)


def _pin(core: int) -> None:
    """A woken thread starts on its waker's core and stays there for milliseconds, unless it has a place.
    Where that is not possible: never mind.
    """
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            kernel = ctypes.WinDLL("kernel32")
            kernel.SetThreadAffinityMask(kernel.GetCurrentThread(), ctypes.c_size_t(1 << core))
        elif hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {core})


def make_serve() -> Callable[[int, int, int], None]:
    """What a thread does all its life: wait, run a kernel, say so."""

    def serve(run: int, thread: int, n: int) -> None:
        while True:
            lock(i64(run)[ACQUIRE], i64(run)[LOCKS + thread])
            if i64(run)[KERNEL] == 0:
                return
            call(i64(run)[KERNEL], i64(run)[ARGUMENTS], thread, n)
            if arrive(run + 8 * ENDED) == n - 1:
                unlock(i64(run)[RELEASE], i64(run)[CALLER])

    return serve


def make_start() -> Callable[[int, int, int], None]:
    """Wake all `n` threads and wait until they have ended the run."""

    def start(run: int, _: int, n: int) -> None:
        i64(run)[ENDED] = 0
        for thread in range(n):
            unlock(i64(run)[RELEASE], i64(run)[LOCKS + thread])
        lock(i64(run)[ACQUIRE], i64(run)[CALLER])

    return start


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _closed_lock() -> int:
    made = PYTHON.PyThread_allocate_lock()
    PYTHON.PyThread_acquire_lock(made, 1)
    return int(made)


def _live(run: np.ndarray, thread: int, count: int, core: int) -> None:
    _pin(core)
    CALL(compiled(make_serve))(run.ctypes.data, thread, count)


def _stop(run: np.ndarray, threads: list[threading.Thread]) -> None:
    run[KERNEL] = 0
    for own in run[LOCKS:]:
        PYTHON.PyThread_release_lock(ctypes.c_void_p(int(own)))
    for thread in threads:
        thread.join()
    for own in run[CALLER:]:
        PYTHON.PyThread_free_lock(int(own))


class Team:
    """`count` threads that run a kernel together."""

    def __init__(self, count: int) -> None:
        assert count >= 1
        cores = physical_cores()
        self.count = count
        functions = PYTHON.PyThread_acquire_lock, PYTHON.PyThread_release_lock
        locks = [_closed_lock() for _ in range(1 + count)]
        self._run = np.array([0, 0, 0, *map(_address, functions), *locks], np.int64)
        self._start = CALL(compiled(make_start))
        self._threads = [
            threading.Thread(
                target=_live,
                args=(self._run, i, count, cores[i % len(cores)]),
                name=f"kernel-{i}",
                daemon=True,
            )
            for i in range(count)
        ]
        for thread in self._threads:
            thread.start()
        # also called when the team is forgotten, and at the interpreter's end
        self.close = weakref.finalize(self, _stop, self._run, self._threads)

    def run(self, kernel: int, arguments: int) -> None:
        """kernel(arguments, thread, number of threads) on every thread at once, both by their address;
        returns when all have returned.
        """
        assert self.close.alive, "the team is closed"
        self._run[KERNEL], self._run[ARGUMENTS] = kernel, arguments
        self._start(self._run.ctypes.data, 0, self.count)
