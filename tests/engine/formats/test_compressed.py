"""compressed-tensors against its own library: it quantizes and dequantizes, we read what it stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.formats import to_weight
from kernels import Dense, Fp8, Int4Z, Int8
from tests.engine.formats.folders import open_folder

ROWS, INPUTS = 72, 256


def compressed(layout: str, values: Tensor, scale: Tensor, zero: Tensor | None, **args: Any) -> Any:
    """What the library stores of a matrix, and what it makes of that."""
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**args))
    library = BaseCompressor.get_value_from_registry(layout)
    state = {"weight": values, "weight_scale": scale}
    stored = library.compress(state if zero is None else state | {"weight_zero_point": zero}, scheme)
    return stored, library.decompress(dict(stored), scheme)["weight"]


def open_layer(path: Path, layout: str, stored: dict[str, Tensor], **weights: Any) -> Checkpoint:
    config = {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    tensors = {f"layer.{name}": tensor for name, tensor in stored.items()}
    return open_folder(path, tensors | {"lm_head.weight": torch.ones(8, 32).bfloat16()}, config)


def random_scales(groups: int, bits: int) -> Tensor:
    torch.manual_seed(0)
    return (torch.rand(ROWS, groups) * 0.1 + 0.02) / 2 ** (bits - 1)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [None, 32, 128])
@pytest.mark.parametrize("symmetric", [True, False])
def test_packed_integers(tmp_path: Path, bits: int, group: int | None, symmetric: bool) -> None:
    scale = random_scales(INPUTS // (group or INPUTS), bits)
    zero = None if symmetric else torch.randint(-3, 4, scale.shape).to(torch.int8)
    strategy = {"strategy": "group", "group_size": group} if group else {"strategy": "channel"}
    args = {"num_bits": bits, "type": "int", "symmetric": symmetric} | strategy
    stored, true = compressed("pack-quantized", torch.randn(ROWS, INPUTS) * 0.05, scale, zero, **args)
    with open_layer(tmp_path / "it", "pack-quantized", stored, **args) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
        some = to_weight(checkpoint, "layer", (2, INPUTS), np.array([70, 1]))
        left_out = to_weight(checkpoint, "lm_head", (8, 32))
    if bits == 4 or symmetric:
        assert isinstance(weight, Int4Z if bits == 4 else Int8)
        assert torch.equal(weight.dequantize(), true) and torch.equal(some.dequantize(), true[[70, 1]])
    else:  # q - zero may need nine bits
        torch.testing.assert_close(weight.dequantize(), true, rtol=0, atol=float(true.abs().max()) / 250)
    assert isinstance(left_out, Dense) and left_out.values.dtype == torch.bfloat16


def test_packed_integers_in_act_order(tmp_path: Path) -> None:
    args = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 64}
    stored, _ = compressed(
        "pack-quantized", torch.randn(ROWS, INPUTS) * 0.05, random_scales(4, 4), None, **args
    )
    order = (torch.arange(INPUTS) // 64)[torch.randperm(INPUTS, generator=torch.Generator().manual_seed(1))]
    with open_layer(tmp_path / "in order", "pack-quantized", stored) as checkpoint:
        plain = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(plain, Int4Z)
    values = plain.dequantize() / plain.scale.float().repeat_interleave(64, 1)
    true = values * plain.scale.float()[:, order]
    with open_layer(tmp_path / "it", "pack-quantized", stored | {"weight_g_idx": order.int()}) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8)
    torch.testing.assert_close(weight.dequantize(), true, rtol=0, atol=float(true.abs().max()) / 250)
    unset = stored | {"weight_g_idx": torch.full((INPUTS,), -1).int()}
    with open_layer(tmp_path / "unset", "pack-quantized", unset) as checkpoint:
        assert isinstance(to_weight(checkpoint, "layer", (ROWS, INPUTS)), Int4Z)


@pytest.mark.parametrize("strategy", ["tensor", "channel", "group"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_integers_in_bytes(tmp_path: Path, strategy: str, kind: torch.dtype) -> None:
    """W8A8 and W8A16 store the same weights."""
    scale = random_scales(4 if strategy == "group" else 1, 8)
    scale = (scale[:1, 0] if strategy == "tensor" else scale).to(kind)
    args: dict[str, Any] = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": strategy}
    args |= {"group_size": 64} if strategy == "group" else {}
    values = (torch.randn(ROWS, INPUTS) * 0.05).to(kind)
    stored, _ = compressed("int-quantized", values, scale, None, **args)
    _, true = compressed("int-quantized", values.float(), scale.float(), None, **args)
    with open_layer(tmp_path / "it", "int-quantized", stored, **args) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8) and weight.scale.dtype == (
        torch.float32 if kind == torch.float32 else torch.float16
    )
    spread = (
        scale.float()
        .reshape(-1, scale.shape[-1])
        .expand(ROWS, -1)
        .repeat_interleave(INPUTS // scale.shape[-1], 1)
    )
    assert torch.equal(weight.dequantize(), stored["weight"].float() * spread)
    torch.testing.assert_close(
        weight.dequantize(), true, rtol=0, atol=float(spread.max()) if kind != torch.float32 else 0
    )


def test_integers_in_bytes_with_zero_points(tmp_path: Path) -> None:
    args = {"num_bits": 8, "type": "int", "symmetric": False, "strategy": "channel"}
    scale, zero = random_scales(1, 8), torch.randint(-20, 20, (ROWS, 1)).to(torch.int8)
    stored, true = compressed("int-quantized", torch.randn(ROWS, INPUTS) * 0.003, scale, zero, **args)
    with open_layer(tmp_path / "it", "int-quantized", stored, **args) as checkpoint:
        weight = to_weight(checkpoint, "layer", (ROWS, INPUTS))
    assert isinstance(weight, Int8)
    assert torch.equal(weight.dequantize(), true)


@pytest.mark.parametrize("strategy", ["tensor", "channel", "block"])
def test_floats_of_eight_bits(tmp_path: Path, strategy: str) -> None:
    rows, inputs = (200, 320) if strategy == "block" else (ROWS, INPUTS)  # blocks at the edges are not full
    shape = {"tensor": (1,), "channel": (rows, 1), "block": (2, 3)}[strategy]
    torch.manual_seed(0)
    scale = torch.rand(shape) * 1e-3 + 1e-4
    args: dict[str, Any] = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": strategy}
    args |= {"block_structure": [128, 128]} if strategy == "block" else {}
    values = torch.randn(rows, inputs) * 0.05
    stored, true = compressed("float-quantized", values, scale, None, **args)
    with open_layer(tmp_path / "it", "float-quantized", stored, **args) as checkpoint:
        weight = to_weight(checkpoint, "layer", (rows, inputs))
        some = to_weight(checkpoint, "layer", (3, inputs), np.array([60, 2, 50]))
    assert isinstance(weight, Fp8)
    assert torch.equal(weight.dequantize(), true[:rows, :inputs])
    assert torch.equal(some.dequantize(), true[[60, 2, 50], :inputs])


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_blocks_of_deepseek_and_qwen(tmp_path: Path, kind: torch.dtype) -> None:
    """w = weight * weight_scale_inv of its block of 128 x 128, as DeepSeek-V3's weight_dequant has it."""
    torch.manual_seed(0)
    values, scale = (torch.randn(200, 320) * 40).to(torch.float8_e4m3fn), (torch.rand(2, 3) * 1e-3).to(kind)
    tensors = {"layer.weight": values, "layer.weight_scale_inv": scale}
    config = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    with open_folder(tmp_path / "it", tensors, config) as checkpoint:
        weight = to_weight(checkpoint, "layer", (200, 320))
    spread = scale.float().repeat_interleave(128, 0)[:200].repeat_interleave(128, 1)[:, :320]
    assert isinstance(weight, Fp8) and torch.equal(weight.dequantize(), values.float() * spread)


