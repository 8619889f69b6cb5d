"""Every family against transformers' own forward pass: from the folder that it saved, and from GGUF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import kernels
from engine.forward import Forward
from engine.models.families import GGUF_FAMILIES, HF_FAMILIES
from kernels import Ops
from tests.source_tree import ROOT

from .family_gguf import write_gguf
from .tiny_families import FAMILIES, logits_of, make_model, save, text

CONTEXT = 8  # blocks of 16 tokens


@pytest.fixture(scope="module")
def numba() -> Iterator[Ops]:
    ops = kernels.select("cpu", "numba", threads=2)
    yield ops
    ops.close()


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_transformers_own(tmp_path: Path, name: str) -> None:
    model = make_model(name)
    forward = Forward.of(save(model, tmp_path), kernels.select("cpu", "reference"), num_blocks=CONTEXT)
    check(forward, model, text(model))


# llama.cpp has no keys for these; and it knows by itself by what Gemma's queries are scaled
NO_GGUF = {"mistral-windowed", "qwen2-windowed"}
CHANGES = {"gemma2": {"query_pre_attn_scalar": 32}, "gemma3": {"query_pre_attn_scalar": 32}}


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NO_GGUF])
def test_logits_are_the_same_from_gguf(tmp_path: Path, name: str) -> None:
    model = make_model(name, **CHANGES.get(name, {}))
    path = write_gguf(model, save(model, tmp_path), tmp_path / "tiny.gguf")
    check(Forward.of(path, kernels.select("cpu", "reference"), num_blocks=CONTEXT), model, text(model))


def check(forward: Forward, model: Any, tokens: list[int]) -> None:
    """A prompt and then token by token, so that windows slide over what is in the cache."""
    theirs, blocks = logits_of(model, tokens), list(range(1, 1 + len(tokens) // 16 + 1))
    assert theirs.std() > 0.1, "the model says something"
    (first,) = forward((tokens[:30], 0, blocks))
    rest = [forward(([token], 30 + i, blocks))[0] for i, token in enumerate(tokens[30:])]
    assert (torch.cat([first, *rest]) - theirs).abs().max() < 1e-4


def test_a_longrope_loaded_for_a_long_context_takes_its_long_factors(tmp_path: Path) -> None:
    model = make_model("phi3-long")
    forward = Forward.of(save(model, tmp_path), kernels.select("cpu", "reference"), num_blocks=16)
    check(forward, model, text(model, 150))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_processors_kernels(tmp_path: Path, name: str, numba: Ops) -> None:
    """Weights and activations are rounded to int8, a mixture's router may choose others: so the logits of a
    random model are only roughly the same. But token by token they have the bits that they have as a prompt.
    """
    model = make_model(name)
    forward = Forward.of(save(model, tmp_path), numba, num_blocks=CONTEXT)
    tokens, blocks = text(model), list(range(1, CONTEXT))
    theirs = logits_of(model, tokens)
    (whole,) = forward((tokens, 0, blocks))
    error = (whole - theirs).square().mean().sqrt() / theirs.std()
    assert error < (0.4 if forward.model.config.mixture else 0.15)
    (first,) = forward((tokens[:40], 0, blocks))
    rest = [forward(([token], 40 + i, blocks))[0] for i, token in enumerate(tokens[40:])]
    assert torch.equal(torch.cat([first, *rest]), whole)


def test_the_document_lists_what_is_served() -> None:
    rows = re.findall(
        r"^\|[^|]+\| `(\w+)` \| `([\w-]+)` \|", (ROOT / "docs/MODELS.md").read_text("utf-8"), re.M
    )
    assert {kind for kind, _ in rows} == set(HF_FAMILIES)
    assert {architecture for _, architecture in rows} == set(GGUF_FAMILIES)


def test_gpt_oss_as_it_is_published(tmp_path: Path) -> None:
    """Its experts in MXFP4, which transformers makes floats of."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    model, generator = make_model("gpt-oss"), torch.Generator().manual_seed(5)
    packed = {}
    for name, experts in model.named_parameters():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            count, inputs, outputs = experts.shape
            shape = (count, outputs, inputs // 32)
            blocks = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
            scales = torch.randint(120, 124, shape, generator=generator, dtype=torch.uint8)
            experts.data = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32)
            packed |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
    folder = save(model, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: values for name, values in tensors.items() if f"{name}_blocks" not in packed}
    save_file(kept | packed, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    forward = Forward.of(folder, kernels.select("cpu", "reference"), num_blocks=CONTEXT)
    check(forward, model, text(model))
