"""Out of memory during a step: it is computed in pieces, one request fails at the most, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.errors import DeviceFull, DeviceLost
from engine.scheduling.plan import Plan
from kernels import ForwardBatch
from kernels.reference import ReferenceOps
from tests.engine.ladder import Ladder, Outcome
from tests.tiny_models import write_tiny_gguf

PROMPTS = {"long": list(range(20, 77)), "short": [5, 6, 7], "one": [9]}
NUM_TOKENS = 5


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("pieces") / "tiny.gguf").path


class Small(ReferenceOps):
    """A device with memory for steps of so many tokens, and for none with some tokens in them."""

    most = 10**9
    refused: tuple[int, ...] = ()

    def embed(self, batch: ForwardBatch, *rest: object, **more: object) -> None:
        tokens = batch.token_ids[: int(batch.counts[0])].tolist()
        if len(tokens) > self.most or set(tokens) & set(self.refused):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        super().embed(batch, *rest, **more)  # type: ignore[arg-type]


def answers(path: Path, most: int = 10**9, refused: tuple[int, ...] = ()) -> dict[str, Outcome]:
    ops = Small()
    ladder = Ladder(path, ops)
    ops.most, ops.refused = most, refused
    for name, prompt in PROMPTS.items():
        ladder.add(name, prompt, NUM_TOKENS)
    outcomes = ladder.run()
    assert not any(pool.num_used for pool in ladder.scheduler.tables.pools)
    return outcomes


@pytest.mark.parametrize("most", [40, 7, 1])
def test_answers_are_the_same_in_pieces(path: Path, most: int) -> None:
    """Steps of several requests are halved, then a prompt's own tokens, down to one by one."""
    whole, pieces = answers(path), answers(path, most)
    assert {name: each.tokens for name, each in pieces.items()} == {n: w.tokens for n, w in whole.items()}


@pytest.mark.parametrize("token,name", [(59, "long"), (6, "short"), (9, "one")])
def test_one_request_fails_and_the_others_go_on(path: Path, token: int, name: str) -> None:
    whole, got = answers(path), answers(path, refused=(token,))
    assert "no memory left for 1 tokens" in got[name].error and "close other programs" in got[name].error
    others = set(PROMPTS) - {name}
    assert all(got[other].tokens == whole[other].tokens for other in others)


def test_never_all_at_once(path: Path) -> None:
    """With no memory at all, each step ends one request; when there is memory again the last goes on."""
    ops = Small()
    ladder = Ladder(path, ops)
    for name, prompt in PROMPTS.items():
        ladder.add(name, prompt, NUM_TOKENS)
    ops.most = 0
    for left in (2, 1):
        ladder.engine.step()
        ladder.scheduler.check()
        assert len(ladder.scheduler.running + ladder.scheduler.waiting) == left
    ops.most = 10**9
    (last,) = ladder.scheduler.running + ladder.scheduler.waiting
    assert ladder.run()[last.id].tokens == answers(path)[last.id].tokens


def test_steps_are_shorter_afterwards(path: Path) -> None:
    ops = Small()
    ladder, sizes = Ladder(path, ops), []
    launch = ladder.runner.launch

    def seen(plan: Plan) -> Callable[[], list]:
        sizes.append(sum(item.num_tokens for item in plan.items))
        return launch(plan)

    ladder.runner.launch = seen  # type: ignore[method-assign]
    ops.most = 120
    ladder.add("a", [3 + i % 50 for i in range(240)], 1)
    ladder.run()
    assert sizes == [240, 120, 120] and ladder.scheduler._max_step_tokens == 256


def test_an_error_of_the_device_is_told_from_one_of_ours(path: Path) -> None:
    """After the first nothing is asked of it again; the second is a fault like any other."""
    runner, plan = Ladder(path, ReferenceOps()).runner, Plan((), (), 0.0)
    cases = {
        "Triton Error [CUDA]: an illegal memory access was encountered": DeviceLost,
        "CUDA error: device-side assert triggered\nmore": DeviceLost,
        "mat1 and mat2 shapes cannot be multiplied": RuntimeError,
        "Triton Error [CUDA]: out of memory": DeviceFull,
        "CUDA error: out of memory\nmore": DeviceFull,
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": DeviceFull,
        "mat1 ran out of memory to name": RuntimeError,
    }
    said = {DeviceLost: "Octavo has to start anew", DeviceFull: "There was no memory left for 0 tokens"}
    for text, kind in cases.items():
        runner.replay = _raising(RuntimeError(text))
        with pytest.raises(kind, match=said.get(kind, text)):
            runner.run(plan)
    runner.replay = _raising(MemoryError())
    with pytest.raises(DeviceFull):
        runner.run(plan)


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def run() -> None:
        raise error

    return run
