"""Products of every format, tile and ending, by the same kernels that cards run, against float64."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from kernels import Dense, Fp8, Int4, Int4K, Int4Z, Int5, Int5K, Int8, Weight
from kernels.reference import ACTIVATIONS
from kernels.triton import configs
from kernels.triton.configs import Form, Tile, Vector
from kernels.triton.linear import Linear
from kernels.triton.targets import INTERPRETER
from tests.kernels.random_weights import random_weight
from tests.kernels.triton.closeness import assert_close

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
EXACT = (Int4, Int4Z, Int4K, Int5, Int5K, Int8, Fp8, Dense)  # formats that lose nothing when they are packed


def make(dtype: torch.dtype) -> Linear:
    torch.manual_seed(0)
    return Linear(torch.device("cpu"), dtype, INTERPRETER)


@pytest.fixture
def take(monkeypatch: pytest.MonkeyPatch) -> object:
    """Every product takes the form given to it."""

    def choose(form: Form) -> None:
        monkeypatch.setattr("kernels.triton.linear.form_of", lambda *_: form)

    return choose


def rows(count: int, width: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(count, width).to(dtype)


def product(linear: Linear, x: Tensor, weight: Weight, **options: object) -> Tensor:
    packed = linear.pack([weight])
    out = torch.full((len(x), weight.shape[0]), torch.nan)
    linear.apply(x, packed, out, **options)
    return out


def grouped_by(group: int, n: int, k: int, centred: bool = False) -> Int4Z:
    packed, scale = torch.randint(0, 256, (n, k // 2)).to(torch.uint8), torch.rand(n, k // group).half() / 10
    zero = torch.full(scale.shape, 8) if centred else torch.randint(0, 17, scale.shape)
    return Int4Z(packed, scale, zero.to(torch.uint8))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", EXACT)
def test_every_format(kind: type, dtype: torch.dtype) -> None:
    linear, weight = make(dtype), random_weight(kind, 72, 256)
    x = rows(3, 256, dtype)
    exact = (
        weight.values.to(dtype).double() if isinstance(weight, Dense) else weight.dequantize(torch.float64)
    )
    assert_close(product(linear, x, weight), x.double() @ exact.T, dtype)


@pytest.mark.parametrize("group", [32, 64, 96, 128, 384])
@pytest.mark.parametrize("centred", [False, True])
def test_groups_of_any_length(group: int, centred: bool) -> None:
    linear, weight = make(torch.float16), grouped_by(group, 40, 384, centred)
    x = rows(2, 384, torch.float16)
    exact = x.double() @ weight.dequantize(torch.float64).T
    assert_close(product(linear, x, weight), exact, torch.float16)


@pytest.mark.parametrize(
    "kind,width", [(Int4, 96), (Int8, 32), (Dense, 40), (Fp8, 200), (Int4, 576), (Int5, 160)]
)
def test_widths_that_chunks_do_not_fill(kind: type, width: int) -> None:
    linear, weight = make(torch.float32), random_weight(kind, 20, width)
    x = rows(2, width, torch.float32)
    assert_close(product(linear, x, weight), x.double() @ weight.dequantize(torch.float64).T, torch.float32)


TILES = [Tile(8, 16, 1, 2, 1), Tile(16, 64, 4, 2, 1), Tile(64, 32, 2, 4, 1), Vector(32, 4), "expand"]


@pytest.mark.parametrize("form", TILES, ids=str)
@pytest.mark.parametrize("count,outputs", [(1, 8), (9, 72)])
@pytest.mark.parametrize("kind", [Int4K, Fp8])
def test_every_form(kind: type, form: Form, count: int, outputs: int, take: object) -> None:
    take(form)  # type: ignore[operator]
    linear, weight = make(torch.bfloat16), random_weight(kind, outputs, 512)
    x = rows(count, 512, torch.bfloat16)
    assert_close(product(linear, x, weight), x.double() @ weight.dequantize(torch.float64).T, torch.bfloat16)


@pytest.mark.parametrize("form", [Tile(16, 32, 1, 2, 1), Vector(32, 4), "expand"], ids=str)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("ending", ["add", *ACTIVATIONS, "cap"])
def test_what_becomes_of_the_sums(form: Form, biased: bool, ending: str, take: object) -> None:
    take(form)  # type: ignore[operator]
    linear = make(torch.float32)
    weights = [random_weight(Int4, 24, 128) for _ in range(2)]
    bias, x = torch.randn(48) if biased else None, rows(3, 128, torch.float32)
    exact = torch.cat([x.double() @ weight.dequantize(torch.float64).T for weight in weights], 1)
    exact += 0 if bias is None else bias.double()
    gated = ending in ACTIVATIONS
    packed = linear.pack(weights, bias, gated)
    if gated:
        exact = ACTIVATIONS[ending](exact[:, :24], exact[:, 24:])  # type: ignore[index]
        out = torch.full((3, 24), torch.nan)
        linear.apply(x, packed, out, activation=ending)  # type: ignore[arg-type]
    elif ending == "cap":
        out, exact = torch.full((3, 48), torch.nan), 5 * torch.tanh(exact / 5)
        linear.apply(x, packed, out, soft_cap=5.0)
    else:
        out = torch.randn(3, 48)
        exact = out.double() + 0.25 * exact
        linear.apply(x, packed, out, add=True, scale=0.25)
    assert_close(out, exact, torch.float32)


@pytest.mark.parametrize("processors", [1, 4, 40])
@pytest.mark.parametrize("kind", [Int4, Dense])
def test_sharing_the_inputs_of_a_tile_changes_only_the_rounding(kind: type, processors: int) -> None:
    linear, weight = make(torch.float32), random_weight(kind, 72, 1024)
    linear.processors = processors
    linear.partial.fill_(torch.nan)
    x = rows(2, 1024, torch.float32)
    assert (linear.splits(2, 8) > 1) == (processors > 1)
    first, second = product(linear, x, weight), product(linear, x, weight)
    assert torch.equal(first, second) and not linear.tickets.any()
    assert_close(first, x.double() @ weight.dequantize(torch.float64).T, torch.float32)


def test_the_workspace_has_room_for_every_split() -> None:
    for processors in (1, 30, 132, 188):
        linear = make(torch.float16)
        linear.processors = processors
        for tiles in range(1, 5 * processors):
            splits = linear.splits(tiles, 16)
            assert splits == 1 or tiles * splits < 4 * processors + 1


def test_formats_stacked_stay_apart_and_meet_in_the_output() -> None:
    linear = make(torch.float16)
    weights = [random_weight(kind, 32, 256) for kind in (Int4K, Int4K, Int8)]
    bias, x = torch.randn(96), rows(4, 256, torch.float16)
    packed = linear.pack(weights, bias)
    assert [part.shape for part in packed.parts] == [(64, 256), (32, 256)]
    out = torch.full((4, 96), torch.nan)
    linear.apply(x, packed, out)
    exact = torch.cat([x.double() @ weight.dequantize(torch.float64).T for weight in weights], 1) + bias
    assert_close(out, exact, torch.float16)


def test_out_may_be_an_activation() -> None:
    linear, weight = make(torch.bfloat16), random_weight(Int8, 32, 64)
    x, out = rows(2, 64, torch.bfloat16), torch.full((2, 32), torch.nan, dtype=torch.bfloat16)
    linear.apply(x, linear.pack([weight]), out)
    assert_close(out, x.double() @ weight.dequantize(torch.float64).T, torch.bfloat16)


@pytest.mark.parametrize("kind", EXACT)
def test_embedding_is_a_row(kind: type) -> None:
    linear, weight = make(torch.float16), random_weight(kind, 50, 256)
    ids, hidden = torch.tensor([49, 0, 7, 7]), torch.full((4, 256), torch.nan)
    linear.embed(ids, linear.pack([weight]), hidden, 3.0)
    exact = weight.values.half() if isinstance(weight, Dense) else weight.dequantize(torch.float64)
    assert_close(hidden, 3 * exact[ids].double(), torch.float32)


@pytest.mark.parametrize("swapped", [False, True])
def test_activations_of_eight_bits(swapped: bool, take: object) -> None:
    """Within what rounding the activations to 1/127 of their row's largest costs."""
    take("int8 units")  # type: ignore[operator]
    linear = make(torch.float16)
    linear.assembly = swapped
    weight = replace(random_weight(Int8, 72, 256), scale=torch.rand(72, 1) / 100)
    x = rows(20, 256, torch.float16)
    found, exact = product(linear, x, weight), x.double() @ weight.dequantize(torch.float64).T
    assert (found - exact).norm() < 0.01 * exact.norm()


