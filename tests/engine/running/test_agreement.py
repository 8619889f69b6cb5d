"""Code whose logits depend on how a text is computed is found out when the weights are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import kernels
from engine import UnsupportedModel
from engine.models import Fallback, alone
from engine.running.agreement import check_agreement
from engine.running.forward import Forward

from ..models.tiny_architectures import make_architecture, make_config


def load(folder: Path, kind: str, **changes: Any) -> Forward:
    config = make_config(kind)
    for name, value in changes.items():
        setattr(config, name, value)
    make_architecture(config).save_pretrained(folder)
    return Forward.of(folder, kernels.select("cpu", "reference"), 64, 32)


def test_positions_that_begin_elsewhere_if_they_are_not_told(tmp_path: Path) -> None:
    forward = load(tmp_path, "roberta")
    with pytest.raises(UnsupportedModel, match=r"roberta, by transformers, cannot be used: .* are \d\d% of"):
        check_agreement(forward.model, forward.ops)


class Shifted(torch.nn.Module):
    """A layer that mixes each token with the one before it, as a convolution would."""

    def __init__(self, layer: torch.nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.layer(hidden + torch.nn.functional.pad(hidden, (0, 0, 1, 0))[:, :-1])


def test_a_state_that_nothing_tells_of(tmp_path: Path) -> None:
    forward = load(tmp_path, "olmo3")
    model = forward.model
    assert isinstance(model, Fallback)
    check_agreement(model, forward.ops)
    layer = model.module.model.layers[1]
    layer.mlp = Shifted(layer.mlp)
    with pytest.raises(UnsupportedModel, match="olmo3, by transformers, cannot be used"):
        check_agreement(model, forward.ops)


def test_one_text_that_comes_out_otherwise_is_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As texts of real models in bfloat16 do: a token early in one is far away, however it is computed."""
    forward = load(tmp_path, "olmo3")
    asked: list[tuple[int, ...]] = []

    def noisy(model: Fallback, ids: tuple[int, ...]) -> torch.Tensor:
        asked.append(ids)
        return alone(model, ids) + (9 if len(asked) == 2 else 0)

    monkeypatch.setattr("engine.running.agreement.alone", noisy)
    check_agreement(forward.model, forward.ops)
    assert len(set(asked)) == 4, "the second pair of texts agreed"


def test_code_that_fails(tmp_path: Path) -> None:
    forward = load(tmp_path, "olmo3")
    model = forward.model
    assert isinstance(model, Fallback)
    model.module.model.norm = torch.nn.Linear(3, 3)
    with pytest.raises(UnsupportedModel, match=r"its code fails \(RuntimeError: mat1 and mat2"):
        check_agreement(model, forward.ops)
