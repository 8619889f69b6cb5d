"""How close a kernel must come to its twin in float64, by the type it computes in."""

from __future__ import annotations

import torch
from torch import Tensor

LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}


def relative_error(got: Tensor, wanted: Tensor) -> float:
    """Of all values together (Frobenius); nan where a value is none."""
    got, wanted = got.double(), wanted.double()
    return ((got - wanted).norm() / wanted.norm().clamp_min(1e-30)).item()


def assert_close(got: Tensor, wanted: Tensor, dtype: torch.dtype) -> None:
    error = relative_error(got, wanted)
    assert error < LIMITS[dtype], f"relative error {error:.2e}, allowed {LIMITS[dtype]:.0e}"
