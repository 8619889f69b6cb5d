"""The pools: a block is one run, and memory is taken only by blocks that were written."""

from __future__ import annotations

import psutil
import torch

from engine.models.config import LayerConfig, ModelConfig
from engine.models.families import LLAMA, Names
from engine.running.kv_cache import kind_facts, make_kv_cache, untouched
from kernels import select


def make_config(*windows: int) -> ModelConfig:
    layers = tuple(LayerConfig(None, window) for window in windows)
    names = Names(LLAMA, "gguf")
    return ModelConfig(names, layers, 64, 4, 2, 16, 128, 100, 256, 1e-5, frozenset(), True, score_cap=5.0)


def test_a_block_is_one_contiguous_run_and_every_layer_looks_into_it() -> None:
    ops = select("cpu", "reference")
    cache = make_kv_cache(make_config(0, 0, 0), ops, num_blocks=[5], block_size=32)
    (pool,) = cache.pools
    assert pool.shape == (5, 3, 2, 2, 32 * 16)
    assert pool.is_contiguous() and not pool.any()
    assert [layer.layer for layer in cache.layers] == [0, 1, 2]
    assert all(layer.pool is pool for layer in cache.layers)


def test_layers_with_a_window_have_a_pool_of_their_own() -> None:
    config, ops = make_config(24, 24, 0, 24), select("cpu", "reference")
    full, window = kind_facts(config, torch.float32)
    assert (full.name, full.layers, full.window) == ("full", (2,), 0)
    assert (window.name, window.layers, window.window) == ("window", (0, 1, 3), 24)
    assert window.bytes_per_token == 3 * full.bytes_per_token == 3 * 2 * 2 * 16 * 4
    cache = make_kv_cache(config, ops, num_blocks=[5, 9], block_size=16)
    assert [pool.shape[:2] for pool in cache.pools] == [(5, 1), (9, 3)]
    assert [(layer.kind, layer.layer, layer.window) for layer in cache.layers] == [
        (1, 0, 24),
        (1, 1, 24),
        (0, 0, 0),
        (1, 2, 24),
    ]
    assert all(layer.pool is cache.pools[layer.kind] and layer.soft_cap == 5.0 for layer in cache.layers)


def test_memory_is_taken_as_blocks_are_written() -> None:
    before = psutil.Process().memory_info().rss
    pool = untouched((64, 2**24), torch.float16)  # 2 GiB
    assert psutil.Process().memory_info().rss - before < 2**28
    assert pool.data_ptr() % 64 == 0
    pool[3] = 1.0
    assert psutil.Process().memory_info().rss - before < 2**28
    assert pool[3].all() and not pool[2, -4096:].any() and not pool[4, :4096].any()
