"""unpack_nibbles and dequantize of every format against loops that follow the definitions."""

from __future__ import annotations

import pytest
import torch

from kernels import Dense, Fp8, Int2K, Int3K, Int4, Int4K, Int4T, Int4Z, Int5, Int5K, Int6, Int8, Weight
from kernels.weights import TABLES, pack_nibbles, unpack_nibbles
from tests.kernels.random_weights import KINDS, random_weight

ROWS, WIDTH = 3, 512


def nibble(packed: torch.Tensor, n: int, k: int) -> int:
    byte = int(packed[n, k // 32 * 16 + k % 16])
    return byte >> 4 if k % 32 >= 16 else byte & 15


def value_of(weight: Weight, n: int, k: int) -> float:
    """One weight, by the formula in its class's docstring, in double precision."""

    def at(name: str) -> float:
        """The scale or minimum that input k has."""
        values = getattr(weight, name)
        return float(values[n, k * values.shape[1] // WIDTH])

    q = nibble(weight.packed, n, k) if hasattr(weight, "packed") else float(weight.values[n, k])
    match weight:
        case Dense():
            return q
        case Int4() | Int5():
            return q * at("scale") + at("minimum")
        case Int4T():
            return at("scale") * TABLES[weight.table][q]
        case Int4Z():
            return (q - at("zero")) * at("scale")
        case Int2K() | Int4K() | Int5K():
            return at("super_scale") * at("scale") * q - at("super_minimum") * at("minimum")
        case Int3K():
            return at("super_scale") * at("scale") * (q - 4)
        case Int6():
            return at("super_scale") * at("scale") * (q - 32)
        case Int8():
            return at("scale") * q
        case Fp8():
            return q * float(weight.scale[n // weight.block[0], k // weight.block[1]])


@pytest.mark.parametrize("kind", KINDS)
def test_dequantize(kind: type) -> None:
    torch.manual_seed(0)
    weight = random_weight(kind, ROWS, WIDTH)
    wanted = torch.tensor(
        [[value_of(weight, n, k) for k in range(WIDTH)] for n in range(ROWS)], dtype=torch.float64
    )
    assert weight.shape == (ROWS, WIDTH)
    torch.testing.assert_close(weight.dequantize(torch.float64), wanted, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(weight.dequantize(), wanted.float(), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("groups", [1, 4])
def test_groups_of_any_size(groups: int) -> None:
    """The number of scales says how many inputs share one."""
    fine, coarse = random_weight(Int4Z, ROWS, WIDTH), torch.rand(ROWS, groups)
    weight = Int4Z(fine.packed, coarse, fine.zero[:, :groups].contiguous())
    same = Int4Z(fine.packed, *(x.repeat_interleave(WIDTH // 32 // groups, 1) for x in (coarse, weight.zero)))
    assert torch.equal(weight.dequantize(), same.dequantize())


def test_fp8_rows_are_rows_of_the_whole() -> None:
    weight = random_weight(Fp8, 100, WIDTH)
    assert torch.equal(weight.dequantize(rows=slice(40, 60)), weight.dequantize()[40:60])


def test_nibbles_come_back() -> None:
    values = torch.randint(0, 16, (ROWS, WIDTH), dtype=torch.uint8)
    assert torch.equal(unpack_nibbles(pack_nibbles(values)), values)


def test_unpack_nibbles_order() -> None:
    packed = (
        torch.arange(16, dtype=torch.uint8).repeat(2)
        | (15 - torch.arange(16, dtype=torch.uint8).repeat(2)) << 4
    )
    group = [*range(16), *range(15, -1, -1)]
    assert unpack_nibbles(packed[None])[0].tolist() == group * 2
