"""Whole blocks from pool to pool, in the interpreter."""

from __future__ import annotations

import pytest
import torch

from kernels.triton import blocks

SHAPES = [(9, 2, 2, 3, 64), (9, 1, 2, 1, 8192), (9, 5236)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.uint8, torch.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_between_two_pools(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    card, host = (torch.randint(0, 100, (n, *shape[1:])).to(dtype) for n in (9, 4))
    before = host.clone()
    blocks.copy(card, host, [8, 1, 1], [0, 3, 2])
    assert torch.equal(host, torch.stack([card[8], before[1], card[1], card[1]]))


def test_in_one_pool_all_are_read_before_any_is_written() -> None:
    pool = torch.arange(6)[:, None].repeat(1, 64)
    blocks.copy(pool, pool, [1, 2], [2, 5])
    assert pool[:, 0].tolist() == [0, 1, 1, 3, 4, 2]


def test_in_one_pool() -> None:
    pool = torch.arange(6)[:, None].repeat(1, 64)
    blocks.copy(pool, pool, [1, 2], [4, 5])
    assert pool[:, 0].tolist() == [0, 1, 2, 3, 1, 2] and torch.equal(pool[:, 0], pool[:, -1])
