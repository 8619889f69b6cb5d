"""GPTQ and AWQ against packings made by hand, from what AutoGPTQ and AutoAWQ published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.formats import to_weight
from kernels import Int4Z, Int8
from tests.engine.formats.folders import open_folder, pack_words

ROWS, INPUTS = 64, 256
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # AutoAWQ, gemm.py: which row of eight goes into nibble i


def make(
    bits: int, group: int, symmetric: bool, order: Tensor | None = None, least: int = 1
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Random values [N, K], scales and zeros [G, N], and the true matrix."""
    torch.manual_seed(0)
    groups, top = INPUTS // group, 2**bits
    values = torch.randint(0, top, (ROWS, INPUTS))
    scale = (torch.rand(groups, ROWS) * 0.01 + 0.001).half()
    zero = torch.randint(least, top + least, (groups, ROWS))
    if symmetric:
        zero = torch.full((groups, ROWS), top // 2)
    group_of = torch.arange(INPUTS) // group if order is None else order
    true = scale.T[:, group_of].float() * (values - zero.T[:, group_of]).float()
    return values, scale, zero, true


def gptq_tensors(
    values: Tensor, scale: Tensor, zero: Tensor, bits: int, stored_less: int
) -> dict[str, Tensor]:
    return {
        "layer.qweight": pack_words(values, bits).T,  # a word holds neighbouring inputs
        "layer.qzeros": pack_words(zero - stored_less, bits),
        "layer.scales": scale,
        "layer.bias": torch.zeros(ROWS),
    }


def open_gptq(path: Path, tensors: dict[str, Tensor], **config: Any) -> Checkpoint:
    return open_folder(path, tensors, {"quant_method": "gptq", "bits": 4, "group_size": 128} | config)


@pytest.mark.parametrize("group", [INPUTS, 32, 64, 128])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("form", [{}, {"checkpoint_format": "gptq"}, {"checkpoint_format": "gptq_v2"}])
def test_four_bits_are_exact(tmp_path: Path, group: int, symmetric: bool, form: dict[str, str]) -> None:
    less = 0 if form.get("checkpoint_format") == "gptq_v2" else 1
    values, scale, zero, true = make(4, group, symmetric, least=less)
    tensors = gptq_tensors(values, scale, zero, 4, less)
    tensors["layer.g_idx"] = (torch.arange(INPUTS) // group).int()
    with open_gptq(tmp_path / "it", tensors, **form) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int4Z) and weight.scale.shape == (ROWS, INPUTS // group)
    assert torch.equal(weight.dequantize(), true)


@pytest.mark.parametrize("group", [INPUTS, 128])
def test_eight_bits_are_exact_where_they_are_symmetric(tmp_path: Path, group: int) -> None:
    values, scale, zero, true = make(8, group, symmetric=True)
    with open_gptq(tmp_path / "it", gptq_tensors(values, scale, zero, 8, 1), bits=8) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8) and torch.equal(weight.dequantize(), true)


def test_eight_bits_with_zero_points_that_fit_are_exact(tmp_path: Path) -> None:
    values, scale, zero, _ = make(8, 128, symmetric=False)
    values, zero = 100 + values % 50, 90 + zero % 60
    with open_gptq(tmp_path / "it", gptq_tensors(values, scale, zero, 8, 1), bits=8) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    true = scale.T.repeat_interleave(128, 1) * (values - zero.T.repeat_interleave(128, 1)).float()
    assert torch.equal(weight.dequantize(), true)


def check_rounded(found: Tensor, true: Tensor) -> None:
    """At most 1/254 of the largest of 32, and what float16 makes of the scale."""
    largest = true.view(ROWS, -1, 32).abs().amax(-1).repeat_interleave(32, 1)
    assert ((found - true).abs() <= largest * (1 / 254 + 1 / 2048)).all()


def test_eight_bits_with_any_zero_points_are_rounded(tmp_path: Path) -> None:
    values, scale, zero, true = make(8, 64, symmetric=False)
    with open_gptq(tmp_path / "it", gptq_tensors(values, scale, zero, 8, 1), bits=8) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8)
    check_rounded(weight.dequantize(), true)


@pytest.mark.parametrize("symmetric", [True, False])
def test_act_order_is_rounded_to_eight_bits(tmp_path: Path, symmetric: bool) -> None:
    order = (torch.arange(INPUTS) // 64)[torch.randperm(INPUTS, generator=torch.Generator().manual_seed(1))]
    values, scale, zero, true = make(4, 64, symmetric, order)
    tensors = gptq_tensors(values, scale, zero, 4, 1) | {"layer.g_idx": order.int()}
    with open_gptq(tmp_path / "it", tensors, desc_act=True) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8)
    check_rounded(weight.dequantize(), true)


