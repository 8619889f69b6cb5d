"""Chats through the whole engine: its scheduler, its host work, its sampler. A step in flight while the next
is scheduled must give the same text as steps one by one, may wait for the card nowhere but where it reads
the tokens, and should leave the card no time to rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import torch

from engine.config import EngineConfig
from engine.engine import Engine, make_engine
from engine.fitting.memory_plan import MemoryPlan, ModelFacts
from engine.models.decoder import Decoder
from engine.running.kv_cache import kind_facts
from engine.running.measured_runner import largest_step
from engine.running.runner import Runner
from engine.scheduling.sequence import Sequence
from engine.types import SamplingParams

from .report import Row, judged
from .setup import Setup, replayed, wall
from .weights import decoder, shape_of

CHATS, TOKENS, PROMPT = (1, 8), 128, 200
READY_S = 10.0  # until a runner's records are made
SHARE_GOAL = 0.9  # of the tokens a second that the recorded steps alone would give
KINDS = {
    "greedy": SamplingParams(temperature=0, ignore_eos=True),
    "penalized": SamplingParams(temperature=0.8, top_p=0.95, repetition_penalty=1.1, ignore_eos=True),
}


def through_engine(setup: Setup) -> Iterator[Row]:
    """Four-bit weights, the form with the shortest steps."""
    model = decoder(setup, shape_of(setup), "w4 g128")
    runner, plan = made(setup, model)
    yield from again(setup, model)
    tokens = setup.size(TOKENS, 3)
    for chats in setup.size(len(CHATS), 1) * (2,) if setup.dry else CHATS:
        for name, params in [*KINDS.items()][: setup.size(len(KINDS), 1)]:
            texts, rates = [], []
            for depth in (0, 1):
                runner.depth = depth
                engine = make_engine(runner, plan, facts_of(model), EngineConfig(speculation="off"), b"")
                with strict(setup, runner, depth):
                    text, rate = answers(setup, engine, chats, tokens, params)
                texts.append(text)
                rates.append(rate)
            same = texts[0] == texts[1]
            row = f"{name}, {chats} chats: one step in flight as none"
            yield Row("engine", row, float(same), "equal", passed=same, note=f"{rates[0]:.0f} tokens/s at 0")
            best = chats / (wall(setup, runner.replay) if setup.dry else replayed(runner.replay))
            note = "of the recorded step's own speed, draws not counted"
            goal = SHARE_GOAL if name == "greedy" else 0.0
            yield judged(
                "engine", f"{name}, {chats} chats", rates[1], "tokens/s", best, rates[1] / best, goal, note
            )


def made(setup: Setup, model: Decoder) -> tuple[Runner, MemoryPlan]:
    """For a few chats of 1024 tokens."""
    config, seqs, most, context = model.config, 8, setup.size(512, 40), setup.size(1024, 64)
    kinds = tuple(each.with_blocks(64) for each in kind_facts(config, setup.ops.kv_dtype))
    blocks = (1 + seqs * -(-context // 64),) * len(kinds)
    plan = MemoryPlan(64, context, kinds, blocks, 0, 0, 0, seqs, most, seqs, ())
    return Runner(model, setup.ops, plan), plan


def again(setup: Setup, model: Decoder) -> Iterator[Row]:
    """A runner made when everything is compiled, as at a model's second load: the seconds until its records
    are made and the largest step was computed, and what of the card it takes beside its pages.
    """
    before, began = setup.ops.free_memory(), time.perf_counter()
    runner, plan = made(setup, model)
    runner.run(largest_step(plan))
    took = time.perf_counter() - began
    yield Row("engine", "warm-up and records", took, "s", bound=READY_S, passed=setup.dry or took < READY_S)
    if before is not None:
        pages = sum(pool.nbytes for pool in runner.cache.pools)
        taken = before - (setup.ops.free_memory() or 0) - pages
        yield Row("engine", "taken beside weights and pages", taken / 2**20, "MiB", note="planned with 256")


def facts_of(model: Decoder) -> ModelFacts:
    """What an engine asks of them."""
    return ModelFacts("random", "random", model.config.context_length, (), 0, 0, 0, 64)


def answers(
    setup: Setup, engine: Engine, chats: int, tokens: int, params: SamplingParams
) -> tuple[dict[str, list[int]], float]:
    """What the chats say, and tokens a second once all of them answer."""
    made, length = [], setup.size(PROMPT, 5)
    for chat in range(chats):
        prompt = [3 + (7 * chat + 11 * i) % 400 for i in range(length)]
        request = SimpleNamespace(params=params, seed=chat)
        made.append(seq := Sequence(str(chat), prompt, tokens, request=request))
        engine.scheduler.add(seq, 0.0)
    begun, before = 0.0, 0
    while engine.has_work():
        engine.step()
        if not begun and all(len(seq.tokens) > length for seq in made):
            begun, before = time.perf_counter(), sum(len(seq.tokens) for seq in made)
    took = time.perf_counter() - begun
    count = sum(len(seq.tokens) for seq in made) - before
    return {seq.id: seq.tokens for seq in made}, count / took


@contextmanager
def strict(setup: Setup, runner: Runner, depth: int) -> Iterator[None]:
    """At depth 1 whatever waits for the card while steps of answers are launched is an error."""
    launch = runner.launch
    if setup.dry or not depth:
        yield
        return

    def watched(plan):  # type: ignore[no-untyped-def]
        answering = not plan.chunks and not plan.copies
        torch.cuda.set_sync_debug_mode("error" if answering else "default")
        try:
            return launch(plan)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    runner.launch = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        runner.launch = launch  # type: ignore[method-assign]
