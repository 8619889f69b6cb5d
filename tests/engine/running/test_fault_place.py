"""An answer that is no number ends with the name of the part that it came from; others are not touched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.errors import DeviceLost
from engine.running import runner
from kernels.reference import ReferenceOps
from tests.engine.ladder import Ladder
from tests.engine.models.tiny_families import make_model, save

BREAKS: dict[str, Callable[[Ladder], torch.Tensor]] = {
    "the embedding": lambda ladder: ladder.runner.model.embedding.matrix,
    "layer 2, queries, keys and values": lambda ladder: ladder.runner.model.layers[1].qkv.matrix,
    "layer 1, windowed attention": lambda ladder: ladder.runner.model.layers[0].output.matrix,
    "layer 2, full attention": lambda ladder: ladder.runner.model.layers[1].output.matrix,
    "layer 2, feed-forward": lambda ladder: ladder.runner.model.layers[1].feed_forward[1].matrix,
    "the output head": lambda ladder: ladder.runner.model.head.matrix,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    types = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
    return save(make_model("gemma3", **types, tie_word_embeddings=False), tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("place", BREAKS)
def test_the_part_is_named(path: Path, place: str) -> None:
    ladder = Ladder(path, ReferenceOps())
    BREAKS[place](ladder)[:] = torch.nan
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
