"""TritonOps in the interpreter: what it refuses, and whole models on it that say what the reference says."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import kernels
from engine.running import graphs, runner
from kernels import Dense, Experts, ForwardBatch, Norm
from kernels.reference import ReferenceOps
from kernels.triton import TritonOps, targets
from kernels.triton.attention import Workspace
from kernels.triton.checks import check_dtypes
from kernels.triton.targets import TARGETS
from tests.engine.ladder import Ladder
from tests.engine.models.tiny_families import make_model, save
from tests.kernels.triton.paged import make_step
from tests.tiny_models import write_tiny_gguf

PROMPTS = [list(range(3, 29)), [5], [9]]
NUM_TOKENS = 3


@pytest.fixture
def ops() -> TritonOps:
    return TritonOps("cpu", torch.float32)


FEW_LAYERS: dict[str, dict[str, object]] = {
    "gemma3": {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    "gemma4-small": {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2,
                     "num_kv_shared_layers": 2},
    "gemma4-moe": {"num_hidden_layers": 1, "layer_types": ["full_attention"]},
    "qwen3-moe": {"num_hidden_layers": 2},
}  # fmt: skip


@pytest.fixture(scope="module", params=["llama", *FEW_LAYERS])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Quantized; or with norms of heads and of what is added, and windows; or a mixture of experts."""
    folder = tmp_path_factory.mktemp("triton")
    if request.param == "llama":
        return write_tiny_gguf(folder / "tiny.gguf", quantization="Q4_1").path
    return save(make_model(request.param, **FEW_LAYERS[request.param]), folder)


def answers(ladder: Ladder, chats: int = 2) -> list[list[int]]:
    """Chats at once, one with a prompt of two chunks, longer than a window."""
    for number, prompt in enumerate(PROMPTS[:chats]):
        ladder.add(str(number), prompt, NUM_TOKENS)
    return [outcome.tokens for outcome in ladder.run().values()]


def test_a_model_answers_as_on_the_reference(model: Path) -> None:
    wanted = answers(Ladder(model, ReferenceOps(), chunk=16))
    assert answers(Ladder(model, TritonOps("cpu", torch.float32), chunk=16)) == wanted


