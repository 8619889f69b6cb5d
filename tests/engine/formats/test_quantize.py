"""Quantizing on load: how far off the numbers may be, and how far they are on normal weights."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from engine.errors import BadCheckpoint
from engine.formats import QUANTIZERS, quantize
from engine.formats.quantize import SLICE
from kernels import Dense, Fp8, Int4, Int8, Weight

FORMS = {"int4": Int4, "int8": Int8, "fp8": Fp8}
HALF = 2.0**-11  # what float16 may take off a scale


def by_group(x: Tensor) -> Tensor:
    return x.view(len(x), -1, 32)


def spread(x: Tensor) -> Tensor:
    """The largest less the smallest of each value's group."""
    groups = by_group(x)
    return (groups.amax(-1) - groups.amin(-1)).repeat_interleave(32, 1)


def largest(x: Tensor) -> Tensor:
    return by_group(x).abs().amax(-1).repeat_interleave(32, 1)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("to", QUANTIZERS)
def test_errors_are_bounded(to: str, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    values = (torch.randn(50, 256) * torch.rand(50, 1)).to(kind)
    weight = quantize(Dense(values), to)
    assert type(weight) is FORMS[to] and weight.shape == (50, 256)
    x = values.float()
    error = (weight.dequantize() - x).abs()
    limits = {
        "int4": spread(x) * 0.1,  # a fit may cut off the outermost values
        "int8": largest(x) * (1 / 254 + HALF),
        "fp8": torch.maximum(x.abs() / 16, x.abs().amax(1, keepdim=True) / 448 * 2**-9),
    }
    assert (error <= limits[to] * 1.0001).all()


def relative_error(weight: Weight, x: Tensor) -> float:
    """The error's root mean square, measured by that of the weights."""
    return float((weight.dequantize() - x).square().mean().sqrt() / x.square().mean().sqrt())


@pytest.mark.parametrize(("to", "error"), [("int4", 0.0735), ("int8", 0.0054), ("fp8", 0.0265)])
def test_errors_on_normal_weights(to: str, error: float) -> None:
    """The figures that docs/FORMATS.md gives."""
    torch.manual_seed(0)
    x = torch.randn(256, 1024) * 0.02
    assert relative_error(quantize(Dense(x), to), x) == pytest.approx(error, rel=0.03)


def test_fitting_beats_the_plain_range() -> None:
    torch.manual_seed(0)
    x = torch.distributions.StudentT(5.0).sample((256, 1024)) * 0.02
    scale = by_group(x).amax(-1, keepdim=True) - by_group(x).amin(-1, keepdim=True)
    scale, least = scale / 15, by_group(x).amin(-1, keepdim=True)
    plain = (((by_group(x) - least) / scale).round() * scale + least).view(x.shape)
    simple = float((plain - x).square().mean().sqrt() / x.square().mean().sqrt())
    assert relative_error(quantize(Dense(x), "int4"), x) < 0.96 * simple


@pytest.mark.parametrize("to", QUANTIZERS)
def test_slices_make_one_matrix(to: str) -> None:
    """More rows than are done at once: the same as each part alone."""
    rows = 2 * SLICE // 512 + 5
    x = torch.randn(rows, 512)
    whole = quantize(Dense(x), to).dequantize()
    assert torch.equal(whole[-7:], quantize(Dense(x[-7:]), to).dequantize())
    assert torch.equal(whole[:7], quantize(Dense(x[:7]), to).dequantize())


@pytest.mark.parametrize("to", QUANTIZERS)
def test_constants_and_zeros(to: str) -> None:
    x = torch.zeros(3, 64)
    x[1], x[2, ::2] = 0.25, 1.0
    torch.testing.assert_close(quantize(Dense(x), to).dequantize(), x, atol=1e-3, rtol=1e-3)


def test_rows_that_groups_do_not_fill() -> None:
    values = torch.randn(4, 72)
    for to in ("int4", "int8"):
        assert torch.equal(quantize(Dense(values), to).dequantize(), values)
    assert isinstance(quantize(Dense(values), "fp8"), Fp8)


@pytest.mark.parametrize("to", QUANTIZERS)
def test_broken_weights_are_refused(to: str) -> None:
    values = torch.ones(4, 64)
    values[1, 2] = torch.nan
    with pytest.raises(BadCheckpoint, match="1 of 256 weights are no finite numbers"):
        quantize(Dense(values), to)
