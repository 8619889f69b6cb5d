"""A step in flight while the next is scheduled (depth 1): every text is the one that depth 0 gives, whatever
happens meanwhile, and every block comes back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import kernels
from engine import LLM, Delta, EngineConfig, Finish, Message, Request
from engine.errors import DeviceLost
from engine.scheduling.block_pool import PADDING
from engine.scheduling.plan import UNKNOWN, Plan
from engine.scheduling.sequence import Sequence
from engine.types import FinishReason, SamplingParams
from kernels import ForwardBatch, Ops
from kernels.ops import Sampler as SamplerProtocol
from kernels.reference import ReferenceOps
from kernels.triton.sampling import Sampler
from tests.engine.ladder import Ladder
from tests.engine.models.tiny_families import make_model, save
from tests.tiny_models import write_tiny_gguf

NUM_TOKENS = 9
LENGTHS = (1, 16, 17, 33, 64)
PARAMS = {
    "greedy": SamplingParams(temperature=0),
    "sampled": SamplingParams(temperature=1.5, top_p=0.9),
    "penalized": SamplingParams(
        temperature=1.2, repetition_penalty=1.2, frequency_penalty=0.5, presence_penalty=0.3
    ),
}


class Drawing(ReferenceOps):
    """The reference, but tokens are drawn by the kernels and stay on the device."""

    def sampler(self, rows: int, vocabulary: int, slots: int) -> SamplerProtocol:  # type: ignore[override]
        return Sampler(self.device, rows, vocabulary, slots, tile=256, most=64, group=16)


@pytest.fixture(scope="module", params=["reference", "numba"])
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    options = {"reference": {"dtype": torch.float64}, "numba": {"threads": 2}}[request.param]
    ops = kernels.select("cpu", request.param, **options)
    yield ops
    ops.close()


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("flight") / "tiny.gguf", quantization="Q4_1").path


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(make_model("gemma3"), tmp_path_factory.mktemp("windowed"))


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


both = pytest.mark.parametrize("path", ["gguf", "windowed"], indirect=True)


def prompts(path: Path, seed: int = 5) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(3, 150) for _ in range(n)] for n in LENGTHS]


def run(
    path: Path, ops: Ops, params: SamplingParams | None = None, count: int = len(LENGTHS), **more: object
) -> Ladder:
    ladder = Ladder(path, ops, **more)  # type: ignore[arg-type]
    for i, prompt in enumerate(prompts(path)[:count]):
        ladder.add(str(i), prompt, NUM_TOKENS, params)
    ladder.run()
    assert not any(pool.num_used for pool in ladder.scheduler.tables.pools)
    return ladder


def assert_same(first: Ladder, second: Ladder) -> None:
    for name, ours in first.outcomes.items():
        theirs = second.outcomes[name]
        assert (ours.tokens, ours.reason, ours.error) == (theirs.tokens, theirs.reason, theirs.error)
        pairs = zip(ours.logits, theirs.logits, strict=True)
        assert all((a - b).abs().max() <= 1e-9 for a, b in pairs)


def note_plans(ladder: Ladder) -> list[Plan]:
    """All that are launched from now on."""
    plans, launch = list[Plan](), ladder.runner.launch

    def noted(plan: Plan) -> Callable[[], list]:
        plans.append(plan)
        return launch(plan)

    ladder.runner.launch = noted  # type: ignore[method-assign]
    return plans


@both
@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("chunk", [16, 512])
def test_the_same_text(path: Path, ops: Ops, params: str, chunk: int) -> None:
    here, there = (run(path, ops, PARAMS[params], depth=depth, chunk=chunk) for depth in (0, 1))
    assert_same(there, here)


def test_a_step_is_launched_before_the_one_before_it_is_waited_for(gguf: Path) -> None:
    told = list[str]()
    ladder = Ladder(gguf, ReferenceOps(), depth=1)
    launch = ladder.runner.launch

    def noted(plan: Plan):  # type: ignore[no-untyped-def]
        number = sum(each.startswith("launch") for each in told)
        told.append(f"launch {number}")
        assert number < 2 or plan.items[0].token_ids == (UNKNOWN,)
        collect = launch(plan)
        return lambda: (told.append(f"wait {number}"), collect())[1]

    ladder.runner.launch = noted  # type: ignore[method-assign]
    ladder.add("a", [3, 4, 5], 4)
    ladder.run()
    assert told == [
        *("launch 0", "launch 1", "wait 0", "launch 2", "wait 1", "launch 3", "wait 2", "wait 3")
    ]  # a fourth token is the last that fits: nothing is wasted
    assert not ladder.engine.has_work()


def test_an_end_that_is_seen_late_wastes_one_token(gguf: Path) -> None:
    """Its blocks are kept as long as the step in flight names them."""
    first = run(gguf, ReferenceOps())
    end = first.outcomes["3"].tokens[3]
    computed = {}
    for depth in (0, 1):
        ladder = Ladder(gguf, ReferenceOps(), depth=depth)
        plans = note_plans(ladder)
        seq = ladder.add("3", prompts(gguf)[3], NUM_TOKENS, end_ids=frozenset({end}))
        while seq.finish_reason is None:
            ladder.step()
        held = bool(ladder.scheduler.leaving)
        assert held == bool(depth) and any(p != PADDING for p in seq.block_tables[0]) == held
        ladder.run()
        assert ladder.outcomes["3"].reason is FinishReason.STOP
        assert ladder.outcomes["3"].tokens == first.outcomes["3"].tokens[:4]
        assert not any(pool.num_used for pool in ladder.scheduler.tables.pools)
        computed[depth] = sum(item.num_tokens for plan in plans for item in plan.items)
    assert computed[1] == computed[0] + 1


@both
@pytest.mark.parametrize("params", PARAMS)
def test_with_too_few_blocks(path: Path, params: str) -> None:
    ladders = []
    for depth in (0, 1):
        ladder = Ladder(path, ReferenceOps(), num_blocks=9, depth=depth)
        for i in (3, 2):
            ladder.add(str(i), prompts(path)[i], 70, PARAMS[params])
        ladder.run()
        assert ladder.preemptions
        ladders.append(ladder)
    assert [each.tokens for each in ladders[1].outcomes.values()] == [
        each.tokens for each in ladders[0].outcomes.values()
    ]


@both
@pytest.mark.parametrize("seed", range(4))
def test_stops_at_any_moment(path: Path, seed: int) -> None:
    """Those who are stopped got the beginning of their text, the others all of it."""
    rng, whole = random.Random(seed), run(path, ReferenceOps(), depth=0)
    ladder = Ladder(path, ReferenceOps(), depth=1, num_blocks=30, chunk=32)
    for i, prompt in enumerate(prompts(path)):
        ladder.add(str(i), prompt, NUM_TOKENS)
    stopped = set[str]()
    while ladder.engine.has_work():
        ladder.step()
        if rng.random() < 0.3:
            name = str(rng.randrange(len(LENGTHS)))
            if ladder.scheduler.abort(name):
                stopped.add(name)
        ladder.scheduler.check()
    for name, outcome in ladder.outcomes.items():
        wanted = whole.outcomes[name].tokens
        assert outcome.tokens == (wanted[: len(outcome.tokens)] if name in stopped else wanted)
    assert stopped and not any(pool.num_used for pool in ladder.scheduler.tables.pools)


@pytest.mark.parametrize("params", PARAMS)
def test_drawn_on_the_device(gguf: Path, params: str) -> None:
    """Penalties count tokens that the host has not seen yet."""
    here = run(gguf, ReferenceOps(), PARAMS[params], 2)
    there = run(gguf, Drawing(), PARAMS[params], 2, depth=1)
    assert {n: each.tokens for n, each in there.outcomes.items()} == {
        n: each.tokens for n, each in here.outcomes.items()
    }


@pytest.mark.parametrize("kind,params", [*((ReferenceOps, name) for name in PARAMS), (Drawing, "penalized")])
def test_drafts_wait_for_the_step_in_flight(gguf: Path, params: str, kind: type[Ops]) -> None:
    count = 2 if kind is Drawing else len(LENGTHS)
    truth, rng = run(gguf, ReferenceOps(), PARAMS[params], count), random.Random(1)

    def propose(answering: list[tuple[Sequence, int]]) -> list[list[int]]:
        drafts = []
        for seq, limit in answering:
            done = len(seq.tokens) - seq.num_prompt
            right = truth.outcomes[seq.id].tokens[done : done + min(limit, rng.randrange(4))]
            drafts.append([token if rng.random() < 0.6 else token ^ 1 for token in right])
        return drafts

    more = {"propose": propose, "wants_drafts": lambda running: rng.random() < 0.7}
    drafted = run(gguf, kind(), PARAMS[params], count, depth=1, max_num_seqs=4, **more)
    assert {n: each.tokens for n, each in drafted.outcomes.items()} == {
        n: each.tokens for n, each in truth.outcomes.items()
    }
    assert 0 < drafted.scheduler.num_accepted < drafted.scheduler.num_drafted


class Small(ReferenceOps):
    """A device with memory for steps of so many tokens."""

    most = 10**9

    def embed(self, batch: ForwardBatch, *rest: object, **more: object) -> None:
        if int(batch.counts[0]) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        super().embed(batch, *rest, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("most,params", [(40, "greedy"), (3, "penalized"), (1, "sampled")])
def test_a_full_device_takes_in_what_is_in_flight_first(gguf: Path, most: int, params: str) -> None:
    """Also for steps whose tokens were still unknown when there was no room for them."""
    whole, ops = run(gguf, ReferenceOps(), PARAMS[params]), Small()
    ladder = Ladder(gguf, ops, depth=1)
    for i, prompt in enumerate(prompts(gguf)):
        ladder.add(str(i), prompt, NUM_TOKENS, PARAMS[params])
    for _ in range(4):
        ladder.step()
    ops.most = most
    outcomes = ladder.run()
    assert {n: each.tokens for n, each in outcomes.items()} == {
        n: each.tokens for n, each in whole.outcomes.items()
    }


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")
def test_logits_that_are_no_numbers_end_their_own_request(tmp_path: Path) -> None:
    """Found one step late: the part of the model is still named, and nobody else's text changes."""
    path = write_tiny_gguf(tmp_path / "untied.gguf", tied=False).path
    whole = Ladder(path, ReferenceOps())
    whole.add("sound", [4, 5], 4)
    ladder = Ladder(path, Drawing(), depth=1)
    ladder.runner.model.embedding.matrix[9] = torch.nan
    ladder.add("sound", [4, 5], 4)
    ladder.add("broken", [4, 9], 4)
    outcomes = ladder.run()
    assert outcomes["broken"].error.endswith("came out of: the embedding.")
    assert outcomes["sound"].tokens == whole.run()["sound"].tokens
    assert not any(pool.num_used for pool in ladder.scheduler.tables.pools)


