"""What a runner takes of a card is measured when it is warm; where that is more than planned, all is planned
again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig
from engine.errors import ModelTooLarge
from engine.fitting.abilities import DeviceFacts
from engine.llm import LLM
from engine.running.measured_runner import MORE, SLACK
from engine.types import Message, Request, SamplingParams
from kernels import ForwardBatch
from kernels.cpu.sampling import CpuSampler
from kernels.cpu.threads import Team
from kernels.reference import ReferenceOps
from tests.tiny_models import write_tiny_gguf

CARD = 8 << 30


class Metered(ReferenceOps):
    """A backend whose runners are said to take so many bytes (`taken`), one after the other."""

    room = 10**9  # tokens of a step that there is memory for

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.asked, self.taken = list[int](), 0, [0]

    def free_memory(self) -> int:  # type: ignore[override]
        self.asked += 1
        return CARD - (self.taken[self.asked // 2 - 1] if self.asked % 2 == 0 else 0)

    def embed(self, batch: ForwardBatch, *rest: object, **more: object) -> None:
        self.steps.append(int(batch.counts[0]))
        if self.steps[-1] > self.room:
            self.asked += 1  # nobody measures after this
            raise torch.OutOfMemoryError("CUDA out of memory.")
        super().embed(batch, *rest, **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "tiny.gguf").path


def load(path: Path, ops: Metered, monkeypatch: pytest.MonkeyPatch) -> LLM:
    """On what is said to be a card of 8 GiB, all of it free."""
    facts = DeviceFacts("a card", "cuda", CARD, CARD, 4, False, "It runs there.")
    monkeypatch.setattr("engine.preparing.place", lambda *given: (facts, ops))
    config = EngineConfig(backend="reference", kv_pool_bytes=None, memory_utilization=0.05)
    return LLM.load(path, config)


def planned(llm: LLM) -> int:
    return llm.plan.kv_bytes + llm.plan.activation_bytes


def test_a_runner_as_planned_is_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = Metered()
    ops.taken = [SLACK]
    llm = load(path, ops, monkeypatch)
    assert ops.asked == 2 and ops.steps[0] == llm.plan.max_step_tokens, "the largest step was computed"
    llm.close()


class Drawing(Metered):
    """One that draws tokens itself, as cards do."""

    def sampler(self, rows: int, vocabulary: int, slots: int) -> CpuSampler:  # type: ignore[override]
        return CpuSampler(Team(1), rows, vocabulary, slots)


def test_the_largest_step_draws_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to no request, so there is nothing to draw by."""
    llm = load(path, Drawing(), monkeypatch)
    list(llm.submit(Request((Message("user", "Hello"),), SamplingParams(max_tokens=2))))
    llm.close()


def test_what_was_not_planned_comes_out_of_the_pool(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = load(path, Metered(), monkeypatch)
    usual.close()
    ops, more = Metered(), 3 * SLACK // 2
    ops.taken = [planned(usual) + more, planned(usual) + SLACK]  # the second has a smaller pool
    corrected = load(path, ops, monkeypatch)
    assert corrected.plan.kv_bytes == usual.plan.kv_bytes - more and ops.asked == 4
    assert planned(corrected) == planned(usual)
    assert corrected.plan.num_blocks < usual.plan.num_blocks
    assert corrected.plan.reasons[-1] == "It runs there."
    corrected.close()


def test_a_card_that_is_full_sooner_is_planned_smaller(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = Metered()
    ops.room = 100
    with pytest.raises(ModelTooLarge, match=r"more than planned each time it is tried|can be used now"):
        load(path, ops, monkeypatch)
    assert MORE > SLACK
