"""Random matrices of every weight format, for tests of kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels import Dense, Int4, Int4K, Int6, Int8, Weight


def halfs(*shape: int, low: float, high: float) -> Tensor:
    return (torch.rand(shape) * (high - low) + low).half()


def random_weight(kind: type, n: int, k: int) -> Weight:
    """Every bit pattern of values and scales may come."""
    groups, supers = k // 32, k // 256
    nibbles = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8)
    small = [torch.randint(0, 64, (n, groups), dtype=torch.uint8) for _ in range(2)]
    match kind.__name__:
        case "Int4":
            return Int4(
                nibbles, halfs(n, groups, low=0.001, high=0.01), halfs(n, groups, low=-0.1, high=0.05)
            )
        case "Int4K":
            return Int4K(
                nibbles, *small, halfs(n, supers, low=1e-4, high=1e-3), halfs(n, supers, low=-1e-3, high=1e-3)
            )
        case "Int6":
            scale = torch.randint(-128, 128, (n, 2 * groups), dtype=torch.int8)
            return Int6(
                torch.randint(0, 64, (n, k), dtype=torch.uint8), scale, halfs(n, supers, low=1e-5, high=1e-4)
            )
        case "Int8":
            return Int8(
                torch.randint(-128, 128, (n, k), dtype=torch.int8), halfs(n, groups, low=1e-4, high=1e-3)
            )
    return Dense((torch.randn(n, k) * 0.05).bfloat16())
