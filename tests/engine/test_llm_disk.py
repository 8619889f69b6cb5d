"""The real model goes on with yesterday's chat: what the process before left on the disk is read; the text
is the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine import LLM, EngineConfig, Finish, Message, Request, SamplingParams

GREEDY = SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)
SYSTEM = Message("system", "You answer in one sentence and never use more words than you need. " * 6)
ASKED = Request((SYSTEM, Message("user", "What is a folio?")), GREEDY, group="chat", keep=True)


def load(model: Path, folder: Path | None, **settings: int) -> LLM:
    config = EngineConfig(num_chats=2, context_length=1024, threads=2, **settings)
    return LLM.load(model, config, secret=b"secret", blocks=folder)


def words(llm: LLM, request: Request) -> tuple[str, int]:
    """The answer, and how much of the prompt was cached."""
    *deltas, finish = llm.submit(request)
    assert isinstance(finish, Finish) and not finish.error
    return "".join(delta.text for delta in deltas), finish.usage.cached_tokens  # type: ignore[union-attr]


def test_a_chat_goes_on_after_a_restart_until_it_is_deleted(starter_model: Path, tmp_path: Path) -> None:
    private = replace(ASKED, owner="private-1", group="private-1", keep=False)
    first = load(starter_model, tmp_path)
    said, cached = words(first, ASKED)
    assert cached == 0 and words(first, private) == (said, 0)
    first.close()
    second = load(starter_model, tmp_path)
    assert second.estimate(ASKED).cached_tokens > 90
    again, cached = words(second, ASKED)
    assert again == said and cached > 90
    assert words(second, private) == (said, 0)
    (disk,) = second.picture().tiers
    assert (
        disk.name == "disk" and disk.hits == cached // second.plan.block_size and disk.num_blocks >= disk.hits
    )
    second.forget("chat")
    assert words(second, private) == (said, cached)  # its own, from memory
    second.close()
    third = load(starter_model, tmp_path)
    assert words(third, ASKED) == (said, 0)
    third.clear_disk()
    assert third.picture().tiers[0].num_bytes == 0
    third.close()


def test_swapped_chats_come_back(starter_model: Path) -> None:
    config = EngineConfig(num_chats=1, context_length=512, threads=2, swap_space=2**30)
    llm = LLM.load(starter_model, config)
    said, _ = words(llm, ASKED)
    llm.free_cached()
    again, cached = words(llm, ASKED)
    assert again == said and cached > 90 and llm.picture().tiers[0].hits
    llm.close()
