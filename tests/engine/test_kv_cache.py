"""The pools: a block is one run, and memory is taken only by blocks that were written."""

from __future__ import annotations

import psutil
import torch

from engine.kv_cache import make_kv_cache, untouched
from engine.models import ModelConfig
from kernels import select

SHAPE = ModelConfig("llama", 3, 64, 4, 2, 16, 128, 100, 256, 1e-5, 1e4, 16, False, True)


def test_a_block_is_one_contiguous_run_and_every_layer_looks_into_it() -> None:
    ops = select("cpu", "reference")
    cache = make_kv_cache(SHAPE, ops, num_blocks=5, block_size=32)
    (pool,) = cache.pools
    assert pool.shape == (5, 3, 2, 2, 32 * 16)
    assert pool.is_contiguous() and not pool.any()
    assert [layer.layer for layer in cache.layers] == [0, 1, 2]
    assert all(layer.pool is pool for layer in cache.layers)


def test_memory_is_taken_as_blocks_are_written() -> None:
    before = psutil.Process().memory_info().rss
    pool = untouched((64, 2**24), torch.float16)  # 2 GiB
    assert psutil.Process().memory_info().rss - before < 2**28
    assert pool.data_ptr() % 64 == 0
    pool[3] = 1.0
    assert psutil.Process().memory_info().rss - before < 2**28
    assert pool[3].all() and not pool[2, -4096:].any() and not pool[4, :4096].any()
