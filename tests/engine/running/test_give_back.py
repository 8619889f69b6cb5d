"""Memory goes back to the system block by block, and is there again when it is written."""

from __future__ import annotations

import ctypes
import mmap

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
