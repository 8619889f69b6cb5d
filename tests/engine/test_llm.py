"""A loaded model as the app meets it: conversations in, streams out, and every way a request can end."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from engine import (
    LLM,
    BadCheckpoint,
    BadRequest,
    Delta,
    EngineConfig,
    EngineStopped,
    Finish,
    FinishReason,
    Message,
    ModelTooLarge,
    PromptTooLong,
    Request,
    SamplingParams,
)
from engine.errors import DeviceLost
from engine.fitting.cores import threads_for
from engine.fitting.placement import backend_options
from engine.llm import NO_TEMPLATE
from engine.scheduling.plan import Plan
from engine.text.templates import CHATML_MARKS
from tests.tiny_models import write_tiny_gguf

SMALL = EngineConfig(num_chats=4, max_num_seqs=8, max_step_tokens=64, threads=2)


@pytest.fixture(scope="module")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("llm") / "tiny.gguf", quantization="Q8_0").path


@pytest.fixture
def tiny(tiny_path: Path) -> Iterator[LLM]:
    llm = LLM.load(tiny_path, SMALL)
    yield llm
    llm.close()


@pytest.fixture(scope="module")
def starter(starter_model: Path) -> Iterator[LLM]:
    llm = LLM.load(starter_model, EngineConfig(num_chats=2, threads=2))
    yield llm
    llm.close()


def ask(text: str, system: str = "", **sampling: object) -> Request:
    messages = (Message("system", system),) if system else ()
    params = {"temperature": 0, "max_tokens": 24, "ignore_eos": True} | sampling
    return Request((*messages, Message("user", text)), SamplingParams(**params))


def listen(llm: LLM, request: Request) -> tuple[str, list[int], Finish]:
    *deltas, finish = llm.submit(request)
    assert isinstance(finish, Finish) and all(isinstance(delta, Delta) for delta in deltas)
    return "".join(d.text for d in deltas), [i for d in deltas for i in d.token_ids], finish


def lasting_threads() -> set[threading.Thread]:
    """Without the timers of renders that are just over."""
    return {thread for thread in threading.enumerate() if not isinstance(thread, threading.Timer)}


@pytest.mark.parametrize(
    ("question", "answer"), [("What is the opposite of hot?", "cold"), ("What is 2+2?", "4")]
)
def test_the_starter_model_knows(starter: LLM, question: str, answer: str) -> None:
    text, token_ids, finish = listen(starter, ask(question, max_tokens=48, ignore_eos=False))
    assert answer in text.lower()
    assert finish.usage.completion_tokens == len(token_ids)
    assert finish.tokenizer == starter.tokenizer.fingerprint
    assert starter.stats().healthy


def test_the_next_turn_computes_only_what_is_new(starter: LLM) -> None:
    question = Message("user", "Name three colours, each with a thing that has it.")
    text, token_ids, first = listen(
        starter, Request((question,), SamplingParams(temperature=0, max_tokens=60))
    )
    reply = Message("assistant", text, tuple(token_ids), first.tokenizer)
    conversation = (question, reply, Message("user", "And one more?"))
    assert (
        starter.prompt(conversation)[: first.usage.prompt_tokens + len(token_ids)]
        == starter.prompt((question,)) + token_ids
    )
    _, _, second = listen(starter, Request(conversation, SamplingParams(temperature=0, max_tokens=2)))
    # the answer's last token was sampled but never computed
    known = first.usage.prompt_tokens + len(token_ids) - 1
    assert second.usage.cached_tokens == known // 16 * 16


def test_a_second_chat_shares_a_long_system_prompt(starter: LLM) -> None:
    system = " ".join(f"Rule {i}: be brief." for i in range(80))
    first = listen(starter, ask("What is a leaf?", system, max_tokens=2))[2].usage
    second = listen(starter, ask("Why is snow white?", system, max_tokens=2))[2].usage
    assert first.cached_tokens < 48  # at most what all conversations begin with
    assert second.cached_tokens > 400
    assert second.prompt_tokens - second.cached_tokens < 48
    stranger = Request(ask("Why is snow white?", system).messages, SamplingParams(max_tokens=2), "stranger")
    assert listen(starter, stranger)[2].usage.cached_tokens == 0


def test_a_stream_says_how_much_of_its_prompt_is_read(starter: LLM) -> None:
    stream = starter.submit(ask(" ".join(f"{i} apples." for i in range(900)), max_tokens=1))
    answer = threading.Thread(target=lambda: [*stream])
    answer.start()
    seen = [0]
    while answer.is_alive():
        if (read := stream.read_tokens) > seen[-1]:
            seen.append(read)
        answer.join(0.001)
    assert len(seen) > 2 and seen[-1] <= stream.prompt_tokens > 2000


def test_an_estimate_is_what_it_then_costs(starter: LLM) -> None:
    request = ask("Name three rivers of Europe, and the sea that each of them flows into. " * 9)
    before = starter.stats()
    foreseen = starter.estimate(request)
    assert starter.stats() == before, "an estimate takes nothing"
    usage = listen(starter, request)[2].usage
    assert (foreseen.prompt_tokens, foreseen.cached_tokens) == (usage.prompt_tokens, usage.cached_tokens)
    assert foreseen.first_token_s > 0
    again = starter.estimate(request)
    assert again.cached_tokens > foreseen.cached_tokens and again.first_token_s < foreseen.first_token_s
    other = starter.estimate(replace(request, owner="someone else"))
    assert other.cached_tokens == 0


def test_estimates_beside_an_answer_that_grows(tiny: LLM) -> None:
    """From other threads, while the pool changes under them."""
    requests = [ask(f"{n} " * 40, max_tokens=60) for n in range(8)]
    streams = [tiny.submit(request) for request in requests]
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda r=r: seen.extend(tiny.estimate(r).prompt_tokens for _ in range(20)))
        for r in requests
    ]
    for thread in threads:
        thread.start()
    finishes = [list(stream)[-1] for stream in streams]
    for thread in threads:
        thread.join()
    assert len(seen) == 160 and set(seen) == {finish.usage.prompt_tokens for finish in finishes}


def test_counting_tokens(starter: LLM) -> None:
    assert starter.count(("", "a", "<|im_start|>", "\ud800")) == (0, 1, 7, starter.count(("?",))[0])


def test_company_does_not_change_an_answer(tiny: LLM) -> None:
    requests = [ask(f"Question {i}", temperature=1.2, seed=i, max_tokens=40) for i in range(12)]
    alone = [listen(tiny, request)[:2] for request in requests]
    together: dict[int, tuple[str, list[int]]] = {}

    def run(i: int) -> None:
        together[i] = listen(tiny, requests[i])[:2]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[i] for i in range(len(requests))] == alone


def test_cancelling_ends_the_stream_and_gives_the_blocks_back(tiny: LLM) -> None:
    stream = tiny.submit(ask("Go on and on", max_tokens=None))
    parts = iter(stream)
    assert isinstance(next(parts), Delta)
    stream.cancel()
    *_, finish = parts
    assert finish.reason is FinishReason.CANCELLED
    stream.cancel()  # again: no effect
    assert listen(tiny, ask("Still there?"))[2].reason is FinishReason.LENGTH
    assert tiny.stats().used_blocks == 0


def test_what_never_fits_is_refused_with_both_numbers(tiny: LLM) -> None:
    with pytest.raises(PromptTooLong, match=r"at most 512 fit"):
        tiny.submit(ask("word " * 2000))
    with pytest.raises(PromptTooLong, match=r"answer needs 600"):
        tiny.submit(ask("hello", max_tokens=600))
    with pytest.raises(BadRequest, match="empty"):
        tiny.submit(ask("  "))
    with pytest.raises(BadRequest, match="no message"):
        tiny.submit(Request(()))
    assert listen(tiny, ask("hello"))[2].reason is FinishReason.LENGTH


def test_a_wish_for_a_long_answer_gives_way_to_the_prompt(tiny: LLM) -> None:
    wish = replace(ask("Go on", max_tokens=600), shorten=True)
    _, token_ids, finish = listen(tiny, wish)
    assert finish.usage.prompt_tokens + len(token_ids) == tiny.context_length
    assert len(listen(tiny, replace(ask("Go on", max_tokens=5), shorten=True))[1]) == 5
    with pytest.raises(PromptTooLong, match="This conversation has"):
        tiny.submit(replace(ask("word " * 2000, max_tokens=600), shorten=True))


def test_the_context_ends_an_answer(tiny: LLM) -> None:
    _, token_ids, finish = listen(tiny, ask("Go on", max_tokens=None))
    assert finish.reason is FinishReason.LENGTH
    assert finish.usage.prompt_tokens + len(token_ids) == tiny.context_length


def test_a_stop_string_is_never_shown(tiny: LLM) -> None:
    whole = listen(tiny, ask("Tell me", max_tokens=60))[0]
    stop = whole[20:24]
    text, _, finish = listen(tiny, ask("Tell me", max_tokens=60, stop=(stop,)))
    assert text == whole[: whole.index(stop)]
    assert finish.reason is FinishReason.STOP


def test_without_a_template_marks_of_turns_end_an_answer(
    tmp_path: Path, starter: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = write_tiny_gguf(tmp_path / "base.gguf", template=None)
    with closing(LLM.load(model.path, SMALL)) as base:
        assert base.renderer.turn_ends == CHATML_MARKS
        assert base.caution == NO_TEMPLATE and not starter.caution
        whole = listen(base, ask("Tell me", max_tokens=60))[0]
        monkeypatch.setattr(base.renderer, "turn_ends", (whole[20:24],))
        text, _, finish = listen(base, ask("Tell me", max_tokens=60))
    assert text == whole[: whole.index(whole[20:24])] and finish.reason is FinishReason.STOP
    assert starter.renderer.turn_ends == ()


def test_a_fault_of_the_step_ends_every_stream_and_is_told(
    tiny: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [tiny.submit(ask(f"{i}", max_tokens=None)) for i in range(3)]
    firsts = [next(iter(stream)) for stream in streams]
    assert all(isinstance(first, Delta) for first in firsts)

    def broken() -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(tiny.runner, "replay", broken)
    for stream in streams:
        *_, finish = stream
        assert finish.reason is FinishReason.ERROR
        assert "the device is gone" in finish.error
    assert not tiny.stats().healthy
    assert "the device is gone" in tiny.stats().fault
    with pytest.raises(EngineStopped, match="the device is gone"):
        tiny.submit(ask("hello"))


def test_without_a_card_the_triton_backend_is_refused(
    starter_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(BadRequest, match="needs a card of NVIDIA or AMD; none is seen"):
        LLM.load(starter_model, EngineConfig(backend="triton"))


def test_a_lost_device_is_told_apart(tiny: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stream ends, nothing new is taken, and who runs the program knows that it must start again."""

    def lose(plan: Plan) -> None:
        raise DeviceLost("cuda failed (CUDA error: unspecified launch failure). Octavo has to start anew.")

    monkeypatch.setattr(tiny.runner, "launch", lose)
    *_, finish = tiny.submit(ask("Hello"))
    assert isinstance(finish, Finish) and finish.error.startswith("cuda failed")
    stats = tiny.stats()
    assert stats.lost and not stats.healthy and "start anew" in stats.fault
    with pytest.raises(EngineStopped, match="start anew"):
        tiny.submit(ask("Are you there?"))


