"""What transformers' code can compute over our pages; the rest is refused by name and reason."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.checkpoints import TensorInfo
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.models import ModelConfig, fallback_check, read_config
from engine.models.fallback import Mask
from engine.models.fallback_check import FAR, WANTED, is_window
from tests.source_tree import ROOT

from .architectures import documented, outcome
from .tiny_architectures import make_config

REFUSED = (
    *("bart", "bloom", "camembert", "deepseek_v32", "falcon", "gemma4", "jamba", "jetmoe", "llama4_text"),
    *("mamba", "mimo_v2_flash", "phimoe", "qwen3_5_text", "rwkv"),
)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_is_told_why(tmp_path: Path, kind: str) -> None:
    assert outcome(kind, tmp_path) == documented()[kind] != ""


def read(kind: str = "olmo3", tensors: dict[str, TensorInfo] | None = None, **changes: Any) -> ModelConfig:
    said = json.loads(make_config(kind).to_json_string(use_diff=False)) | changes
    checkpoint: Any = SimpleNamespace(path=Path("folder"), source="hf", metadata=said, tensors=tensors or {})
    return read_config(checkpoint)


def test_names_that_nobody_knows() -> None:
    with pytest.raises(
        UnsupportedModel, match=r"model_type is 'nonsense'; transformers \S+ has no decoder of that"
    ):
        read(model_type="nonsense")
    with pytest.raises(UnsupportedModel, match="model_type is 'clip'; transformers"):
        read(model_type="clip")


def test_without_transformers_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said: Any = SimpleNamespace(path=Path("folder"), source="hf", metadata={"model_type": "gpt2"}, tensors={})
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        UnsupportedModel, match="'gpt2'; only transformers may know it, which is not installed: pip"
    ):
        read_config(said)


def test_the_release_that_is_asked_for_is_the_one_that_is_tested() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras["fallback"] == [WANTED] and WANTED in extras["test"]


@pytest.mark.parametrize(
    "rope", [{"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}, {"rope_type": "longrope",
             "rope_theta": 1e4, "short_factor": [1.0] * 8, "long_factor": [2.0] * 8,
             "original_max_position_embeddings": 128}], ids=["dynamic", "longrope"],
)  # fmt: skip
def test_ropes_that_change_are_refused(rope: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModel, match=f"'arcee'; {fallback_check.ROPES}: {rope['rope_type']}"):
        read("arcee", rope_parameters=rope)


def test_quantized_weights_are_refused() -> None:
    packed = TensorInfo("model.layers.0.mlp.up_proj.qweight", (8, 96), "I32", 0, 3072)
    with pytest.raises(
        UnsupportedModel, match=r"up_proj.qweight has type I32; transformers is given F32, F16, BF16"
    ):
        read(tensors={packed.name: packed})


@pytest.mark.parametrize("name", ["num_hidden_layers", "num_attention_heads", "num_experts"])
def test_more_parts_than_any_model_has_are_refused_before_they_are_made(name: str) -> None:
    with pytest.raises(BadCheckpoint, match=f"{name} is 1000000; it must be at most 1024"):
        read("qwen2_moe", **{name: 1_000_000})


def test_settings_that_make_no_model() -> None:
    with pytest.raises(BadCheckpoint, match=r"its config\.json makes no olmo3 .*hidden_size"):
        read(hidden_size="wide")


HOSTILE = {
    "auto_map": {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
    "attn_implementation": "someone/kernel",
    "_attn_implementation_internal": "someone/kernel",
    "experts_implementation": "someone/kernel",
    "quantization_config": {"quant_method": "someone"},
    "kernel_config": {"RMSNorm": "someone/kernel"},
    "fusion_config": {"patch": True},
    "name_or_path": "someone/model",
    "transformers_weights": "weights.bin",
    "dtype": "float16",
}


def test_settings_that_choose_programs_are_not_taken() -> None:
    taken = read(**HOSTILE, attn_config=dict(HOSTILE)).borrowed
    assert taken
    assert not [name for name in HOSTILE if name in taken.settings]
    assert taken.settings["attn_config"] == {}


@pytest.mark.parametrize("window", [0, 2, 24])
def test_windows_are_told_from_other_masks(window: int) -> None:
    def seen(batch: Any, head: Any, at: Any, other: Any) -> Any:
        return (other <= at) & ((other > at - window) if window else True)

    assert is_window(Mask(seen), window)
    assert not is_window(Mask(seen), window + 1)
    assert not is_window(Mask(lambda *places: seen(*places) | (places[3] > FAR)), window)  # looks ahead
    assert not is_window(Mask(lambda *places: seen(*places) & (places[3] % 2 == 0)), window)
