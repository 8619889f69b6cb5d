"""A step waits for the card once, for its tokens. The card here is torch's `meta` device, on which whatever
wants to know a number raises; kernels are launched as on an H200 and compute nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.running.kv_cache import make_kv_cache
from engine.scheduling.block_pool import Chain, Identity
from engine.scheduling.plan import Plan
from engine.tiers.host import Host
from engine.tiers.segments import Block
from engine.types import FinishReason, SamplingParams
from kernels.triton import TritonOps
from kernels.triton.targets import TARGETS
from tests.engine.ladder import Ladder
from tests.engine.models.tiny_families import make_model, save
from tests.engine.running.test_kv_cache import make_config
from tests.tiny_models import write_tiny_gguf

PARAMS = {
    "greedy": SamplingParams(temperature=0),
    "sampled": SamplingParams(temperature=1.2, top_p=0.9, top_k=20),
    "penalized": SamplingParams(temperature=1.0, repetition_penalty=1.2, presence_penalty=0.3),
}
NUM_TOKENS = 6


class Elsewhere(TritonOps):
    """A card that answers no questions; records are the launches themselves."""

    def __init__(self) -> None:
        super().__init__("meta")
        self.depth, self.records_by_size = 1, True

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        forward()
        return forward


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been launched."""
    names = list[str]()
    monkeypatch.setattr("kernels.triton.ops.target_of", lambda device: TARGETS["sm_90"])
    monkeypatch.setattr(
        "triton.runtime.interpreter.GridExecutor.__call__",
        lambda self, *given, **more: names.append(self.fn.__name__),
    )
    return names


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens each wait was for; all are 0."""
    counts = list[int]()

    def fetch(card: torch.Tensor) -> Callable[[], torch.Tensor]:
        assert card.is_meta

        def wait() -> torch.Tensor:
            counts.append(len(card))
            return torch.zeros(card.shape, dtype=card.dtype)

        return wait

    monkeypatch.setattr("engine.running.drawing.fetch", fetch)
    return counts


def made(family: str, folder: Path) -> Path:
    if family == "llama":
        return write_tiny_gguf(folder / "tiny.gguf", quantization="Q4_1").path
    return save(make_model(family), folder)


@pytest.mark.parametrize("family", ["llama", "gemma3", "qwen3-moe"])
def test_a_step_waits_once(family: str, tmp_path: Path, launched: list[str], waits: list[int]) -> None:
    """Prompts in chunks, answers of every kind, a copied block, steps of answers alone."""
    ladder = Ladder(made(family, tmp_path), Elsewhere(), chunk=32, depth=1)
    plans, launch = list[Plan](), ladder.runner.launch

    def noted(plan: Plan) -> Callable[[], list]:
        before = len(waits)
        collect = launch(plan)
        assert len(waits) == before, "a launch waited"
        plans.append(plan)
        return collect

    ladder.runner.launch = noted  # type: ignore[method-assign]
    for at, (name, params) in enumerate(PARAMS.items()):
        ladder.add(name, [5 + at] * (20 + 30 * at), NUM_TOKENS, params)
    outcomes = ladder.run()
    assert all(each.reason is FinishReason.LENGTH and not each.error for each in outcomes.values())
    assert len(waits) == len(plans) > NUM_TOKENS
    assert {"_attend", "_rope_write", "multiply", "survey", "count_drawn", "fill_drawn"} <= {*launched}


def test_blocks_go_down_and_come_up_without_a_wait(
    launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = list[int]()

    def fetch(card: torch.Tensor) -> Callable[[], torch.Tensor]:
        def wait() -> torch.Tensor:
            waits.append(len(card))
            return torch.full(card.shape, 7, dtype=card.dtype)

        return wait

    monkeypatch.setattr("engine.running.kv_cache.fetch", fetch)
    cache = make_kv_cache(make_config(0, 0), Elsewhere(), num_blocks=[5], block_size=32)
    copied = cache.read_block(0, 3)
    cache.write_block(0, 3, bytearray(cache.pools[0][3].nbytes))
    host, chain = Host(1 << 30), Chain.root(b"", Identity("me", "", "", "", 32)).extend((1,) * 32)
    host.put(Block(0, chain, cache.pools[0][3].nbytes, copied))
    assert not waits
    host.settle()
    assert waits == [cache.pools[0][3].nbytes] and {*copied()} == {7}
    assert host.load([(0, chain)]).result() == [copied()] and len(waits) == 1


def test_whoever_asks_the_card_is_found_out(launched: list[str]) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        Elsewhere().hidden(1, 1).tolist()
