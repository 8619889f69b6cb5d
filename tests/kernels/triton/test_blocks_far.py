"""Pools larger than 32 bits count: blocks that begin beyond 2^31 elements are read, written and copied like
near ones. The interpreter wraps as cards do. Most of such a pool is address space that nobody touches.
"""

from __future__ import annotations

import mmap
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import KVLayer, Rope
from kernels.triton import blocks, rows
from tests.kernels.triton.paged import LAYER, Heads, make_batch, make_pool, make_step
from tests.kernels.triton.test_attention import attended

APART = 2**30 + 64  # elements, of whatever kernels count in, from a block to the next: the third lies beyond
NO_RESERVE = 0x4000  # Linux: address space alone, however little memory there is
HEADS = Heads(queries=4, keys=2, dim=64)


def far(near: Tensor, unit: int) -> Tensor:
    """The same blocks, so far apart that a unit of so many bytes has numbers beyond 2^31."""
    stride = APART * unit // near.itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    space = mmap.mmap(-1, len(near) * stride * near.itemsize, flags)
    there = torch.frombuffer(space, dtype=torch.uint8).view(near.dtype)
    copy = there.as_strided(near.shape, (stride, *near[0].contiguous().stride()))
    copy.copy_(near)
    return copy


@pytest.mark.parametrize("block_size", [64, 16])
@pytest.mark.parametrize("kv_dtype", [None, torch.int8], ids=str)
def test_attention_reads_them(kv_dtype: torch.dtype | None, block_size: int) -> None:
    step = make_step([1, 9], [70, 9], torch.float16, replace(HEADS, block_size=block_size), kv_dtype)
    kv, unit = step.kv, 2  # numbers of 8 bits are loaded two by two
    scales = None if kv.scales is None else far(kv.scales, 2)
    there = replace(step, kv=replace(kv, pool=far(kv.pool, unit), scales=scales))
    assert torch.equal(attended(there, 2), attended(step, 2))


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=str)
def test_keys_and_values_are_written_to_them(kv_dtype: torch.dtype) -> None:
    batch = make_batch(torch.tensor([[2, 3, 1]]), [3], [130], HEADS.block_size)
    values, scales = make_pool(HEADS, 4, kv_dtype)
    angles, qkv = torch.rand(130, 32), torch.randn(3, (4 + 2 * 2) * 64)
    near = KVLayer(values, LAYER, 0, HEADS.block_size, 4, 64, scales=scales)
    there = replace(
        near, pool=far(values, kv_dtype.itemsize), scales=None if scales is None else far(scales, 2)
    )
    for kv in (near, there):
        q = torch.zeros(3, 4 * 64, dtype=torch.float16)
        rows.rope_write(batch, qkv, Rope(angles.cos(), angles.sin()), kv, q, None, None)
    written = values[1:3].float()
    assert (
        torch.equal(there.pool[1:3].float().nan_to_num(), written.nan_to_num()) and len(written.unique()) > 9
    )
    if scales is not None and there.scales is not None:
        assert torch.equal(there.scales[1:3].nan_to_num(), scales[1:3].nan_to_num())


def test_they_are_copied() -> None:
    pool = far(torch.arange(3, dtype=torch.int32)[:, None].repeat(1, 64), 4)
    blocks.copy(pool, pool, [2], [1])
    assert pool[:, 0].tolist() == [0, 2, 2] and torch.equal(pool[:, 0], pool[:, -1])
