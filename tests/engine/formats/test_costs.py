"""The table of costs against what packing really takes, and `describe` on files of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import read_gguf
from engine.checkpoints.gguf_header import TENSOR_TYPES
from engine.errors import BadCheckpoint
from engine.formats import Cost, describe, quantize, to_weight
from engine.formats.costs import CARD_BITS, EXACT, FOLDERS, GGUF, MEMORY_BITS, ON_LOAD, ROUNDED, SCALES
from kernels import Dense
from kernels.cpu.packing import pack
from kernels.triton.packing import pack_part
from kernels.weights import Weight, whole
from tests.engine.formats.folders import open_folder
from tests.kernels.random_weights import random_weight
from tests.source_tree import ROOT
from tests.tiny_models import write_tiny_gguf


@pytest.mark.parametrize("form", MEMORY_BITS)
def test_memory_is_what_packing_takes(form: type) -> None:
    packed = pack([random_weight(form, 64, 512)], None, False)
    assert sum(part.data.nbytes for part in packed.parts) * 8 == MEMORY_BITS[form] * 64 * 512


@pytest.mark.parametrize("form", CARD_BITS)
def test_memory_on_a_card_is_what_packing_takes(form: type) -> None:
    part = pack_part(random_weight(form, 64, 512), torch.bfloat16, True)
    assert sum(tensor.nbytes for tensor in part.tensors.values()) * 8 == CARD_BITS[form] * 64 * 512


def test_each_format_has_a_cost() -> None:
    assert set(MEMORY_BITS) == set(CARD_BITS) == set(Weight.__args__)


def table(heading: str) -> dict[str, list[str]]:
    """The table below a heading of the document: first cell -> the others."""
    section = (ROOT / "docs/FORMATS.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    lines = [line for line in section.split("\n## ")[0].splitlines() if line.startswith("| ")][1:]
    rows = [[cell.strip(' `"') for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_the_document_says_the_same() -> None:
    types = {name: size * 8 / block for name, block, size in TENSOR_TYPES.values()}
    for heading, costs in (
        ("GGUF", GGUF),
        ("Folders with safetensors", FOLDERS),
        ("Quantizing on load", ON_LOAD),
    ):
        written = table(heading)
        for name, (form, error) in costs.items():
            disk = [f"{types[name]:g}"] if costs is GGUF else []
            row = [*disk, form.__name__, f"{MEMORY_BITS[form]:g}"]
            assert written.pop(name)[: len(row)] == row, name
            if costs is GGUF:
                assert (table(heading)[name][-1] == "exact") == (error == EXACT), name
        assert set(written) <= {"none", "auto"}


def test_a_gguf_file(tmp_path: Path) -> None:
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf", quantization="Q4_K")
    with read_gguf(tiny.path) as checkpoint:
        assert describe(checkpoint, "blk.0.attn_q") == Cost("Q4_K", "Int4K", 4.5, 4.625, EXACT)
        assert describe(checkpoint, "blk.0.attn_q", "int4") == describe(checkpoint, "blk.0.attn_q")
        assert describe(checkpoint, "blk.0.ffn_down") == Cost("Q6_K", "Int6", 6.5625, 6.5625, EXACT)
        with pytest.raises(BadCheckpoint, match=r"tiny\.gguf has no tensor blk\.9\.attn_q\.weight"):
            describe(checkpoint, "blk.9.attn_q")


INTS = {"scales": torch.ones(2, 64).half(), "qzeros": torch.zeros(2, 8).int()}
ORDER = torch.arange(256).int() // 128
CASES: list[tuple[str, dict[str, torch.Tensor], Cost | None]] = [
    ("plain", {"weight": torch.ones(64, 256).bfloat16()}, Cost("floats", "Dense", 16, 8.5, ROUNDED)),
    (
        "gptq",
        {"qweight": torch.zeros(32, 64).int(), "g_idx": ORDER, **INTS},
        Cost("4-bit integers", "Int4Z", 4 + 20 / 128 + 0.5, 5.0, SCALES),
    ),
    (
        "gptq",
        {"qweight": torch.zeros(32, 64).int(), "g_idx": ORDER.flip(0), **INTS},
        Cost("integers in act-order", "Int8", 4 + 20 / 128 + 0.5, 8.5, ROUNDED),
    ),
    (
        "compressed-tensors",
        {
            "weight_packed": torch.zeros(64, 64).int(),
            "weight_scale": torch.ones(64, 1).bfloat16(),
            "weight_shape": torch.tensor([64, 256]),
        },
        Cost("8-bit integers", "Int8", 8 + 1 / 16 + 128 / 2**14, 8.5, SCALES),
    ),
    (
        "compressed-tensors",
        {"weight": torch.ones(64, 256).to(torch.int8), "weight_scale": torch.ones(1)},
        Cost("8-bit integers", "Int8", 8 + 32 / 2**14, 8.5, SCALES),
    ),
    (
        "fp8",
        {"weight": torch.ones(64, 256).to(torch.float8_e4m3fn), "weight_scale_inv": torch.ones(1, 2)},
        Cost("FP8", "Fp8", 8 + 64 / 2**14, 8.5, ROUNDED),
    ),
    ("bitsandbytes", {"weight": torch.zeros(64, 128).byte()}, None),
]


@pytest.mark.parametrize(("method", "tensors", "cost"), CASES)
def test_folders(tmp_path: Path, method: str, tensors: dict[str, torch.Tensor], cost: Cost | None) -> None:
    config: dict[str, Any] = {"quant_method": method, "bits": 4, "weight_block_size": [128, 128]}
    named = {f"layer.{name}": tensor for name, tensor in tensors.items()}
    with open_folder(tmp_path / "it", named, None if method == "plain" else config) as checkpoint:
        assert describe(checkpoint, "layer") == cost
        if cost is not None:
            weight = to_weight(checkpoint, "layer", (64, 256))
            assert type(weight).__name__ == cost.format
            on_card = describe(checkpoint, "layer", on_card=True)
            part = pack_part(whole(weight), torch.bfloat16, True)
            took = sum(tensor.nbytes for tensor in part.tensors.values()) * 8 / (64 * 256)
            assert on_card and took == pytest.approx(on_card.memory_bits, rel=0.05)


@pytest.mark.parametrize("quantization", ["int8", "int4", "fp8"])
def test_quantized_on_load(tmp_path: Path, quantization: str) -> None:
    with open_folder(tmp_path / "it", {"layer.weight": torch.ones(64, 256).half()}, None) as checkpoint:
        found = describe(checkpoint, "layer", quantization)
        weight = to_weight(checkpoint, "layer", (64, 256))
    assert found is not None and isinstance(weight, Dense)
    assert found.format == type(quantize(weight, quantization)).__name__


def test_a_stack_of_mxfp4(tmp_path: Path) -> None:
    tensors = {"up_blocks": torch.zeros(2, 8, 4, 16).byte(), "up_scales": torch.zeros(2, 8, 4).byte()}
    with open_folder(tmp_path / "it", tensors, {"quant_method": "mxfp4"}) as checkpoint:
        found = describe(checkpoint, "up")
        assert found is not None and (found.source, found.disk_bits, found.format) == ("MXFP4", 4.25, "Int4T")