def test_nothing_is_told_after_the_device_failed(gguf: Path) -> None:
    """Not even what the step in flight had computed: nobody knows when it went wrong."""
    ladder = Ladder(gguf, ReferenceOps(), depth=1)
    ladder.add("a", [3, 4, 5], 6)
    ladder.step()
    ladder.step()

    def fail() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    ladder.runner.replay = fail
    told = len(ladder.outcomes["a"].tokens)
    with pytest.raises(DeviceLost):
        ladder.step()
    assert len(ladder.outcomes["a"].tokens) == told


def test_stop_strings_and_people_who_leave(gguf: Path) -> None:
    """Through the service, which sees the text of a step while the next is computed."""
    texts = []
    for depth in (0, 1):
        llm = LLM.load(gguf, EngineConfig(backend="reference", num_chats=2, max_step_tokens=64))
        llm.runner.depth = depth
        plain = heard(llm, "Go on")
        stop = plain[0][8:11]
        stopped, sampled = heard(llm, "Go on", stop=(stop,)), heard(llm, "Go on", temperature=0.9, seed=5)
        leaving = llm.submit(asked("Go on", max_tokens=None))
        next(iter(leaving))
        leaving.cancel()
        *_, finish = leaving
        assert isinstance(finish, Finish) and finish.reason is FinishReason.CANCELLED
        assert stop and stop not in stopped[0] and stopped[1] is FinishReason.STOP
        texts.append((plain, stopped, sampled, heard(llm, "Are you there?")))
        assert llm.stats().healthy and llm.stats().used_blocks == 0
        llm.close()
    assert texts[0] == texts[1]


def asked(text: str, **sampling: object) -> Request:
    params = {"temperature": 0, "max_tokens": 20, "ignore_eos": True} | sampling
    return Request((Message("user", text),), SamplingParams(**params))  # type: ignore[arg-type]


def heard(llm: LLM, text: str, **sampling: object) -> tuple[str, FinishReason]:
    *deltas, finish = llm.submit(asked(text, **sampling))
    assert isinstance(finish, Finish)
    return "".join(each.text for each in deltas if isinstance(each, Delta)), finish.reason
