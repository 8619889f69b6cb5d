"""A loaded model says the same with drafts and without: stops, limits, end tokens among drafts too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine import LLM, Delta, EngineConfig, Message, Request, SamplingParams
from engine.scheduling.pace import Pace
from tests.tiny_models import write_tiny_gguf

CONFIG = EngineConfig(num_chats=2, max_num_seqs=4, max_step_tokens=64, threads=2)
# a model repeats itself with these, and each token counts for those that follow
REPEATS = SamplingParams(temperature=0.6, repetition_penalty=0.8, frequency_penalty=-1, seed=3, max_tokens=70)
FREE = replace(REPEATS, ignore_eos=True)


def answers(path: Path, speculation: str, asked: list[SamplingParams]) -> tuple[list[tuple], int]:
    """What each answer is, how it ends and is counted; and how many drafts were right."""
    llm, told = LLM.load(path, replace(CONFIG, speculation=speculation)), []
    for params in asked:
        *deltas, finish = llm.submit(Request((Message("user", "the dog, the dog and"),), params))
        assert all(isinstance(delta, Delta) for delta in deltas)
        token_ids = tuple(i for delta in deltas for i in delta.token_ids)
        text = "".join(delta.text for delta in deltas)
        told.append((text, token_ids, finish.reason, finish.usage.completion_tokens))
    stats = llm.stats()
    llm.close()
    assert stats.used_blocks == 0 and (stats.drafted_tokens > 0) == (speculation == "auto")
    return told, stats.accepted_tokens


def test_the_same_is_said_with_drafts_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantization="Q8_0").path
    monkeypatch.setattr(Pace, "answers_s", lambda self, num_tokens: 0.25)  # drafts cost nothing
    ((text, *_),), _ = answers(path, "off", [FREE])
    stops = [replace(FREE, stop=(text[at : at + 3],)) for at in range(len(text) // 3, len(text) - 3, 9)]
    asked = [FREE, REPEATS, *stops, *(replace(FREE, max_tokens=n) for n in (1, 2, 30, 31, 32))]
    plain, none = answers(path, "off", asked)
    quick, accepted = answers(path, "auto", asked)
    assert quick == plain and none == 0 < accepted
