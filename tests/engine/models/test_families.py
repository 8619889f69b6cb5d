"""Every family against transformers' own forward pass: from the folder that it saved, and from GGUF."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import kernels
from engine.errors import UnsupportedModel
from engine.forward import Forward
from engine.models import read_config
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


def test_whatever_else_transformers_knows_is_refused_by_name(tmp_path: Path) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    others = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - set(HF_FAMILIES)
    assert len(others) > 100
    for kind in (*others, "gemma3", "qwen3_5", "nonsense"):
        checkpoint: Any = SimpleNamespace(
            path=tmp_path / "folder", source="hf", metadata={"model_type": kind}, tensors={}
        )
        with pytest.raises(UnsupportedModel, match=f"its model_type is '{re.escape(kind)[:30]}"):
            read_config(checkpoint)


def test_the_document_lists_what_is_served() -> None:
    rows = re.findall(r"^\|[^|]+\| `(\w+)` \| `(\w+)` \|", (ROOT / "docs/MODELS.md").read_text("utf-8"), re.M)
    assert {kind for kind, _ in rows} == set(HF_FAMILIES)
    assert {architecture for _, architecture in rows} == set(GGUF_FAMILIES)
