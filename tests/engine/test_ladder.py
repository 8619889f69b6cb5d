"""Greedy and sampled text is the same whatever happens around a request, and is what transformers says.

On the reference in float64 the ids are equal and logits differ by at most 1e-9; on the processor's kernels
the logits are the same bits. Each rung changes one thing: company, chunks, cached prefixes, preemption, the
block size, the tiers that blocks come back from.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import kernels
from engine.scheduling.pace import Pace
from engine.scheduling.sequence import Sequence
from engine.scheduling.speculation import Speculation
from engine.types import FinishReason, SamplingParams
from kernels import Ops
from tests.engine.forward import divergence
from tests.engine.ladder import Ladder, Outcome, alone
from tests.engine.models.tiny_families import make_model, save
from tests.tiny_models import TinyModel, write_tiny_gguf

NUM_TOKENS = 12
WINDOWS_AND_EXPERTS: dict[str, dict[str, object]] = {  # and what differs from the tiny models
    "gemma3": {},
    "gemma4-small": {"num_hidden_layers": 4, "num_kv_shared_layers": 2,
                     "layer_types": ["sliding_attention", "full_attention"] * 2},
    "qwen3-moe": {},
}  # fmt: skip
SAMPLED = SamplingParams(temperature=1.5, top_p=0.9, repetition_penalty=1.1)


@pytest.fixture(scope="module", params=["reference", "numba"])
def ops(request: pytest.FixtureRequest) -> Iterator[Ops]:
    options = {"reference": {"dtype": torch.float64}, "numba": {"threads": 2}}[request.param]
    ops = kernels.select("cpu", request.param, **options)
    yield ops
    ops.close()


@pytest.fixture(scope="module", params=["llama", "qwen2", *WINDOWS_AND_EXPERTS])
def tiny(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Gemma 3 has two page kinds: blocks of its windows of 24 tokens slide out. Gemma 4's kinds
    have blocks of two sizes, and its last layers look at others' pages.
    """
    folder = tmp_path_factory.mktemp("ladder")
    if request.param in WINDOWS_AND_EXPERTS:
        model = make_model(request.param, **WINDOWS_AND_EXPERTS[request.param])
        return TinyModel(save(model, folder), model, None)
    path = folder / "tiny.gguf"
    return write_tiny_gguf(path, architecture=request.param, quantization="Q4_1")


@pytest.fixture(scope="module")
def prompts(tiny: TinyModel) -> list[list[int]]:
    rng, vocabulary = random.Random(5), tiny.model.config.vocab_size
    return [[rng.randrange(3, vocabulary) for _ in range(n)] for n in (1, 15, 16, 17, 33, 64, 90)]


@pytest.fixture(scope="module")
def truth(tiny: TinyModel, ops: Ops, prompts: list[list[int]]) -> Callable[..., Outcome]:
    known: dict[tuple, Outcome] = {}

    def of(prompt: list[int], params: SamplingParams | None = None) -> Outcome:
        key = (tuple(prompt), params)
        if key not in known:
            known[key] = alone(tiny.path, ops, prompt, NUM_TOKENS, params)
        return known[key]

    return of


def assert_same(ours: Outcome, truth: Outcome, ops: Ops) -> None:
    assert ours.tokens == truth.tokens
    gap = max((a - b).abs().max().item() for a, b in zip(ours.logits, truth.logits, strict=True))
    assert gap <= (0.0 if ops.name == "numba" else 1e-9)
    assert ours.reason is FinishReason.LENGTH


def test_alone_it_is_transformers_text(tiny: TinyModel, prompts: list[list[int]], truth, ops: Ops) -> None:
    model, divergences = tiny.model.double(), []
    for prompt in prompts:
        tokens = list(prompt)
        for token, logits in zip(truth(prompt).tokens, truth(prompt).logits, strict=True):
            with torch.inference_mode():
                theirs = model(torch.tensor([tokens])).logits[0, -1]
            if ops.name == "reference":
                assert token == theirs.argmax()
                # transformers keeps rotary tables and norms in float32
                assert (theirs - logits).abs().max() < 1e-4
            divergences.append(divergence(theirs, logits))
            tokens.append(token)
    # rounded to int8, a random mixture's router may choose others
    assert np.mean(divergences) <= (0.5 if hasattr(model.config, "num_experts_per_tok") else 0.005)
    model.float()


