"""The team of threads: all at once, an interrupt reaches the caller, nothing is left running."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import threading
from collections.abc import Callable

import pytest

from kernels.cores import physical_cores
from kernels.cpu.threads import CALL, Team


def run(team: Team, work: Callable[[int, int], None]) -> None:
    """work(thread, number of threads) as the kernel of a run."""
    kernel = CALL(lambda _, thread, count: work(thread, count))
    team.run(ctypes.cast(kernel, ctypes.c_void_p).value or 0, 0)


def test_all_threads_run_together_and_again() -> None:
    team = Team(3)
    together, seen = threading.Barrier(3), []

    def work(thread: int, count: int) -> None:
        together.wait()  # would never open if they ran one after the other
        seen.append((thread, count))

    for _ in range(3):
        run(team, work)
    assert sorted(seen) == [(thread, 3) for thread in range(3) for _ in range(3)]
    team.close()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system cannot signal a thread")
def test_an_interrupt_waits_for_the_threads_and_leaves_them_usable() -> None:
    team, together, ended = Team(2), threading.Barrier(2), []

    def work(thread: int, count: int) -> None:
        if thread == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        together.wait()
        ended.append(thread)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(team, work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(ended) == [0, 1]
    run(team, lambda thread, count: ended.append(thread))
    assert sorted(ended) == [0, 0, 1, 1]
    team.close()


def test_a_closed_or_forgotten_team_leaves_no_thread() -> None:
    closed, forgotten = Team(2), Team(2)
    threads = closed._threads + forgotten._threads
    closed.close()
    closed.close()
    del forgotten
    gc.collect()
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not pin threads")
def test_the_callers_own_thread_is_never_pinned() -> None:
    before = os.sched_getaffinity(0)
    team = Team(len(before))
    found = []
    run(team, lambda thread, count: found.append(os.sched_getaffinity(0)))
    assert os.sched_getaffinity(0) == before
    assert all(len(cores) == 1 for cores in found)
    team.close()


def test_physical_cores_are_ones_this_process_may_use() -> None:
    assert 1 <= len(physical_cores()) <= (os.cpu_count() or 1)