PACKED = {
    "layer.weight_packed": torch.zeros(ROWS, 32).int(),
    "layer.weight_scale": torch.ones(ROWS, 2),
    "layer.weight_zero_point": torch.zeros(9, 2).int(),
}
FLOATS = {
    "layer.weight": torch.ones(ROWS, INPUTS).to(torch.float8_e4m3fn),
    "layer.weight_scale": torch.ones(1),
}
NAN = torch.full((ROWS, INPUTS), 0x70, dtype=torch.uint8).index_fill_(1, torch.tensor([4]), 0xFF)
# What is stored, which tensor is another (None: missing), and what is said.
MISFITS: list[tuple[dict[str, Tensor], str, Tensor | None, str]] = [
    (PACKED, "weight_scale", None, r"it has no tensor layer\.weight_scale"),
    (PACKED, "weight_scale", torch.ones(ROWS, 3), r"zero_point is \[9, 2\], expected \[9, 3\]"),
    (PACKED, "weight_scale", torch.ones(71, 2), r"scale is \[71, 2\], expected \[72, any\]"),
    (PACKED, "weight_scale", torch.full((ROWS, 2), 1e6), r"a scale is 1e\+06; none is above 65504"),
    (PACKED, "weight_packed", torch.zeros(ROWS, 24).int(), r"24 words for 256 inputs; 4 and 8 bits"),
    (PACKED, "weight_packed", torch.zeros(ROWS, 32).byte(), r"has type U8; these are served: I32"),
    (PACKED, "weight_packed", torch.zeros(70, 32).int(), r"is \[70, 32\], expected \[72, any\]"),
    (FLOATS, "weight_scale", None, r"it has no tensor layer\.weight_scale"),
    (FLOATS, "weight_scale", torch.tensor([torch.nan]), r"1 of 1 scales"),
    (FLOATS, "weight_scale", torch.ones(2, 3), r"\[2, 3\] scales for \[72, 256\] weights and names no"),
    (FLOATS, "weight", NAN.view(torch.float8_e4m3fn), r"72 of 18432 weights of layer are no finite"),
    (FLOATS, "weight", torch.ones(2, 2, 2), r"is \[2, 2, 2\], expected \[72, 256\]"),
]


@pytest.mark.parametrize(("tensors", "name", "other", "sentence"), MISFITS)
def test_what_does_not_fit_together(
    tmp_path: Path, tensors: dict[str, Tensor], name: str, other: Tensor | None, sentence: str
) -> None:
    changed = {each: tensor for each, tensor in tensors.items() if each != f"layer.{name}"}
    changed |= {} if other is None else {f"layer.{name}": other}
    with (
        open_folder(tmp_path / "it", changed, {"quant_method": "compressed-tensors"}) as checkpoint,
        pytest.raises((BadCheckpoint, UnsupportedModel), match=sentence),
    ):
        to_weight(checkpoint, "layer", (ROWS, INPUTS))


@pytest.mark.parametrize("groups", [[1], "x", {"a": 3}, {"a": {"weights": "x"}}])
def test_groups_that_are_no_tables(tmp_path: Path, groups: Any) -> None:
    tensors = {
        "layer.weight": torch.zeros(200, 320).to(torch.float8_e4m3fn),
        "layer.weight_scale": torch.ones(2, 3),
    }
    config = {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": groups}
    checkpoint = open_folder(tmp_path / "it", tensors, config)
    with checkpoint, pytest.raises(UnsupportedModel, match="names no block size"):
        to_weight(checkpoint, "layer", (200, 320))
