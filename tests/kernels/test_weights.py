"""unpack_nibbles and dequantize of every format against loops that follow the definitions."""

from __future__ import annotations

import pytest
import torch

from kernels import Dense, Int4, Int4K, Int6, Int8, Weight
from kernels.weights import unpack_nibbles

ROWS, WIDTH = 3, 512


def whole(*shape: int, least: int = 0, most: int = 255, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    return torch.randint(least, most + 1, shape).to(dtype)


def nibble(packed: torch.Tensor, n: int, k: int) -> int:
    byte = int(packed[n, k // 32 * 16 + k % 16])
    return byte >> 4 if k % 32 >= 16 else byte & 15


def value_of(weight: Weight, n: int, k: int) -> float:
    """One weight, by the formula in its class's docstring, in double precision."""
    match weight:
        case Dense(values):
            return float(values[n, k])
        case Int4(packed, scale, minimum):
            return nibble(packed, n, k) * float(scale[n, k // 32]) + float(minimum[n, k // 32])
        case Int4K(packed, scale, minimum, first, second):
            large = float(first[n, k // 256]) * int(scale[n, k // 32]) * nibble(packed, n, k)
            return large - float(second[n, k // 256]) * int(minimum[n, k // 32])
        case Int6(values, scale, first):
            return float(first[n, k // 256]) * int(scale[n, k // 16]) * (int(values[n, k]) - 32)
        case Int8(values, scale):
            return float(scale[n, k // 32]) * int(values[n, k])


def make_weights() -> dict[str, Weight]:
    torch.manual_seed(0)
    small, large = (
        (lambda: torch.randn(ROWS, WIDTH // 32).half()),
        (lambda: torch.randn(ROWS, WIDTH // 256).half()),
    )
    packed, groups = whole(ROWS, WIDTH // 2), (ROWS, WIDTH // 32)
    return {
        "Dense": Dense(torch.randn(ROWS, WIDTH).bfloat16()),
        "Int4": Int4(packed, small(), small()),
        "Int4K": Int4K(packed, whole(*groups, most=63), whole(*groups, most=63), large(), large()),
        "Int6": Int6(
            whole(ROWS, WIDTH, most=63),
            whole(ROWS, WIDTH // 16, least=-128, most=127, dtype=torch.int8),
            large(),
        ),
        "Int8": Int8(whole(ROWS, WIDTH, least=-128, most=127, dtype=torch.int8), small()),
    }


@pytest.mark.parametrize("name,weight", make_weights().items())
def test_dequantize(name: str, weight: Weight) -> None:
    wanted = torch.tensor(
        [[value_of(weight, n, k) for k in range(WIDTH)] for n in range(ROWS)], dtype=torch.float64
    )
    assert weight.shape == (ROWS, WIDTH)
    torch.testing.assert_close(weight.dequantize(torch.float64), wanted, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(weight.dequantize(), wanted.float(), atol=1e-4, rtol=1e-5)


def test_unpack_nibbles_order() -> None:
    packed = (
        torch.arange(16, dtype=torch.uint8).repeat(2)
        | (15 - torch.arange(16, dtype=torch.uint8).repeat(2)) << 4
    )
    group = [*range(16), *range(15, -1, -1)]
    assert unpack_nibbles(packed[None])[0].tolist() == group * 2