@pytest.mark.parametrize("kv_dtype", [torch.int8, torch.float8_e4m3fn])
def test_pages_of_8_bits_go_through_the_engine(tmp_path: Path, kv_dtype: torch.dtype) -> None:
    """The same on both, a page's copy (two chats that begin alike) with its scales."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf").path
    results = []
    for ops in (ReferenceOps(kv_dtype=kv_dtype), TritonOps("cpu", torch.float32, kv_dtype)):
        ladder = Ladder(path, ops)
        ladder.add("first", PROMPTS[0], 2)
        ladder.run()
        ladder.add("second", PROMPTS[0], 2)
        results.append([outcome.tokens for outcome in ladder.run().values()])
    assert results[0] == results[1]


class Graphs(TritonOps):
    """Replays as a CUDA graph does: the launches of the recorded size, on what the card has by then."""

    batch: ForwardBatch

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        host = self.batch.host
        assert host is not None
        counts, cu_lens = host.counts.clone(), host.cu_lens.clone()

        def replay() -> None:
            now = host.counts.clone(), host.cu_lens.clone()
            host.counts[:], host.cu_lens[:] = counts, cu_lens
            forward()
            host.counts[:], host.cu_lens[:] = now

        replay()
        return replay


def test_a_record_for_more_answers_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three answers in a record for four: what is launched for the fourth changes nothing."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantization="Q4_1").path
    ops = Graphs("cpu", torch.float32)
    ops.records_by_size = True

    def noted(ops: Graphs, forward: Callable[[], None], batch: ForwardBatch, most: int) -> Callable[[], None]:
        ops.batch = batch
        return graphs.recorded(ops, forward, batch, most)

    results = [answers(Ladder(path, ReferenceOps(), max_num_seqs=4), chats=3)]
    monkeypatch.setattr(runner, "recorded", noted)
    monkeypatch.setattr(runner, "card_of", lambda ops: torch.device("cpu"))
    results.append(answers(Ladder(path, ops, max_num_seqs=4), chats=3))
    assert results[0] == results[1]


def test_select() -> None:
    assert isinstance(kernels.select("cpu", "triton", dtype=torch.float16), TritonOps)


def test_a_card_without_triton_is_served_by_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert isinstance(kernels.select("cuda", threads=2), ReferenceOps)


def test_a_card_that_nothing_is_compiled_for_is_served_by_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (6, 1))
    assert isinstance(kernels.select("cuda"), ReferenceOps)
    with pytest.raises(RuntimeError, match="Nothing is compiled for cuda"):
        TritonOps("cuda")


@pytest.mark.parametrize(
    "capability,name",
    [((7, 5), "sm_75"), ((8, 7), "sm_86"), ((9, 0), "sm_90"), ((10, 3), "sm_100"), ((12, 1), "sm_120")],
)
def test_a_card_runs_what_the_newest_before_it_runs(capability: tuple[int, int], name: str) -> None:
    assert targets.nearest(*capability) == TARGETS[name]


@pytest.mark.parametrize(
    "target,dtype,kv_dtype,text",
    [
        ("sm_75", torch.bfloat16, torch.bfloat16, "sm_75 does not multiply bfloat16; use float16"),
        ("sm_75", torch.float16, torch.int8, "sm_75 cannot keep keys and values as torch.int8"),
        (
            "sm_86",
            torch.bfloat16,
            torch.float8_e4m3fn,
            "sm_86 cannot keep .* as torch.float8_e4m3fn; use torch.i",
        ),
        ("sm_90", torch.float64, torch.float64, "computes in float32, float16 or bfloat16"),
        ("sm_90", torch.bfloat16, torch.float16, "not torch.bfloat16 with torch.float16 kept"),
    ],
)
def test_types_that_a_card_cannot_do(
    target: str, dtype: torch.dtype, kv_dtype: torch.dtype, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        check_dtypes(TARGETS[target], dtype, kv_dtype)


def test_a_step_inside_a_prompt_wants_no_logits(ops: TritonOps) -> None:
    step, out = make_step([3], [10]), torch.full((4, 32), torch.nan)
    head = ops.pack([Dense(torch.ones(32, 64))])
    ops.logits(step.batch, torch.zeros(4, 64), Norm(torch.ones(64), 1e-5), head, out)
    assert out.isnan().all()


def test_counters_that_were_outgrown_are_kept() -> None:
    """A record goes on to use those that it was made with, however long the prompts that come after it."""
    work = Workspace.of(torch.device("cpu"))
    first = weakref.ref(work.counters(10))
    assert len(work.counters(2 * len(work.arrived))) > len(work.outgrown[0])
    assert first() is work.outgrown[0]


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """What torch says of streams and graphs, without a card; with what each graph was made."""
    graphs = list[dict[str, object]]()
    stream = SimpleNamespace(wait_stream=lambda other: None)

    def graph(made: object, **options: object) -> nullcontext[None]:
        graphs.append(options)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Recorded())
    monkeypatch.setattr(torch.cuda, "graph", graph)
    return graphs


class Recorded:
    """A graph."""

    def pool(self) -> str:
        return "a graph's memory"

    def replay(self) -> None:
        """Of nothing."""


def test_records_share_their_memory_and_leave_other_threads_alone(
    ops: TritonOps, card: list[dict[str, object]]
) -> None:
    ops.records_by_size, calls = True, list[int]()
    kept = [ops.record(lambda: calls.append(1)) for _ in range(2)]
    assert len(calls) == 4, "each is computed once before it is recorded"
    assert [options["pool"] for options in card] == [None, "a graph's memory"] and len(kept) == 2
    assert {options["capture_error_mode"] for options in card} == {"thread_local"}


def test_what_waits_for_the_card_is_not_recorded(ops: TritonOps, card: list[dict[str, object]]) -> None:
    """Experts without matrix units: the host has to know which rows are whose."""
    ops.records_by_size = True
    ops.mixtures.linear.target = replace(ops.target, matrix=False)
    experts = Experts(
        ops.pack([Dense(torch.randn(2, 64))]),
        (ops.pack([Dense(torch.randn(32, 64))] * 2, gated=True),) * 2,
        (ops.pack([Dense(torch.randn(64, 32))]),) * 2,
        1,
        True,
    )
    step, hidden = make_step([1], [10]), torch.randn(2, 64)

    def forward() -> None:
        ops.norm_experts_add(step.batch, hidden, None, experts)

    assert ops.record(forward) is forward and not card