@pytest.mark.parametrize("group", [INPUTS, 32, 128])
@pytest.mark.parametrize(
    "said",
    [
        *({"quant_method": "awq", "version": version} for version in ("gemm", "GEMM", None)),
        {"quant_method": "awq", "checkpoint_format": "gemm"},
        {"quant_method": "gptq", "checkpoint_format": "gemm"},
    ],
)
def test_awq_is_exact(tmp_path: Path, group: int, said: dict[str, str | None]) -> None:
    values, scale, zero, true = make(4, group, symmetric=False, least=0)

    def packed(by_row: Tensor) -> Tensor:
        return pack_words(by_row.view(len(by_row), -1, 8)[:, :, list(AWQ_ORDER)].flatten(1), 4)

    tensors = {"layer.qweight": packed(values.T), "layer.qzeros": packed(zero), "layer.scales": scale}
    config = {"bits": 4, "group_size": group, "zero_point": True, **said}
    with open_folder(tmp_path / "it", tensors, config) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
        rows = np.array([63, 0, 5])
        some = to_weight(checkpoint, "layer", (3, INPUTS), rows)
    assert isinstance(weight, Int4Z) and torch.equal(weight.dequantize(), true)
    assert torch.equal(some.dequantize(), true[rows])


def test_rows_of_a_joined_matrix(tmp_path: Path) -> None:
    values, scale, zero, true = make(4, 64, symmetric=False)
    rows = np.arange(16, 40)
    with open_gptq(tmp_path / "it", gptq_tensors(values, scale, zero, 4, 1)) as checkpoint:
        weight = to_weight(checkpoint, "layer", (24, INPUTS), rows)
        with pytest.raises(BadCheckpoint, match=r"layer has 64 rows, 65 are needed"):
            to_weight(checkpoint, "layer", (2, INPUTS), np.array([0, 64]))
    assert torch.equal(weight.dequantize(), true[16:40])


def test_scales_of_bfloat16_are_exact_and_small_ones_of_float32_are_kept(tmp_path: Path) -> None:
    values, scale, zero, _ = make(4, 64, symmetric=False)
    for i, given in enumerate((scale.bfloat16(), scale.float() / 3, scale.float() * 1e-4)):
        tensors = gptq_tensors(values, given, zero, 4, 1)
        with open_gptq(tmp_path / str(i), tensors) as checkpoint:
            weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
        assert isinstance(weight, Int4Z)
        assert weight.scale.dtype == (torch.float32 if i else torch.float16)
        assert torch.equal(weight.scale.float(), given.T.float())


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    good = gptq_tensors(*make(4, 64, symmetric=False)[:3], 4, 1)
    nan = good["layer.scales"].clone()
    nan[1, 5] = torch.nan
    cases: list[tuple[dict[str, Tensor | None], str]] = [
        ({"layer.scales": None}, r"it has no tensor layer\.scales"),
        ({"layer.qzeros": None}, r"it has no tensor layer\.qzeros"),
        ({"layer.scales": nan}, r"1 of 256 scales of a matrix are no finite numbers"),
        ({"layer.scales": good["layer.scales"][:, :-1]}, r"layer\.scales is \[4, 63\], expected \[any, 64\]"),
        ({"layer.scales": good["layer.scales"][:3]}, r"layer\.qzeros is \[4, 8\], expected \[3, 8\]"),
        ({"layer.qzeros": good["layer.qzeros"].long()}, r"layer\.qzeros has type I64; these are served: I32"),
        ({"layer.qweight": good["layer.qweight"][:24]}, r"24 words for 256 inputs, 3 bits each"),
        ({"layer.qweight": good["layer.qweight"][:, :8]}, r"qweight is \[32, 8\], expected \[any, 64\]"),
        ({"layer.g_idx": torch.zeros(9).int()}, r"layer\.g_idx is \[9\], expected \[256\]"),
        ({"layer.g_idx": torch.full((256,), 4).int()}, r"groups 4 to 4 are named, it has 4"),
    ]
    for i, (change, sentence) in enumerate(cases):
        tensors = {name: tensor for name, tensor in (good | change).items() if tensor is not None}
        (tmp_path / str(i)).mkdir()
        with (
            open_gptq(tmp_path / str(i) / "it", tensors) as checkpoint,
            pytest.raises((BadCheckpoint, UnsupportedModel), match=sentence),
        ):
            to_weight(checkpoint, "layer", (ROWS, INPUTS))


def test_groups_that_do_not_divide_the_inputs(tmp_path: Path) -> None:
    values, scale, zero, _ = make(4, 64, symmetric=False)
    tensors = gptq_tensors(values, scale[:3], zero[:3], 4, 1)
    with (
        open_gptq(tmp_path / "it", tensors) as checkpoint,
        pytest.raises(BadCheckpoint, match="3 groups do not divide 256 inputs"),
    ):
        to_weight(checkpoint, "layer", (ROWS, INPUTS))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"checkpoint_format": "marlin"}, r"'marlin', which is not served; these are: gptq, gptq_v2"),
        ({"quant_method": "awq", "version": "gemv"}, r"AWQ's 'gemv', which is not served; 'gemm' is"),
        (
            {"quant_method": "awq", "checkpoint_format": "gemv_fast"},
            r"AWQ's 'gemv_fast', which is not served",
        ),
    ],
)
def test_other_packings_are_refused(tmp_path: Path, config: dict[str, str], sentence: str) -> None:
    tensors = gptq_tensors(*make(4, 64, symmetric=False)[:3], 4, 1)
    with (
        open_gptq(tmp_path / "it", tensors, **config) as checkpoint,
        pytest.raises(UnsupportedModel, match=sentence),
    ):
        to_weight(checkpoint, "layer", (ROWS, INPUTS))
