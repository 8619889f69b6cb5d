"""Architectures that transformers' code computes over our pages: logits, and folders that are not whole."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import kernels
from engine.errors import BadCheckpoint, EngineError, UnsupportedModel
from engine.models import Fallback
from engine.running.agreement import check_agreement
from engine.running.forward import Forward

from .architectures import SERVED, documented, outcome
from .tiny_architectures import WINDOW, make_architecture, make_config

# One for each thing that may differ.
KINDS = {
    "cohere2": "windows, and layers that are told no positions",
    "deepseek_v3": "keys wider than values, experts that are stored one by one",
    "gemma4_unified_text": "heads of two widths",
    "gpt2": "learned positions",
    "granite_swa": "sinks",
    "hrm_text": "layers that are used again",
    "opt": "positions that begin at 2",
    "stablelm": "part of a head is turned",
    "vaultgemma": "capped scores",
}


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_transformers_own(tmp_path: Path, kind: str) -> None:
    assert outcome(kind, tmp_path) == documented()[kind] == SERVED


def saved(folder: Path, kind: str = "olmo3", dtype: torch.dtype = torch.float32) -> Path:
    make_architecture(make_config(kind)).to(dtype).save_pretrained(folder)
    return folder


def load(folder: Path) -> Forward:
    return Forward.of(folder, kernels.select("cpu", "reference"), 64, 32)


def test_layers_with_a_window_have_pages_of_their_own(tmp_path: Path) -> None:
    config = load(saved(tmp_path, "cohere2")).model.config
    assert config.windows == (WINDOW,)
    assert config.num_heads == 4 and config.num_kv_heads == 2 and config.head_dim == 16


def test_bfloat16_stays_as_it_is(tmp_path: Path) -> None:
    forward = load(saved(tmp_path, dtype=torch.bfloat16))
    assert isinstance(forward.model, Fallback)
    assert {each.dtype for each in forward.model.module.parameters()} == {torch.bfloat16}
    check_agreement(forward.model, forward.ops)


def test_the_plan_knows_what_the_weights_take(tmp_path: Path) -> None:
    model = load(saved(tmp_path, "qwen2_moe")).model
    assert isinstance(model, Fallback) and model.config.borrowed
    taken = sum(each.nbytes for each in (*model.module.parameters(), *model.module.buffers()))
    assert model.config.borrowed.weights_bytes == taken


def test_programs_in_a_folder_are_never_run(tmp_path: Path) -> None:
    folder, ran = saved(tmp_path / "model"), tmp_path / "ran"
    (folder / "evil.py").write_text(
        f"open({str(ran)!r}, 'w')\nclass Model: ...\nclass Config: ...\n", "utf-8"
    )
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["auto_map"] = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    config |= dict.fromkeys(("attn_implementation", "experts_implementation"), "someone/kernel")
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    forward = load(folder)
    assert isinstance(forward.model, Fallback)
    check_agreement(forward.model, forward.ops)
    assert not ran.exists() and not (folder / "__pycache__").exists() and "evil" not in sys.modules


def drop(tensors: dict[str, Tensor]) -> None:
    del tensors["model.layers.1.mlp.up_proj.weight"]


def add(tensors: dict[str, Tensor]) -> None:
    tensors["model.layers.1.mlp.side_proj.weight"] = torch.ones(4, 4)


def cut(tensors: dict[str, Tensor]) -> None:
    tensors["model.norm.weight"] = torch.ones(63)


def spoil(tensors: dict[str, Tensor]) -> None:
    tensors["model.norm.weight"][5] = torch.nan


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (drop, BadCheckpoint, r"has no tensor model.layers.1.mlp.up_proj.weight"),
        (add, UnsupportedModel, r"has a tensor 'model.layers.1.mlp.side_proj.weight', which has no place"),
        (cut, BadCheckpoint, r"tensor model.norm.weight is \[63\], expected \[64\]"),
        (spoil, BadCheckpoint, r"1 of 64 values of model.norm.weight are no finite numbers"),
    ],
)
def test_a_folder_that_is_not_whole(
    tmp_path: Path, change: Callable[[dict[str, Tensor]], None], error: type[EngineError], words: str
) -> None:
    file = saved(tmp_path) / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file(tensors, file, {"format": "pt"})
    with pytest.raises(error, match=words):
        load(tmp_path)
