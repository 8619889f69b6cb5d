"""The team of threads: all at once, errors and interrupts reach the caller, nothing is left running."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading

import pytest

from kernels.cpu.threads import Team, default_threads, physical_cores


def test_all_threads_run_together_and_again() -> None:
    team = Team(3)
    together, seen = threading.Barrier(3), []

    def work(thread: int, count: int) -> None:
        together.wait()  # would never open if they ran one after the other
        seen.append((thread, count))

    for _ in range(3):
        team.run(work)
    assert sorted(seen) == [(thread, 3) for thread in range(3) for _ in range(3)]
    team.close()


def test_an_error_reaches_the_caller_once_all_have_returned() -> None:
    team, ended = Team(2), []

    def work(thread: int, count: int) -> None:
        if thread == 0:
            raise MemoryError("no room")
        ended.append(thread)

    with pytest.raises(MemoryError, match="no room"):
        team.run(work)
    assert ended == [1]
    team.run(lambda thread, count: ended.append(thread))
    assert sorted(ended) == [0, 1, 1]
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
            team.run(work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(ended) == [0, 1]
    team.run(lambda thread, count: ended.append(thread))
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
    team.run(lambda thread, count: found.append(os.sched_getaffinity(0)))
    assert os.sched_getaffinity(0) == before
    assert all(len(cores) == 1 for cores in found)
    team.close()


def test_the_default_leaves_a_core_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[Team.__module__]
    monkeypatch.setattr(module, "cpu_quota", lambda: 64)
    for cores, wanted in ((1, 1), (2, 2), (4, 4), (5, 4), (16, 15)):
        monkeypatch.setattr(module, "physical_cores", lambda cores=cores: list(range(cores)))
        assert default_threads() == wanted
    monkeypatch.setattr(module, "cpu_quota", lambda: 3)
    assert default_threads() == 3


def test_physical_cores_are_ones_this_process_may_use() -> None:
    assert 1 <= len(physical_cores()) <= (os.cpu_count() or 1)