@pytest.mark.parametrize("params", [None, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("chunk", [16, 48, 512])
def test_in_company_and_in_chunks(tiny: TinyModel, ops: Ops, prompts, truth, chunk: int, params) -> None:
    ladder = Ladder(tiny.path, ops, chunk=chunk)
    for i, prompt in enumerate(prompts):
        ladder.add(str(i), prompt, NUM_TOKENS, params)
    for i, outcome in ladder.run().items():
        assert_same(outcome, truth(prompts[int(i)], params), ops)


def test_after_a_cached_prefix(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops)
    for turn in range(2):
        for i, prompt in enumerate(prompts):
            ladder.add(f"{turn} {i}", prompt, NUM_TOKENS)
            ladder.run()
    for i, prompt in enumerate(prompts):
        again = ladder.outcomes[f"1 {i}"]
        assert_same(again, truth(prompt), ops)
        assert again.num_cached == (len(prompt) - 1) // 16 * 16
    stranger = ladder.add("stranger", prompts[-1], NUM_TOKENS, owner="someone else")
    assert_same(ladder.run()["stranger"], truth(prompts[-1]), ops)
    assert stranger.num_cached == 0


def test_the_next_turn_finds_the_answer_cached(tiny: TinyModel, ops: Ops, prompts) -> None:
    ladder = Ladder(tiny.path, ops)
    ladder.add("first", prompts[-1], NUM_TOKENS)
    conversation = prompts[-1] + ladder.run()["first"].tokens + [5, 6, 7]
    ladder.add("second", conversation, NUM_TOKENS)
    second = ladder.run()["second"]
    assert second.num_cached == 96  # 90 of the prompt, then its own answer
    assert_same(second, alone(tiny.path, ops, conversation, NUM_TOKENS), ops)


def test_with_too_few_blocks_for_all(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops, num_blocks=9, chunk=32)
    for i, prompt in enumerate(prompts):
        ladder.add(str(i), prompt, NUM_TOKENS, SAMPLED)
    for i, outcome in ladder.run().items():
        assert_same(outcome, truth(prompts[int(i)], SAMPLED), ops)


def test_after_a_preemption(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops, num_blocks=9)
    for i, prompt in enumerate((prompts[4], prompts[3])):
        ladder.add(str(i), prompt, 70)
    ladder.run()
    assert ladder.preemptions
    for i, prompt in enumerate((prompts[4], prompts[3])):
        assert_same(ladder.outcomes[str(i)], alone(tiny.path, ops, prompt, 70), ops)


def test_branches_share_a_block_until_one_writes(tiny: TinyModel, ops: Ops, prompts) -> None:
    ladder = Ladder(tiny.path, ops)
    parent = ladder.add("parent", prompts[4], 24)  # 33 tokens: its third block is filled in part
    for _ in range(4):
        ladder.step()
    child = Sequence("branch", [*parent.tokens[:-1], 9], 16, request=parent.request)
    ladder.scheduler.fork(parent, child, ladder.now)
    ladder.outcomes["branch"] = Outcome()
    assert child.num_computed > 32  # more than full blocks
    ladder.run()
    assert_same(ladder.outcomes["branch"], alone(tiny.path, ops, child.prompt, 16), ops)
    assert_same(ladder.outcomes["parent"], alone(tiny.path, ops, prompts[4], 24), ops)


def test_swapped_to_the_host_and_back(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops, num_blocks=9, host_bytes=2**30)
    for turn in range(2):
        for i, prompt in enumerate(prompts):
            ladder.add(f"{turn} {i}", prompt, NUM_TOKENS)
            ladder.run()
    for i, prompt in enumerate(prompts):
        again = ladder.outcomes[f"1 {i}"]
        assert_same(again, truth(prompt), ops)
        assert again.num_cached == (len(prompt) - 1) // 16 * 16
    assert ladder.engine.tiers and ladder.engine.tiers.picture()[0].hits


def test_preempted_and_brought_back_from_the_host(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops, num_blocks=9, host_bytes=2**30)
    for i, prompt in enumerate((prompts[4], prompts[3])):
        ladder.add(str(i), prompt, 70)
    ladder.run()
    assert ladder.preemptions
    for i, prompt in enumerate((prompts[4], prompts[3])):
        assert_same(ladder.outcomes[str(i)], alone(tiny.path, ops, prompt, 70), ops)


@pytest.mark.parametrize("num_blocks", [65, 9])
def test_from_the_disk_after_a_restart(
    tiny: TinyModel, ops: Ops, prompts, truth, tmp_path: Path, num_blocks: int
) -> None:
    kept = {"group": "a chat", "keep": True}
    first = Ladder(tiny.path, ops, num_blocks=num_blocks, folder=tmp_path)
    for i, prompt in enumerate(prompts):
        first.add(str(i), prompt, NUM_TOKENS, **kept)
        first.run()
        first.engine.tidy()
    first.add("not to be kept", prompts[-1], NUM_TOKENS, owner="someone else")
    first.run()
    first.close()
    second = Ladder(tiny.path, ops, num_blocks=num_blocks, folder=tmp_path)
    for i, prompt in enumerate(prompts):
        second.add(str(i), prompt, NUM_TOKENS, **kept)
        again = second.run()[str(i)]
        assert_same(again, truth(prompt), ops)
        assert again.num_cached == (len(prompt) - 1) // 16 * 16
    stranger = second.add("stranger", prompts[-1], NUM_TOKENS, owner="someone else")
    assert_same(second.run()["stranger"], truth(prompts[-1]), ops)
    assert stranger.num_cached == 0
    second.close()


@pytest.mark.parametrize("block_size", [32, 64, 128])
def test_with_other_block_sizes(tiny: TinyModel, ops: Ops, prompts, truth, block_size: int) -> None:
    ladder = Ladder(tiny.path, ops, block_size=block_size, num_blocks=24, chunk=32)
    for i, prompt in enumerate(prompts):
        ladder.add(str(i), prompt, NUM_TOKENS)
    for i, outcome in ladder.run().items():
        assert_same(outcome, truth(prompts[int(i)]), ops)


PENALIZED = SamplingParams(
    temperature=1.2, repetition_penalty=1.2, frequency_penalty=0.5, presence_penalty=0.3
)


@pytest.mark.parametrize("params", [None, SAMPLED, PENALIZED], ids=["greedy", "sampled", "penalized"])
def test_with_drafts_right_and_wrong(tiny: TinyModel, ops: Ops, prompts, truth, params) -> None:
    chance = random.Random(1)

    def propose(answering: list[tuple[Sequence, int]]) -> list[list[int]]:
        drafts = []
        for seq, limit in answering:
            done = len(seq.tokens) - seq.num_prompt
            right = truth(prompts[int(seq.id)], params).tokens[done : done + min(limit, chance.randrange(4))]
            drafts.append([token if chance.random() < 0.8 else token ^ 1 for token in right])
        return drafts

    ladder = Ladder(tiny.path, ops, propose=propose, max_num_seqs=4)
    for i, prompt in enumerate(prompts):
        ladder.add(str(i), prompt, NUM_TOKENS, params)
    for i, outcome in ladder.run().items():
        assert_same(outcome, truth(prompts[int(i)], params), ops)
    assert 0 < ladder.scheduler.num_accepted < ladder.scheduler.num_drafted


@pytest.mark.parametrize("temperature", [0, 0.7])
def test_with_speculation(tiny: TinyModel, ops: Ops, prompts, temperature: float) -> None:
    # these make a model repeat itself, and every token counts for those after it
    params = SamplingParams(temperature, repetition_penalty=0.8, frequency_penalty=-1)
    (pace := Pace(1.0)).observe(1, [], 1.0)  # more tokens are guessed to cost little more
    prompt = prompts[4] * 3
    for propose in (Speculation(pace).propose, None):
        ladder = Ladder(tiny.path, ops, propose=propose)
        ladder.add("first", prompt, 60, params)
        ladder.add("second", prompt[7:], 60, params)
        outcomes = ladder.run()
        if propose:
            guessed, accepted = outcomes, ladder.scheduler.num_accepted
    assert accepted
    for name, outcome in outcomes.items():
        assert_same(guessed[name], outcome, ops)


def test_one_broken_request_costs_only_itself(tiny: TinyModel, ops: Ops, prompts, truth) -> None:
    ladder = Ladder(tiny.path, ops)
    ladder.add("good", prompts[3], NUM_TOKENS)
    bad = ladder.add("bad", prompts[4], NUM_TOKENS, SamplingParams(temperature=1))
    bad.request.params = SamplingParams(frequency_penalty=-2)
    object.__setattr__(bad.request.params, "frequency_penalty", float("nan"))
    outcomes = ladder.run()
    assert_same(outcomes["good"], truth(prompts[3]), ops)
    assert outcomes["bad"].reason is FinishReason.ERROR
    assert "position" in outcomes["bad"].error
