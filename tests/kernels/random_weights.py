"""Random matrices of every weight format, for tests of kernels."""

from __future__ import annotations

import torch
from torch import Tensor

from kernels import Dense, Fp8, Int2K, Int3K, Int4, Int4K, Int4T, Int4Z, Int5, Int5K, Int6, Int8, Weight

KINDS = [Int2K, Int3K, Int4, Int4T, Int4Z, Int4K, Int5, Int5K, Int6, Int8, Fp8, Dense]


def halfs(*shape: int, low: float, high: float) -> Tensor:
    return (torch.rand(shape) * (high - low) + low).half()


def random_weight(kind: type, n: int, k: int) -> Weight:
    """Every bit pattern of values and scales may come."""

    def whole(width: int, least: int, most: int, dtype: torch.dtype = torch.uint8) -> Tensor:
        return torch.randint(least, most + 1, (n, width)).to(dtype)

    groups, supers = k // 32, k // 256
    small = halfs(n, groups, low=0.001, high=0.01), halfs(n, groups, low=-0.1, high=0.05)
    shared = halfs(n, supers, low=1e-4, high=1e-3), halfs(n, supers, low=-1e-3, high=1e-3)
    match kind.__name__:
        case "Int2K":
            fine = [whole(2 * groups, 0, 15) for _ in range(2)]
            return Int2K(whole(k, 0, 3), *fine, *(30 * x for x in shared))
        case "Int3K":
            scale = whole(2 * groups, -128, 127, torch.int8)
            return Int3K(whole(k, 0, 7), scale, halfs(n, supers, low=1e-5, high=1e-4))
        case "Int4":
            return Int4(whole(k // 2, 0, 255), *small)
        case "Int4T":
            return Int4T(whole(k // 2, 0, 255), small[0] / 10, ("iq4", "fp4")[n % 2])
        case "Int4Z":
            return Int4Z(whole(k // 2, 0, 255), small[0], whole(groups, 0, 16))
        case "Int4K":
            return Int4K(whole(k // 2, 0, 255), whole(groups, 0, 63), whole(groups, 0, 63), *shared)
        case "Int5":
            return Int5(whole(k, 0, 31), *small)
        case "Int5K":
            return Int5K(whole(k, 0, 31), whole(groups, 0, 63), whole(groups, 0, 63), *shared)
        case "Int6":
            scale = whole(2 * groups, -128, 127, torch.int8)
            return Int6(whole(k, 0, 63), scale, halfs(n, supers, low=1e-5, high=1e-4))
        case "Int8":
            return Int8(whole(k, -128, 127, torch.int8), halfs(n, groups, low=1e-4, high=1e-3))
        case "Fp8":
            blocks = -(-n // 48), -(-k // 128)
            return Fp8((torch.randn(n, k) * 60).to(torch.float8_e4m3fn), torch.rand(blocks) / 1e3, (48, 128))
    return Dense((torch.randn(n, k) * 0.05).bfloat16())
