"""The real model's memory while it answers: pictured, freed, made smaller and larger; the text stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine import LLM, EngineConfig, EngineStopped, Finish, Message, Request, SamplingParams

GREEDY = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
SYSTEM = Message("system", "You answer in one sentence and never use more words than you need. " * 6)
HUGE = 10**15


@pytest.fixture(scope="module")
def llm(starter_model: Path) -> Iterator[LLM]:
    llm = LLM.load(starter_model, EngineConfig(num_chats=3, context_length=1024, threads=2))
    yield llm
    llm.close()


def ask(text: str, group: str) -> Request:
    return Request((SYSTEM, Message("user", text)), GREEDY, group=group)


def words(llm: LLM, request: Request) -> str:
    *deltas, finish = llm.submit(request)
    assert isinstance(finish, Finish) and not finish.error
    return "".join(delta.text for delta in deltas)  # type: ignore[union-attr]


def test_chats_that_begin_alike_are_seen_to_share(llm: LLM) -> None:
    for name in ("one", "two"):
        words(llm, ask(f"Tell me about {name}.", name))
    picture = llm.picture()
    (pool,) = picture.pools
    found = {group.name: group for group in pool.groups}
    assert found["one"].shared == found["two"].shared > 3 and found["one"].held > found["one"].shared
    assert pool.num_written >= found["one"].held and len(pool.states) == llm.plan.num_blocks[0] - 1
    assert sum(second.answer_tokens for second in picture.recent) >= 2 * 24
    assert sum(second.prompt_tokens for second in picture.recent) > 100
    assert picture.recent[-1].sequences == 1 and picture.recent[-1].age >= 0


def test_what_nobody_uses_is_given_back_and_computed_again(llm: LLM) -> None:
    request = ask("What is a folio?", "folio")
    before = words(llm, request)
    (pool,) = llm.picture().pools
    freed = llm.free_cached()
    assert llm.picture().gives_back and freed > 0.9 * pool.num_written * pool.bytes_per_block
    assert llm.stats().cached_blocks == 0 and llm.picture().pools[0].num_written == 0
    assert llm.free_cached() == 0
    assert words(llm, request) == before


def test_the_pool_shrinks_and_grows_while_answers_run(llm: LLM) -> None:
    whole = llm.stats().total_blocks
    request = ask("Count to one hundred, slowly and in words.", "count")
    long = replace(request, sampling=replace(GREEDY, max_tokens=160))
    expected = words(llm, long)
    llm.free_cached()
    stream = iter(llm.submit(long))
    parts = [next(stream)]
    llm.keep_free(HUGE)
    assert llm.stats().total_blocks == -(-1023 // llm.plan.block_size) < whole  # one whole chat
    llm.keep_free(0)
    assert llm.stats().total_blocks == whole
    llm.keep_free(HUGE)
    parts += stream
    assert "".join(part.text for part in parts[:-1]) == expected  # type: ignore[union-attr]
    assert words(llm, long) == expected
    llm.keep_free(1)  # a byte: there is enough
    assert llm.stats().total_blocks == whole
    llm.keep_free(0)


def test_after_the_end(starter_model: Path) -> None:
    llm = LLM.load(starter_model, EngineConfig(num_chats=1, context_length=256, threads=1))
    assert llm.backend
    llm.close()
    for do in (llm.picture, llm.free_cached):
        with pytest.raises(EngineStopped):
            do()