def test_a_fault_in_sampling_costs_its_own_request(tiny_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tokens are drawn by sampler.py: on the reference ops."""
    from engine.running.sampler import sample

    def broken(logits: object, row: object) -> int:
        if row.params.seed == 13:
            raise IndexError("no such place")
        return sample(logits, row)

    monkeypatch.setattr("engine.running.runner.sample", broken)
    with closing(LLM.load(tiny_path, replace(SMALL, backend="reference"))) as llm:
        other = llm.submit(ask("Go on", max_tokens=60))
        finish = listen(llm, ask("hello", seed=13))[2]
        assert finish.reason is FinishReason.ERROR
        assert "no such place" in finish.error
        *_, finish = other
        assert finish.reason is FinishReason.LENGTH
        assert llm.stats().healthy
        assert llm.stats().used_blocks == 0


def test_a_step_that_hangs_is_told(tiny: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    replay, begun, go_on = tiny.runner.replay, threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go_on.wait(30)
        replay()

    monkeypatch.setattr(tiny.runner, "replay", slow)
    stream = tiny.submit(ask("hello", max_tokens=1))
    assert begun.wait(30)
    assert tiny.stats().healthy
    monkeypatch.setattr("engine.service.STALL_S", 0.0)
    assert not tiny.stats().healthy
    assert "not finished a step" in tiny.stats().fault
    go_on.set()
    *_, finish = stream
    assert finish.reason is FinishReason.LENGTH


def test_a_text_goes_on_as_it_is(starter: LLM) -> None:
    greedy = SamplingParams(temperature=0, max_tokens=6, stop=("\n",))
    *parts, finish = starter.submit(Request((), greedy, text="one, two, three, four,"))
    assert "".join(part.text for part in parts).startswith(" five, six"), parts
    assert finish.usage.prompt_tokens == len(
        starter.tokenizer.encode("one, two, three, four,", special=False)
    )
    with pytest.raises(BadRequest, match="not made to fill in"):
        starter.submit(Request((), greedy, text="one,", suffix="three"))


def test_all_memory_of_a_closed_model_goes_with_its_last_name(tiny_path: Path, tmp_path: Path) -> None:
    llm = LLM.load(tiny_path, SMALL, packed=tmp_path)
    streams = [
        llm.submit(ask("hello")) for _ in range(3)
    ]  # of which one is read to its end, and one was left
    list(streams[0])
    streams[1].cancel()
    weights = [weakref.ref(part) for part in (llm.runner, llm.runner.logits, *llm.runner.cache.pools)]
    weights += [weakref.ref(llm.tokenizer)]
    assert all(part() is not None for part in weights)
    gc.collect()
    gc.disable()  # nobody should have to wait for it
    try:
        llm.close()
        del llm
        assert [part() for part in weights] == [None] * len(weights)
    finally:
        gc.enable()


def test_closing_ends_what_runs(tiny_path: Path) -> None:
    before = lasting_threads()
    llm = LLM.load(tiny_path, SMALL)
    streams = [llm.submit(ask(f"{i}", max_tokens=None)) for i in range(12)]  # some still wait in line
    llm.close()
    for stream in streams:
        *_, finish = stream
        assert finish.reason is FinishReason.CANCELLED
    with pytest.raises(EngineStopped):
        llm.submit(ask("hello"))
    assert not llm.stats().healthy
    assert lasting_threads() == before


def test_a_model_that_cannot_load_leaves_nothing_behind(tiny_path: Path, tmp_path: Path) -> None:
    before = lasting_threads()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_path.read_bytes()[:-100])
    with pytest.raises(BadCheckpoint, match=r"cut\.gguf"):
        LLM.load(cut, SMALL)
    with pytest.raises(BadCheckpoint, match=r"none\.gguf"):
        LLM.load(tmp_path / "none.gguf", SMALL)
    with pytest.raises(ModelTooLarge, match="GB"):
        LLM.load(tiny_path, EngineConfig(kv_pool_bytes=2**45))
    assert lasting_threads() == before


def test_there_are_never_more_threads_than_the_processor_runs() -> None:
    most = os.cpu_count() or 1
    assert backend_options(EngineConfig(threads=1024)) == {"threads": most}
    assert backend_options(EngineConfig(threads=1)) == {"threads": 1}
    assert backend_options(EngineConfig()) == {"threads": threads_for(None)}
    assert backend_options(EngineConfig(threads=9, backend="reference")) == {}
