"""Sizes are looked at before anything is read: sound models fit, and what does not is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import BadCheckpoint, UnsupportedModel
from engine.checkpoints import open_checkpoint
from engine.models import check_shapes, read_config
from tests.engine.models.family_gguf import write_gguf
from tests.engine.models.test_families import CHANGES, NO_GGUF
from tests.engine.models.tiny_families import FAMILIES, make_model, save


def is_read(name: str) -> None:
    raise AssertionError(f"{name} was read")


def check(path: Path, name: str = "", **changes: object) -> None:
    """With another shape or type of one tensor; without it where that is None."""
    with open_checkpoint(path) as checkpoint:
        config, tensors = read_config(checkpoint), dict(checkpoint.tensors)
        if name and changes:
            tensors[name] = replace(tensors[name], **changes)  # type: ignore[arg-type]
        elif name:
            del tensors[name]
        checkpoint.tensors, checkpoint.raw = tensors, is_read  # type: ignore[assignment, method-assign]
        check_shapes(checkpoint, config)


@pytest.mark.parametrize("name", FAMILIES)
def test_sound_models_fit(tmp_path: Path, name: str) -> None:
    model = make_model(name, **CHANGES.get(name, {}))
    check(folder := save(model, tmp_path))
    if name not in NO_GGUF:
        check(write_gguf(model, folder, tmp_path / "tiny.gguf"))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    folder = save(make_model("qwen2"), tmp_path)
    with open_checkpoint(folder) as checkpoint:
        shapes = {name: info.shape for name, info in checkpoint.tensors.items()}
    layers = sorted(name for name in shapes if ".1." in name)
    for name in ("model.norm.weight", "model.embed_tokens.weight", *layers):
        longer = (*shapes[name][:-1], shapes[name][-1] + 1)
        with pytest.raises(BadCheckpoint, match=rf"{name} is \[.*expected \["):
            check(folder, name, shape=longer)
        if len(shapes[name]) == 1:
            with pytest.raises(BadCheckpoint, match=f"has no tensor {name}"):
                check(folder, name)
    with pytest.raises(UnsupportedModel, match="has type F64"):
        check(folder, "model.norm.weight", type="F64")
