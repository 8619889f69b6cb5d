"""Norms, and queries, keys and values on their way into pages, interpreted, against plain torch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import KVLayer, Norm, Rope
from kernels.reference import ReferenceOps
from kernels.triton import rows
from tests.kernels.triton.closeness import assert_close
from tests.kernels.triton.paged import LAYER, Heads, make_batch, make_pool

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def norm_of(width: int) -> Norm:
    return Norm(torch.rand(width) + 0.5, 1e-5)


def normed(x: Tensor, norm: Norm) -> Tensor:
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.gain


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 576, 1100])
def test_norm(width: int, dtype: torch.dtype) -> None:
    x, norm = torch.randn(5, width) * 3, norm_of(width)
    out = torch.full((5, width), torch.nan, dtype=dtype)
    rows.rms_norm(x, norm, out)
    assert_close(out, normed(x, norm), dtype)


def test_norm_of_wanted_rows() -> None:
    x, norm, wanted = torch.randn(6, 96), norm_of(96), torch.tensor([4, 0, 4, 2**30])
    out = torch.full((3, 96), torch.nan)
    rows.rms_norm(x, norm, out, wanted)
    assert_close(out, normed(x[wanted[:3]], norm), torch.float32)


def test_what_is_normed_is_added() -> None:
    x, norm, hidden = torch.randn(4, 200), norm_of(200), torch.randn(4, 200)
    wanted = hidden.double() + 0.5 * normed(x, norm)
    rows.add_normed(x, norm, hidden, 0.5)
    assert_close(hidden, wanted, torch.float32)


@pytest.mark.parametrize("norms", ["none", "heads", "tokens", "keys only"])
@pytest.mark.parametrize("turned", [64, 32, 24, 0], ids="{} turn".format)
def test_rope_and_norms(norms: str, turned: int) -> None:
    """Of whole heads, a part of them, nothing; each head normalized, or all of a token together."""
    heads = Heads(queries=6, keys=2)
    q_norm, k_norm = {
        "none": (None, None),
        "heads": (norm_of(64), norm_of(64)),
        "tokens": (norm_of(6 * 64), norm_of(2 * 64)),
        "keys only": (None, norm_of(64)),
    }[norms]
    got, wanted = write(heads, torch.float32, torch.float32, turned, q_norm, k_norm)
    for mine, theirs in zip(got, wanted):
        assert_close(mine, theirs, torch.float32)


@pytest.mark.parametrize("kv_dtype", [torch.float32, torch.int8], ids=str)
def test_values_are_normalized_too(kv_dtype: torch.dtype) -> None:
    norms = norm_of(64), norm_of(64), norm_of(64)
    got, wanted = write(Heads(queries=6, keys=2), torch.float32, kv_dtype, 64, *norms)
    assert_close(got[0], wanted[0], torch.float32)
    assert (got[1].float() - wanted[1].float()).abs().max() < (1.1 if kv_dtype == torch.int8 else 1e-5)


def test_queries_alone_write_nothing() -> None:
    heads, norm = Heads(queries=6, keys=2), norm_of(64)
    batch = make_batch(torch.tensor([[7, 3, 5, 1, 8]]), [3], [70], heads.block_size)
    values, _ = make_pool(heads, 9, torch.float32)
    kv, kept = KVLayer(values, LAYER, 0, heads.block_size, 6, 64), values.clone()
    angles, queries, results = torch.rand(100, 32), torch.randn(3, 6 * 64), []
    for ops in (rows, ReferenceOps()):
        q = torch.zeros(3, 6 * 64)
        ops.rope_write(batch, queries.clone(), Rope(angles.cos(), angles.sin()), kv, q, norm, None, None)
        results.append(q)
    assert_close(results[0], results[1].double(), torch.float32)
    assert torch.equal(values.nan_to_num(), kept.nan_to_num())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kv_dtype", [None, torch.int8, torch.float8_e4m3fn], ids=str)
@pytest.mark.parametrize("heads", [Heads(dim=96, block_size=16), Heads(queries=5, keys=5, dim=128)], ids=str)
def test_types_of_keys_and_values(heads: Heads, kv_dtype: torch.dtype | None, dtype: torch.dtype) -> None:
    got, wanted = write(heads, dtype, kv_dtype or dtype, heads.dim)
    assert_close(got[0], wanted[0], dtype)
    if kv_dtype is None:
        assert_close(got[1], wanted[1], dtype)
        return
    assert (got[2] == wanted[2]).float().mean() > 0.95  # scales; where float32 falls on the other side
    steps = (got[1].view(torch.int8).int() - wanted[1].view(torch.int8).int()).abs()
    assert steps.max() <= 1 and (steps == 0).float().mean() > 0.95


def write(
    heads: Heads,
    dtype: torch.dtype,
    kv_dtype: torch.dtype,
    turned: int,
    q_norm: Norm | None = None,
    k_norm: Norm | None = None,
    v_norm: Norm | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Queries, keys and values, scales of five tokens in two sequences: the kernel's and torch's."""
    new, contexts = [3, 2], [70, 2]
    tables = torch.tensor([[7, 3, 5, 1, 8], [2, 0, 0, 0, 0]])
    batch = make_batch(tables, new, contexts, heads.block_size)
    width = (heads.queries + 2 * heads.keys) * heads.dim
    qkv = torch.randn(6, width) * 2
    qkv[1, heads.queries * heads.dim :] = 0  # a token whose keys and values are nothing
    angles = torch.outer(torch.arange(100.0), 100 ** -(torch.arange(0, turned, 2) / max(turned, 1)))
    rope, results = Rope(angles.cos(), angles.sin()), []
    for mine in (True, False):
        values, scales = make_pool(heads, 9, kv_dtype)
        kv = KVLayer(values, LAYER, 0, heads.block_size, heads.queries, heads.dim, scales=scales)
        q = torch.full((6, heads.queries * heads.dim), torch.nan, dtype=dtype if mine else torch.float64)
        if mine:
            rows.rope_write(batch, qkv, rope, kv, q, q_norm, k_norm, v_norm)
        else:
            ops = ReferenceOps(dtype=torch.float64)
            ops.rope_write(replace(batch), qkv.double(), rope, kv, q, q_norm, k_norm, v_norm)
        assert q[5].isnan().all(), "a token beyond the step was written"
        slots = batch.slots[0][:5]
        block, place = slots // heads.block_size, slots % heads.block_size
        kept = values[:, LAYER].unflatten(-1, (heads.block_size, heads.dim))
        results.append([q[:5], kept[block, :, :, place]])
        if scales is not None:
            results[-1].append(scales[block, LAYER, :, :, place])
        untouched = torch.ones(9, heads.block_size, dtype=torch.bool)
        untouched[block, place] = False
        rest = kept.transpose(1, 3)[untouched].float()
        assert (rest.isnan() | (rest == -128)).all() and len(rest), "a slot of nobody's was written"
    return results[0], results[1]
