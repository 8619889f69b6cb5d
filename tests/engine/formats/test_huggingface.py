"""Folder checkpoints without a scheme of integers: floats, stacks of experts, MXFP4, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import BadCheckpoint, UnsupportedModel
from engine.formats import check_quantization, describe, to_vector, to_weight
from engine.inspection import inspect_checkpoint
from kernels import Dense, Int4T
from tests.engine.formats.folders import open_folder


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_floats_stay_as_they_are(tmp_path: Path, kind: torch.dtype) -> None:
    values, gain = torch.randn(6, 40).to(kind), torch.randn(40).to(kind)
    rows = np.array([4, 1])
    with open_folder(tmp_path / "it", {"layer.weight": values, "norm.weight": gain}, None) as checkpoint:
        weight = to_weight(checkpoint, "layer", (6, 40))
        some = to_weight(checkpoint, "layer", (2, 40), rows)
        assert torch.equal(to_vector(checkpoint, "norm.weight", 40), gain.float())
        assert torch.equal(to_vector(checkpoint, "norm.weight", 2, rows), gain.float()[rows])
        with pytest.raises(BadCheckpoint, match=r"layer\.weight is \[6, 40\], expected \[7, 40\]"):
            to_weight(checkpoint, "layer", (7, 40))
        with pytest.raises(BadCheckpoint, match=r"it has no tensor other\.weight; the file is incomplete"):
            to_weight(checkpoint, "other", (6, 40))
    assert isinstance(weight, Dense) and weight.values.dtype == kind and torch.equal(weight.values, values)
    assert torch.equal(some.dequantize(), values[rows].float())


def test_stacks_of_experts(tmp_path: Path) -> None:
    values = torch.randn(3, 6, 40)
    with open_folder(tmp_path / "it", {"experts.up": values}, None) as checkpoint:
        assert torch.equal(to_weight(checkpoint, "experts.up", (6, 40), expert=2).dequantize(), values[2])
        with pytest.raises(BadCheckpoint, match=r"is \[3, 6, 40\], expected \[any, 6, 40\] for its matrix 3"):
            to_weight(checkpoint, "experts.up", (6, 40), expert=3)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers(tmp_path: Path, bad: float) -> None:
    values = torch.ones(6, 40).bfloat16()
    values[2, 3] = bad
    with (
        open_folder(tmp_path / "it", {"layer.weight": values}, None) as checkpoint,
        pytest.raises(BadCheckpoint, match="1 of 240 weights of layer are no finite numbers"),
    ):
        to_weight(checkpoint, "layer", (6, 40))


def test_mxfp4_equals_transformers(tmp_path: Path) -> None:
    """gpt-oss: transformers gives the experts [E, K, N], the file has them [E, N, K / 32, 16]."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    torch.manual_seed(0)
    blocks = torch.randint(0, 256, (3, 8, 4, 16), dtype=torch.uint8)
    scales = torch.randint(108, 130, (3, 8, 4), dtype=torch.uint8)
    true = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32)
    tensors = {"experts.gate_up_proj_blocks": blocks, "experts.gate_up_proj_scales": scales}
    with open_folder(tmp_path / "it", tensors, {"quant_method": "mxfp4"}) as checkpoint:
        for expert in range(3):
            gates = to_weight(checkpoint, "experts.gate_up_proj", (4, 128), np.arange(0, 8, 2), expert)
            assert isinstance(gates, Int4T) and gates.scale.dtype == torch.float16
            assert torch.equal(gates.dequantize(), true[expert].T[0::2])


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quantized with bitsandbytes, which is not"),
        ({"quant_method": "quip" * 99}, r"with (quip){10}, which is not served"),
        ({"bits": 4}, "with an unnamed method"),
        (
            {"quant_method": "compressed-tensors", "format": "marlin-24"},
            "layout is marlin-24, which is not served; these are: dense, pack-quantized",
        ),
    ],
)
def test_other_methods_are_refused_by_name(tmp_path: Path, config: dict[str, Any], sentence: str) -> None:
    with (
        open_folder(tmp_path / "it", {"layer.weight": torch.ones(6, 40)}, config) as checkpoint,
        pytest.raises(UnsupportedModel, match=sentence),
    ):
        to_weight(checkpoint, "layer", (6, 40))
    with pytest.raises(UnsupportedModel, match=sentence):
        check_quantization({"quantization_config": config})


def test_no_quantization_is_served() -> None:
    check_quantization({})
    check_quantization({"quantization_config": None})
    check_quantization({"quantization_config": {"quant_method": "fp8"}})


@pytest.mark.parametrize("value", ["x", "", 3, 0, [1, 2], [], True])
def test_a_quantization_that_is_no_table(tmp_path: Path, value: Any) -> None:
    said = "quantization_config is .*, not a table"
    packed = torch.zeros(72, 32).int()
    with open_folder(tmp_path / "it", {"layer.qweight": packed}, value) as checkpoint:
        for use in (
            lambda: check_quantization(checkpoint.metadata),
            lambda: to_weight(checkpoint, "layer", (72, 256)),
            lambda: describe(checkpoint, "layer"),
        ):
            with pytest.raises(BadCheckpoint, match=said):
                use()
    assert sum("not a table" in each for each in inspect_checkpoint(tmp_path / "it").problems) == 1
