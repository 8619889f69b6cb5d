"""Memory goes back to the system block by block, and is there again when it is written."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys

import numpy as np
import psutil
import pytest

from engine.running import give_back as module
from engine.running.give_back import can_give_back, give_back
from engine.running.kv_cache import make_kv_cache, runs
from kernels import select
from tests.engine.running.test_kv_cache import make_config


def resident() -> int:
    return int(psutil.Process().memory_info().rss)


def test_whole_pages_of_a_range_go_back() -> None:
    memory = np.ones(64 * mmap.PAGESIZE + 2 * mmap.PAGESIZE, np.uint8)
    begin = -memory.ctypes.data % mmap.PAGESIZE
    address = memory.ctypes.data + begin
    before = resident()
    assert give_back(address + 1, 64 * mmap.PAGESIZE) == 63 * mmap.PAGESIZE  # two are only touched
    assert give_back(address + 1, mmap.PAGESIZE) == 0
    if before - resident() < 32 * mmap.PAGESIZE:
        pytest.fail("the system did not take them")
    assert memory[begin] == 1 and memory[begin + 64 * mmap.PAGESIZE] == 1
    memory[begin : begin + 64 * mmap.PAGESIZE] = 2
    assert memory[begin : begin + 64 * mmap.PAGESIZE].min() == 2


def test_blocks_go_back_and_their_neighbours_stay() -> None:
    cache = make_kv_cache(make_config(0, 0), select("cpu", "reference"), num_blocks=[40], block_size=128)
    (pool,) = cache.pools
    size = pool[0].numel() * pool.dtype.itemsize
    pool[:] = 1.0
    before = resident()
    given = cache.give_back(0, [*range(3, 20), 30])
    assert cache.gives_back and size * 18 - 4 * mmap.PAGESIZE <= given <= size * 18
    assert before - resident() > given // 2
    for block in (0, 2, 20, 29, 31, 39):
        assert pool[block].min() == 1.0
    pool[3:20] = 3.0
    assert pool[3:20].min() == 3.0


def test_runs() -> None:
    assert list(runs([3, 4, 5, 9])) == [(3, 6), (9, 10)]
    assert list(runs([])) == [] and list(runs([1])) == [(1, 2)]


@pytest.mark.parametrize(
    ("system", "library", "said"),
    [
        ("linux", None, ("madvise", 4096, 8192, 4)),
        ("darwin", None, ("madvise", 4096, 8192, 5)),
        ("win32", "kernel32", ("DiscardVirtualMemory", 4096, 8192)),
    ],
)
def test_each_system_s_call(
    monkeypatch: pytest.MonkeyPatch, system: str, library: str | None, said: tuple[object, ...]
) -> None:
    calls: list[tuple[object, ...]] = []

    class Library:
        def __init__(self, name: str | None) -> None:
            assert name == library

        def __getattr__(self, name: str) -> object:
            def call(address: ctypes.c_void_p, size: ctypes.c_size_t, *more: int) -> int:
                calls.append((name, address.value, size.value, *more))
                return 0

            return call

    monkeypatch.setattr(module.ctypes, "CDLL", Library)
    monkeypatch.setattr(module.mmap, "PAGESIZE", 4096)
    monkeypatch.setattr(module.sys, "platform", system)
    assert can_give_back() and give_back(4095, 9000) == 8192 and calls == [said]
    monkeypatch.setattr(module.sys, "platform", "plan9")
    assert not can_give_back() and give_back(4095, 9000) == 0


THREADS_FREE = """
import sys, threading
import numpy as np, psutil
from engine.running.give_back import share_one_heap, trim

def use() -> None:
    held = [np.ones(1 << 20, np.uint8) for _ in range(8)], np.ones(16 << 20, np.uint8)
    del held
    kept.append(np.ones(1000, np.uint8))

if sys.argv[1] == "shared":
    share_one_heap()
kept = []
large = np.ones(31 << 20, np.uint8)
del large  # from now on the library keeps up to twice that
before = psutil.Process().memory_info().rss
threads = [threading.Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
trim()
print(psutil.Process().memory_info().rss - before >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc has a heap for each thread")
def test_what_threads_freed_goes_back() -> None:
    def kept(how: str) -> int:
        command = [sys.executable, "-c", THREADS_FREE, how]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    assert kept("shared") < 8 < kept("apart")
