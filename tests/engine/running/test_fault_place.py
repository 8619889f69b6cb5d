"""An answer that is no number ends with the name of the part that it came from; others are not touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.errors import DeviceLost
from engine.running import runner
from kernels.reference import ReferenceOps
from tests.engine.ladder import Ladder
from tests.engine.models.tiny_families import make_model, save

# what is broken -> (of which family, its matrix)
BREAKS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "the embedding": ("gemma3", lambda model: model.embedding),
    "layer 2, queries, keys and values": ("gemma3", lambda model: model.layers[1].qkv),
    "layer 1, windowed attention": ("gemma3", lambda model: model.layers[0].output),
    "layer 2, full attention": ("gemma3", lambda model: model.layers[1].output),
    "layer 2, feed-forward": ("gemma3", lambda model: model.layers[1].feed_forward[1]),
    "the output head": ("gemma3", lambda model: model.head),
    "the per-layer embeddings": ("gemma4-small", lambda model: model.per_layer.projection),
    "layer 3, queries, keys and values": ("gemma4-small", lambda model: model.layers[2].qkv),
    "layer 3, per-layer embedding": ("gemma4-small", lambda model: model.layers[2].embedding.gate),
    "layer 4, per-layer embedding": ("gemma4-small", lambda model: model.layers[3].embedding.output),
    "layer 3, feed-forward": ("gemma4-moe", lambda model: model.layers[2].feed_forward[1]),
    "layer 3, experts": ("gemma4-moe", lambda model: model.layers[2].beside.experts.down[1]),
    "layer 2, experts": ("qwen3-moe", lambda model: model.layers[1].feed_forward.router),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    types = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    made = {
        "gemma3": {**types, "tie_word_embeddings": False},
        "gemma4-small": {},
        "gemma4-moe": {},
        "qwen3-moe": {},
    }
    return {
        family: save(make_model(family, **more), tmp_path_factory.mktemp(family))
        for family, more in made.items()
    }


@pytest.fixture
def path(paths: dict[str, Path]) -> Path:
    return paths["gemma3"]


@pytest.mark.parametrize("place", BREAKS)
def test_the_part_is_named(paths: dict[str, Path], place: str) -> None:
    family, part = BREAKS[place]
    ladder = Ladder(paths[family], ReferenceOps())
    part(ladder.runner.model).matrix[:] = torch.nan
    ladder.add("a", list(range(3, 40)), 4)
    outcome = ladder.run()["a"]
    assert outcome.error.endswith(f"it was stopped. What was no number came out of: {place}.")


def test_only_the_chat_whose_token_it_is_ends(path: Path) -> None:
    wanted, ladder = Ladder(path, ReferenceOps()), Ladder(path, ReferenceOps())
    ladder.runner.model.embedding.matrix[7] = torch.nan
    for each in (wanted, ladder):
        each.add("sound", [4, 5, 6], 1)
        each.add("broken", [4, 7], 1)
    outcomes = ladder.run()
    assert "the embedding" in outcomes["broken"].error
    assert outcomes["sound"].tokens == wanted.run()["sound"].tokens and not outcomes["sound"].error


@pytest.mark.parametrize("text", ["CUDA error: out of memory", "CUDA error: unspecified launch failure"])
def test_a_device_that_fails_while_it_is_looked_for(
    path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory for it the place is not named; a device that is lost is lost."""

    def failing(*given: object) -> str:
        raise RuntimeError(text)

    monkeypatch.setattr(runner, "find_fault", failing)
    ladder = Ladder(path, ReferenceOps())
    ladder.runner.model.embedding.matrix[:] = torch.nan
    ladder.add("a", [4, 5], 1)
    if "memory" in text:
        assert ladder.run()["a"].error.endswith("it was stopped.")
    else:
        with pytest.raises(DeviceLost, match="unspecified launch failure"):
            ladder.run()
