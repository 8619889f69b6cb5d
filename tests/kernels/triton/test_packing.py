"""What packing makes of every format, where it lies, and that a kernel finds each weight there again."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels import Dense, Int2K, Int3K, Int4, Int4K, Int4T, Int4Z, Int6, Int8, Weight
from kernels.triton.linear import Linear
from kernels.triton.packing import PACKERS, pack, pack_part
from kernels.triton.parts import CHUNK, ROW, interleave, stack, swap_middle
from kernels.triton.targets import INTERPRETER
from tests.kernels.random_weights import KINDS, random_weight

CPU = torch.device("cpu")
ROUNDED = (Int2K, Int3K, Int6)


@pytest.fixture(autouse=True)
def linear() -> Linear:
    torch.manual_seed(0)
    return Linear(CPU, torch.float32, INTERPRETER)


def expanded(linear: Linear, weight: Weight) -> Tensor:
    """A matrix as the kernels read it."""
    out = torch.full(weight.shape, torch.nan)
    linear.embed(torch.arange(weight.shape[0]), linear.pack([weight]), out)
    return out


def test_every_format_has_its_row_in_the_table() -> None:
    assert {*KINDS} == {*PACKERS, Dense}


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_is_found_again(kind: type, linear: Linear) -> None:
    weight = random_weight(kind, 40, 512)
    found, exact = expanded(linear, weight), weight.dequantize(torch.float64)
    if kind in ROUNDED:
        largest = exact.unflatten(1, (-1, 32)).abs().amax(-1).repeat_interleave(32, 1)
        assert bool(((found - exact).abs() <= largest / 253).all())
    else:
        assert torch.allclose(found.double(), exact, rtol=1e-6, atol=1e-9)


def test_a_byte_of_int4_holds_inputs_32_apart() -> None:
    values = torch.arange(128, dtype=torch.uint8) % 16
    packed = Int4(_nibbles(values), torch.ones(1, 4).half(), torch.zeros(1, 4).half())
    part = pack_part(packed, torch.float16, swapped=False)
    chunk = part.values.view(-1, CHUNK // 2)
    assert torch.equal(chunk & 15, values.view(2, 2, 32)[:, 0])
    assert torch.equal(chunk >> 4, values.view(2, 2, 32)[:, 1])


def _nibbles(values: Tensor) -> Tensor:
    from kernels import pack_nibbles

    return pack_nibbles(values[None])


def test_swapping_the_middle_twice_changes_nothing() -> None:
    values = torch.randint(0, 256, (3, 64)).to(torch.uint8)
    assert swap_middle(values)[0, :4].tolist() == values[0, [0, 2, 1, 3]].tolist()
    assert torch.equal(swap_middle(swap_middle(values)), values)


@pytest.mark.parametrize(
    "weight,mode",
    [
        (Int4(torch.zeros(2, 32).byte(), torch.ones(2, 2).half(), -8 * torch.ones(2, 2).half()), "centred"),
        (Int4(torch.zeros(2, 32).byte(), torch.ones(2, 2).half(), torch.zeros(2, 2).half()), "minimum"),
        (Int4Z(torch.zeros(2, 32).byte(), torch.ones(2, 1).half(), torch.full((2, 1), 8).byte()), "centred"),
        (Int4Z(torch.zeros(2, 32).byte(), torch.ones(2, 1).half(), torch.full((2, 1), 7).byte()), "zero"),
    ],
)
def test_a_third_tensor_is_kept_only_where_it_says_something(weight: Weight, mode: str) -> None:
    part = pack_part(weight, torch.float16, swapped=False)
    assert part.mode == mode and (part.offset is None) == (mode == "centred")


def test_groups() -> None:
    def group(inputs: int, width: int) -> int:
        scale = torch.ones(2, width // inputs).half()
        return pack_part(Int8(torch.zeros(2, width).to(torch.int8), scale), torch.float16, False).group

    assert [group(inputs, 384) for inputs in (32, 64, 96, 128, 192, 384)] == [32, 64, 32, 128, 192, ROW]


def test_formats_that_agree_become_one_part() -> None:
    kinds = (Int4K, Int4K, Int8, Int8, Int4K)
    weights = [random_weight(kind, 16, 256) for kind in kinds]
    packed = pack(weights, None, False, dtype=torch.float16, swapped=True, device=CPU)
    assert [(part.format, part.shape[0]) for part in packed.parts] == [
        ("int4", 32),
        ("int8", 32),
        ("int4", 16),
    ]
    assert packed.shape == (80, 256)


def test_gate_and_up_lie_row_by_row() -> None:
    gate, up = (pack_part(random_weight(Int4K, 16, 256), torch.float16, False) for _ in range(2))
    both, after = interleave(gate, up), stack([gate, up])
    for name, tensor in both.tensors.items():
        rows = 0 if name == "values" else -1
        assert torch.equal(tensor.movedim(rows, 0)[0::2], gate.tensors[name].movedim(rows, 0))
        assert torch.equal(tensor.movedim(rows, 0)[1::2], up.tensors[name].movedim(rows, 0))
        assert tensor.shape == after.tensors[name].shape


def test_gate_and_up_of_different_formats_become_dense() -> None:
    weights = [random_weight(Int4K, 16, 256), random_weight(Int6, 16, 256)]
    (part,) = pack(weights, None, True, dtype=torch.float16, swapped=True, device=CPU).parts
    assert part.format == "dense"
    assert torch.equal(part.values[0::2], weights[0].dequantize(torch.float16))


def test_numbers_of_a_table_keep_their_values(linear: Linear) -> None:
    weight = random_weight(Int4T, 8, 64)
    (part,) = linear.pack([weight]).parts
    assert part.format == "int8"
    assert torch.equal(expanded(linear, weight), weight.dequantize(torch.float32))
