"""Attention over pages, interpreted, against plain torch in float64; what it must not read is poison."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.triton import attention
from kernels.triton.attention import Workspace, plan_splits
from kernels.triton.targets import INTERPRETER, TARGETS, Target
from tests.kernels.triton.closeness import assert_close
from tests.kernels.triton.paged import Heads, Step, make_step

HALF, BRAIN, FULL = torch.float16, torch.bfloat16, torch.float32
INT8, E4M3 = torch.int8, torch.float8_e4m3fn
ANSWERS = [1, 1, 1], [130, 1, 64]  # new tokens and contexts: many tiles, one token, exactly one tile
MIXED = [40, 1, 9, 3], [170, 100, 9, 65]  # a chunk after a prefix, an answer, a whole prompt, drafts


def attended(step: Step, splits: int = 0, target: Target = INTERPRETER) -> Tensor:
    work, out = Workspace.of(torch.device("cpu")), torch.full_like(step.q, torch.nan)
    attention.attention(step.batch, step.q, step.kv, out, target, work, splits)
    assert not work.arrived.any(), "the next launch begins with counters of zero"
    assert out[len(step.wanted) :].isnan().all(), "a row beyond the step's tokens was written"
    return out[: len(step.wanted)]


@pytest.mark.parametrize("dtype", [FULL, HALF, BRAIN])
@pytest.mark.parametrize("new,contexts", [ANSWERS, MIXED], ids=["answers", "mixed"])
def test_equals_plain_torch(new: list[int], contexts: list[int], dtype: torch.dtype) -> None:
    step = make_step(new, contexts, dtype)
    assert_close(attended(step), step.wanted, dtype)


@pytest.mark.parametrize("splits", [2, 4, 32])
def test_parts_of_a_context_are_merged(splits: int) -> None:
    """Empty ones among them: 64 tokens are a single tile."""
    step = make_step(*ANSWERS)
    assert_close(attended(step, splits), step.wanted, FULL)


@pytest.mark.parametrize(
    "heads",
    [
        Heads(queries=2, keys=2, dim=128),
        Heads(queries=14, keys=2),  # seven to one
        Heads(queries=4, keys=1, dim=256),
        Heads(queries=2, keys=1, dim=512),
        Heads(queries=4, keys=2, dim=96),
        Heads(block_size=16),
        Heads(block_size=32, soft_cap=5.0),
        Heads(sinks=True),
        Heads(window=20, block_size=16, sinks=True, soft_cap=3.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("splits", [1, 2])
def test_shapes_of_heads(heads: Heads, splits: int) -> None:
    step = make_step([1, 12], [100, 75], heads=heads)
    assert_close(attended(step, splits), step.wanted, FULL)


@pytest.mark.parametrize("window", [1, 16, 63, 64, 65, 1000])
def test_windows(window: int) -> None:
    step = make_step([30, 1, 9], [130, 90, 9], heads=Heads(window=window, block_size=16))
    assert_close(attended(step), step.wanted, FULL)


@pytest.mark.parametrize("kv_dtype", [INT8, E4M3])
@pytest.mark.parametrize("dtype,dim,block_size", [(HALF, 64, 64), (BRAIN, 128, 16), (BRAIN, 96, 64)])
def test_keys_and_values_of_8_bits(
    kv_dtype: torch.dtype, dtype: torch.dtype, dim: int, block_size: int
) -> None:
    step = make_step([1, 10], [130, 40], dtype, Heads(dim=dim, block_size=block_size), kv_dtype)
    assert_close(attended(step, 2), step.wanted, dtype)


@pytest.mark.parametrize("splits", [1, 3])
def test_without_matrix_units(splits: int) -> None:
    """sm_75: answers are sums of products; prompts are left out."""
    step = make_step([1, 2], [40, 17], HALF)
    assert_close(attended(step, splits, TARGETS["sm_75"]), step.wanted, HALF)
    step = make_step([9], [9], HALF)
    assert attended(step, splits, TARGETS["sm_75"]).isnan().all()


def test_a_context_is_attended_alike_in_any_pages_and_steps() -> None:
    """Scattered in blocks of 16 or 64, or in one; in chunks or whole; split or not."""
    whole = make_step([150], [150])
    kept = whole.kv.pool[whole.batch.block_tables[0][0, :3], 1].unflatten(-1, (64, 64))
    in_order = kept.permute(1, 2, 0, 3, 4).flatten(2, 3)  # [2, heads, tokens, dim]
    results = [attended(whole)]
    for size, chunk in ((16, 150), (192, 150), (64, 50), (16, 1)):
        heads, parts = Heads(block_size=size), []
        for end in range(chunk, 151, chunk)[-2:]:
            step = make_step([chunk], [end], heads=heads)
            for place, block in enumerate(step.batch.block_tables[0][0, : -(-end // size)]):
                step.kv.pool[block, 1] = in_order[:, :, place * size : (place + 1) * size].flatten(2)
            step.q[:-1] = whole.q[end - chunk : end]
            parts.append((end, attended(step, splits=2)))
        results.append(torch.cat([part for _, part in parts]))
        assert_close(results[-1], results[0][150 - len(results[-1]) :], FULL)


def test_splits_fill_the_card_and_no_more() -> None:
    cores = 132
    assert plan_splits(programs=8, tiles=512, cores=cores) == 32  # one chat, 32k tokens: fill it
    assert plan_splits(programs=8, tiles=1, cores=cores) == 1
    assert plan_splits(programs=8 * 64, tiles=32, cores=cores) == 1  # 64 chats do without
    assert plan_splits(programs=264, tiles=512, cores=cores) == 1
