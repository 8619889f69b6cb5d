"""The older part of a chat, summed up when asked: what the model gets then, in rounds, stopped, undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.compactor import Job
from app.chats.conversation import SUM_UP
from app.errors import AppError
from engine import FinishReason, PromptTooLong
from tests.app.chats.conftest import open_chats
from tests.app.chats.test_chat import until, until_idle
from tests.app.fakes import PATIENCE_S, FakeModel, make_home


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(context_length=400, answer=lambda request: "so " * 25)


@pytest.fixture
def chats(tmp_path: Path, model: FakeModel) -> Iterator[ChatService]:
    service = open_chats(make_home(tmp_path), model)
    yield service
    service.close()


def talk(chats: ChatService, model: FakeModel, turns: int, chat: str = "") -> str:
    """A chat of so many turns, each of some 60 tokens."""
    for turn in range(turns):
        chat = chats.send(chat, f"Question {turn}: " + "why " * 25)
        model.next_stream()
        until_idle(chats, chat)
    return chat


def summed_up(chats: ChatService, chat: str) -> Job:
    chats.writing.compactor.start(chat)
    job = chats.writing.compactor.state(chat)
    assert job is not None and job.ended.wait(PATIENCE_S)
    return job


def asked_last(chats: ChatService, model: FakeModel, chat: str) -> list[str]:
    talk(chats, model, 1, chat)
    return [message.content for message in model.streams[-1].request.messages]


def test_a_summary_stands_for_the_older_part(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    before = chats.writing.context(chat)
    assert (before.older, before.summed_up) == (8, 0)
    model.answer = lambda request: "They asked why."
    job = summed_up(chats, chat)
    assert (job.error, job.messages) == ("", 8)
    asked = model.next_stream().request
    assert [m.content for m in asked.messages[1:9:2]] == [f"Question {n}: " + "why " * 25 for n in range(4)]
    assert asked.messages[-1].content == SUM_UP and asked.sampling.max_tokens == 50
    after = chats.writing.context(chat)
    assert (after.summed_up, after.summary) == (8, "They asked why.")
    said = asked_last(chats, model, chat)
    assert said[:4] == ["Be brief.", SUM_UP, "They asked why.", "Question 4: " + "why " * 25]
    reply = model.streams[-1].request.messages[2]
    assert reply.token_ids == tuple(map(ord, "They asked why. ")) and reply.tokenizer == "fake"
    assert len(chats.view(chat).messages) == 14, "the page shows all of them"


def test_it_can_be_undone(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    summed_up(chats, chat)
    chats.writing.compactor.undo(chat)
    assert chats.writing.context(chat).summed_up == 0
    model.next_stream()
    assert asked_last(chats, model, chat)[1].startswith("Question 0")


def test_a_second_summary_builds_on_the_first(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    summed_up(chats, chat)
    model.next_stream()
    talk(chats, model, 3, chat)
    summed_up(chats, chat)  # in two rounds
    asked = model.next_stream().request.messages
    assert asked[1].content == SUM_UP and asked[3].content.startswith("Question 4")
    assert chats.writing.context(chat).summed_up == 14
    chats.writing.compactor.undo(chat)
    assert chats.writing.context(chat).summed_up == 8


def test_after_a_change_to_a_smaller_context_it_takes_rounds(tmp_path: Path) -> None:
    model = FakeModel(context_length=2000, answer=lambda request: "so " * 25)
    chats = open_chats(make_home(tmp_path), model)
    chat = talk(chats, model, 12)
    chats.close()
    model = FakeModel(context_length=200, answer=lambda request: "short")
    chats = open_chats(make_home(tmp_path), model)
    assert summed_up(chats, chat).error == ""
    rounds = []
    while not model.new.empty():
        rounds.append(model.estimate(model.new.get().request).prompt_tokens)
    assert len(rounds) > 3 and max(rounds) <= 200
    assert chats.writing.cost(chat, "And now?", ()).tokens < 200
    chats.close()


def test_an_answer_that_fills_the_context_by_itself(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 1)
    model.answer = lambda request: "so " * 280
    talk(chats, model, 1, chat)
    model.answer = lambda request: "short"
    assert summed_up(chats, chat).error == ""
    assert chats.writing.context(chat).summed_up == 4
    while not model.new.empty():
        assert model.estimate(model.new.get().request).prompt_tokens <= 400


def test_other_branches_are_given_whole(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    first = chats.view(chat).messages[0].id
    summed_up(chats, chat)
    model.next_stream()
    chats.turns.edit(chat, first, "Another beginning")
    assert [m.content for m in model.next_stream().request.messages] == ["Be brief.", "Another beginning"]
    until_idle(chats, chat)
    chats.show(chat, first)
    assert chats.writing.context(chat).summed_up == 8


def test_stopping_changes_nothing(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    model.answer = lambda request: None
    chats.writing.compactor.start(chat)
    stream = model.next_stream()
    chats.writing.compactor.stop(chat)
    job = chats.writing.compactor.state(chat)
    assert job is not None and job.ended.wait(PATIENCE_S) and stream.cancelled.is_set()
    assert job.error == "" and chats.writing.context(chat).summed_up == 0


def test_failures_are_said(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 1)
    with pytest.raises(AppError, match="nothing to sum up yet"):
        chats.writing.compactor.start(chat)
    chat = talk(chats, model, 5, chat)
    model.answer = lambda request: ""
    assert "wrote no summary" in summed_up(chats, chat).error
    model.refuse = PromptTooLong("Too long: 9 of 8.")
    assert summed_up(chats, chat).error == "Too long: 9 of 8."
    assert chats.writing.context(chat).summed_up == 0


def test_thoughts_are_no_part_of_a_summary(chats: ChatService, model: FakeModel) -> None:
    chat = talk(chats, model, 6)
    model.answer = lambda request: "<think> hm </think> They asked."
    summed_up(chats, chat)
    assert chats.writing.context(chat).summary == "They asked."
    model.next_stream()
    asked_last(chats, model, chat)
    assert model.streams[-1].request.messages[2].token_ids == ()


def test_a_summary_outlives_the_program(tmp_path: Path) -> None:
    model = FakeModel(context_length=400, answer=lambda request: "so " * 25)
    chats = open_chats(make_home(tmp_path), model)
    chat = talk(chats, model, 6)
    summed_up(chats, chat)
    chats.close()
    chats = open_chats(make_home(tmp_path), model)
    assert chats.writing.context(chat).summed_up == 8
    chats.delete(chat)
    kept = chats._store.file.read(lambda db: db.execute("SELECT count(*) FROM summaries").fetchone()[0])
    assert kept == 0
    chats.close()


def test_what_a_message_would_cost(chats: ChatService, model: FakeModel) -> None:
    cost = chats.writing.cost("", "one two three", ())
    assert (cost.tokens, cost.cached, cost.seconds, cost.limit, cost.answer) == (13, 6, 0.4, 400, 100)
    chat = talk(chats, model, 2)
    longer = chats.writing.cost(chat, "one two three", ())
    assert longer.tokens > cost.tokens and longer.cached == longer.tokens - 7
    before = chats.view(chat)
    assert chats.writing.cost(chat, "x", ()) and chats.view(chat) == before


def test_a_cost_that_cannot_be_counted_to_its_end(
    chats: ChatService, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hopeless(request: object) -> None:
        raise PromptTooLong("This conversation has more than 9,000 tokens; 400 fit, the answer included.")

    monkeypatch.setattr(model, "estimate", hopeless)
    cost = chats.writing.cost("", "x", ())
    assert cost.tokens > cost.limit and "more than 9,000 tokens" in cost.problem


def test_an_error_leaves_the_chat_able_to_go_on(chats: ChatService, model: FakeModel) -> None:
    """The question that was refused is not in the next prompt, nor in the summary."""
    chat = talk(chats, model, 6)
    model.refuse = PromptTooLong("Too long.")
    chats.send(chat, "A very long question")
    until(chats, chat, lambda: chats.view(chat).messages[-1].finish_reason == FinishReason.ERROR)
    until_idle(chats, chat)
    model.refuse = None
    summed_up(chats, chat)
    model.next_stream()
    chats.turns.retry(chat)
    said = [m.content for m in model.next_stream().request.messages]
    assert said[1] == SUM_UP and said[-1] == "A very long question"
    until_idle(chats, chat)