def test_floats_of_eight_bits_times_themselves(take: object) -> None:
    take("fp8 units")  # type: ignore[operator]
    linear = make(torch.bfloat16)
    values = (torch.randn(64, 256) * 60).to(torch.float8_e4m3fn)
    weight = Fp8(values, torch.rand(64, 1) / 1e3, (1, 256))
    x = rows(32, 256, torch.bfloat16)
    found, exact = product(linear, x, weight), x.double() @ weight.dequantize(torch.float64).T
    assert (found - exact).norm() < 0.04 * exact.norm()


def test_what_does_not_fit_is_refused() -> None:
    linear = make(torch.float16)
    packed = linear.pack([random_weight(Int8, 32, 64)])
    x, out = rows(2, 64, torch.float16), torch.zeros(2, 32)
    for wrong_x, wrong_out, options in (
        (x[:, :32], out, {}),
        (x, out[:1], {}),
        (x.float(), out, {}),
        (x.T.contiguous().T, out, {}),
        (x, out.T.contiguous().T, {}),
        (x, out[:, :16], {"activation": "silu"}),
    ):
        with pytest.raises(ValueError, match=r"\."):
            linear.apply(wrong_x, packed, wrong_out, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="32, 64"):
        linear.pack([random_weight(Int8, 32, 64), random_weight(Int8, 32, 32)])


def test_every_card_has_a_form_for_everything() -> None:
    from kernels.triton.targets import TARGETS

    for target in TARGETS.values():
        for kind in EXACT:
            linear = make(torch.float16)
            (part,) = linear.pack([random_weight(kind, 32, 256)]).parts
            for count in (1, 8, 9, 64, 300, 5000):
                form = configs.form_of(target, part, count)
                assert not isinstance(form, Tile) or (target.matrix and form.rows >= min(count, 8))
