"""The threads that walk a record together: plain Python threads, each on a core of its own, woken once per
step.

They are all ours: the caller waits, and its own thread is never pinned, for other libraries' threads inherit
their maker's mask. A run cannot be left half handed out, which would leave some threads polling for ever for
the others. This file knows no kernels.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from queue import SimpleQueue

Work = Callable[[int, int], None]  # (thread, number of threads): what all threads run at once
Errors = list[BaseException | None]
Job = tuple[Work, Errors, SimpleQueue[None]]  # each thread adds its error or None to the list, then rings


def physical_cores() -> list[int]:
    """One logical processor of each core this process may use; where that cannot be told, every processor it
    may use.
    """
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    seen: set[str] = set()
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text() if siblings.exists() else str(cpu)
        if core not in seen:
            seen.add(core)
            found.append(cpu)
    return found


def cpu_quota() -> int:
    """How many processors a container may keep busy (cgroup 2); a large number where nothing is said."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, int(quota) // int(period))
    return sys.maxsize


def default_threads() -> int:
    """The cores; one is left to the page and the rest of the machine when there are more than four."""
    cores = min(len(physical_cores()), cpu_quota())
    return cores - 1 if cores > 4 else cores


def yield_address() -> int:
    """The address of the system's function that offers the core to other threads."""
    if sys.platform == "win32":
        function = ctypes.WinDLL("kernel32").SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


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


def _serve(queue: SimpleQueue[Job | None], thread: int, count: int, core: int) -> None:
    _pin(core)
    while (job := queue.get()) is not None:
        work, errors, bell = job
        try:
            work(thread, count)
        except BaseException as error:  # handed to the caller
            errors.append(error)
        else:
            errors.append(None)
        bell.put(None)
        del job, work, errors, bell


def _hand_out(queues: list[SimpleQueue[Job | None]], job: Job | None) -> None:
    """To all or to none: inside one call of compiled code no signal handler, so no KeyboardInterrupt, comes
    between.
    """
    deque(map(SimpleQueue.put, queues, repeat(job)), maxlen=0)


def _stop(queues: list[SimpleQueue[Job | None]], threads: list[threading.Thread]) -> None:
    _hand_out(queues, None)
    for thread in threads:
        thread.join()


class Team:
    """`count` threads that run a function together."""

    def __init__(self, count: int) -> None:
        assert count >= 1
        cores = physical_cores()
        self.count = count
        self._queues: list[SimpleQueue[Job | None]] = [SimpleQueue() for _ in range(count)]
        self._threads: list[threading.Thread] = []
        # also called when the team is forgotten, and at the interpreter's end
        self.close = weakref.finalize(self, _stop, self._queues, self._threads)
        for i, queue in enumerate(self._queues):
            thread = threading.Thread(
                target=_serve, args=(queue, i, count, cores[i % len(cores)]), name=f"kernel-{i}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def run(self, work: Work) -> None:
        """work(thread, count) on every thread at once; returns when all have returned. An interrupt is raised
        after that.
        """
        assert self.close.alive, "the team is closed"
        errors: Errors = []
        bell: SimpleQueue[None] = SimpleQueue()
        _hand_out(self._queues, (work, errors, bell))
        interrupt = None
        while len(errors) < self.count:  # not a count of rings: an interrupt may swallow one
            try:
                bell.get()
            except BaseException as caught:
                interrupt = caught
        for error in (interrupt, *errors):
            if error is not None:
                raise error
