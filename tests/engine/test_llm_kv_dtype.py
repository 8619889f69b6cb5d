"""Attention memory in 8 bits: it holds nearly twice as much, and hardly changes what a model says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import LLM, BadRequest, EngineConfig, Finish, Message, Request, SamplingParams, perplexity

CONFIG = EngineConfig(num_chats=1, context_length=512, max_num_seqs=2, max_step_tokens=64, threads=2)
TEXT = (Path(__file__).parents[2] / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")[:4000]


def test_the_starter_model_foretells_a_text_as_well(starter_model: Path) -> None:
    full, small = (
        perplexity(starter_model, TEXT, replace(CONFIG, kv_dtype=kind)).perplexity
        for kind in ("auto", "int8")
    )
    assert small == pytest.approx(full, rel=0.01)


def test_chats_share_prefixes_and_blocks_are_smaller(starter_model: Path) -> None:
    llm = LLM.load(starter_model, replace(CONFIG, kv_dtype="int8"))
    plain = LLM.load(starter_model, CONFIG)
    try:
        ask = Request(
            (Message("user", "What is the opposite of hot?"),), SamplingParams(temperature=0, max_tokens=8)
        )
        said = []
        for _ in range(2):
            *deltas, finish = llm.submit(ask)
            assert isinstance(finish, Finish)
            said.append("".join(delta.text for delta in deltas))
        assert said[0] == said[1] and "cold" in said[0].lower()
        assert finish.usage.cached_tokens > 0
        (small,), (full,) = llm.plan.kinds, plain.plan.kinds
        assert small.bytes_per_block / full.bytes_per_block == pytest.approx((64 + 2) / 128)
    finally:
        llm.close()
        plain.close()


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(BadRequest, match="kv_dtype is 'fp4'; it must be one of auto, int8"):
        EngineConfig(kv_dtype="fp4")
