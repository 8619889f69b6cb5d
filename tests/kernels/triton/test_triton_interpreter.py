"""The interpreter, put right by interpreter.py, rounds and multiplies as torch does."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from tests.kernels.triton.closeness import assert_close

SMALL = [torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]
NUM = 4096


@triton.jit
def _cast(X, OUT, NUM: tl.constexpr):
    i = tl.arange(0, NUM)
    tl.store(OUT + i, tl.load(X + i).to(OUT.dtype.element_ty))


@triton.jit
def _sum_of_products(X, Y, OUT, NUM: tl.constexpr):
    i = tl.arange(0, NUM)
    x, y = tl.load(X + i), tl.load(Y + i)
    tl.store(OUT + i, tl.where(x < y, x * y + x, y))


@triton.jit
def _dot(X, Y, OUT, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, INTO: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(X + m[:, None] * K + k[None]), tl.load(Y + k[:, None] * N + n[None])
    tl.store(OUT + m[:, None] * N + n[None], tl.dot(x, y, out_dtype=INTO))


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("values", [torch.randn(NUM) * 3, torch.randn(NUM) * 1e-3, torch.arange(NUM) / 8.0])
def test_casts_round_to_the_nearest(values: torch.Tensor, dtype: torch.dtype) -> None:
    if dtype == torch.float8_e4m3fn:
        values = values.clamp(-448, 448)
    out, back = torch.empty(NUM, dtype=dtype), torch.empty(NUM)
    _cast[(1,)](values, out, NUM)
    _cast[(1,)](out, back, NUM)
    assert torch.equal(back, values.to(dtype).float())


def test_e4m3_ends_at_its_largest_value() -> None:
    out = torch.empty(NUM, dtype=torch.float8_e4m3fn)
    _cast[(1,)](torch.full((NUM,), -1000.0), out, NUM)
    assert (out.float() == -448).all()


def test_bfloat16_is_computed_with() -> None:
    x, y = torch.randn(NUM).bfloat16(), torch.randn(NUM).bfloat16()
    out = torch.empty_like(x)
    _sum_of_products[(1,)](x, y, out, NUM)
    assert_close(out, torch.where(x < y, x.double() * y.double() + x.double(), y.double()), torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float32, *SMALL, torch.int8])
def test_products_of_matrices(dtype: torch.dtype) -> None:
    x, y = (torch.randn(shape).mul(20).to(dtype) for shape in ((16, 32), (32, 16)))
    whole = dtype == torch.int8
    out = torch.empty(16, 16, dtype=torch.int32 if whole else torch.float32)
    _dot[(1,)](x, y, out, 16, 16, 32, tl.int32 if whole else tl.float32)
    assert_close(out, x.double() @ y.double(), torch.float32)
