"""What asks for answers: edits, several at once, going on, hurrying, and the line of messages that wait."""

from __future__ import annotations

import pytest

from app.chats.chat import ChatService
from app.chats.comparison import Comparison
from app.chats.store import ChatStore
from app.errors import AppError
from app.models.own_models import OwnModels
from app.settings import Home, Settings
from engine import FinishReason, SamplingParams
from tests.app.chats.conftest import open_chats
from tests.app.chats.test_chat import ask, texts, until, until_idle
from tests.app.fakes import FakeModel, FakeStream, make_runtime


def ids(chats: ChatService, chat: str) -> list[int]:
    return [message.id for message in chats.view(chat).messages]


def end(chats: ChatService, chat: str, stream: FakeStream, text: str) -> None:
    stream.write(text)
    stream.finish()
    until_idle(chats, chat)


def contents(stream: FakeStream) -> list[str]:
    return [message.content for message in stream.request.messages[1:]]


def test_an_edited_message_is_answered_on_a_branch_of_its_own(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    ask(chats, chat, model, "a", "A")
    ask(chats, chat, model, "b", "B")
    chats.turns.edit(chat, ids(chats, chat)[2], "b2")
    stream = model.next_stream()
    assert contents(stream) == ["a", "A", "b2"]
    end(chats, chat, stream, "B2")
    view = chats.view(chat)
    assert texts(chats, chat) == ["a", "A", "b2", "B2"] and len(view.messages[2].versions) == 2
    version = chats.version(chat)
    chats.show(chat, view.messages[2].versions[0])
    assert texts(chats, chat) == ["a", "A", "b", "B"] and chats.version(chat) > version
    for message in (ids(chats, chat)[1], 999):
        with pytest.raises(AppError, match="not on the page"):
            chats.turns.edit(chat, message, "x")
    with pytest.raises(AppError, match="empty"):
        chats.turns.edit(chat, ids(chats, chat)[0], " ")


def test_any_answer_can_be_asked_for_once_more(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    ask(chats, chat, model, "a", "A")
    ask(chats, chat, model, "b", "B")
    chats.turns.retry(chat, ids(chats, chat)[1])
    stream = model.next_stream()
    assert contents(stream) == ["a"]
    end(chats, chat, stream, "A2")
    assert texts(chats, chat) == ["a", "A2"]


def test_several_answers_grow_at_once_and_one_is_picked(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    ask(chats, chat, model, "dice", "1")
    chats.turns.retry(chat, compared=Comparison(3))
    streams = [model.next_stream() for _ in range(3)]
    assert [stream.request.sampling.seed for stream in streams] == [7, 8, 9]  # they must differ
    assert {stream.request.sampling.temperature for stream in streams} == {0.7}
    for stream, text in zip(streams, "abc", strict=True):
        stream.write(text)
        until(chats, chat, lambda text=text: text in texts(chats, chat))
    view = chats.view(chat)
    assert view.busy and [each.beside for each in view.messages] == [False, True, True, True]
    streams[1].finish()
    until(chats, chat, lambda: not chats.view(chat).messages[2].streaming)
    assert chats.busy(chat)
    chats.stop(chat)
    until_idle(chats, chat)
    view = chats.view(chat)
    assert [each.finish_reason for each in view.messages] == [None, "cancelled", "stop", "cancelled"]
    chats.pick(chat, view.messages[2].id)
    view = chats.view(chat)
    assert texts(chats, chat) == ["dice", "b"]
    assert len(view.messages[1].versions) == 4 and not view.messages[1].beside
    assert contents(ask(chats, chat, model, "next", "ok")) == ["dice", "b", "next"]
    for wrong in (0, 5):
        with pytest.raises(AppError, match="1 to 4"):
            chats.turns.retry(chat, compared=Comparison(wrong))


def test_answers_by_temperature_say_theirs(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "dice")
    end(chats, chat, model.next_stream(), "1")
    chats.turns.retry(chat, compared=Comparison(2, by_heat=True))
    for _ in range(2):
        stream = model.next_stream()
        stream.write("x")
        stream.finish()
    until_idle(chats, chat)
    said = [each.stats.temperature for each in chats.view(chat).messages if each.stats]
    assert said == [0.3, 0.8]


def test_answers_of_several_models_one_after_another(home: Home, model: FakeModel) -> None:
    """From the first message on; each is sampled as its model is used, and the chat's own model stays."""
    runtime = make_runtime(home, model)
    chats = ChatService(ChatStore(home / "chats.db"), runtime, Settings(home))
    (home / "other.gguf").write_bytes(b"GGUF")
    OwnModels(home.path).keep("other", path=str(home / "other.gguf"), sampling={"temperature": 0.9})
    here = str(home / "fake.gguf")
    chat = chats.send("", "one", compared=Comparison(2, models=("other", here)))
    first = model.next_stream()
    assert first.request.model == here
    while not runtime.status().next:
        runtime.wake()
    assert "other is loaded" in runtime.status().message and model.new.empty()
    assert chats.turns.usual("other").sampling.temperature == 0.9  # as a sheet of settings shows it
    first.write("1")
    first.finish()
    second = model.next_stream()
    assert (second.request.model, second.request.sampling.temperature) == ("other", 0.9)
    end(chats, chat, second, "2")
    view = chats.view(chat)
    assert [(each.model, each.text, each.beside) for each in view.messages[1:]] == [
        ("other", "2", True),
        ("fake", "1", True),  # asked first: it was in memory
    ]
    chats.pick(chat, view.messages[1].id)
    chats.send(chat, "two")
    third = model.next_stream()
    assert third.request.model == "" and [m.content for m in third.request.messages] == ["one", "2", "two"]
    with pytest.raises(AppError, match="still answering"):
        chats.send(chat, "three", compared=Comparison(2))
    end(chats, chat, third, "3")
    for wrong, sentence in ((("other", "nobody"), "nobody"), (("other",), "of 1 models")):
        with pytest.raises(AppError, match=sentence):
            chats.send(chat, "four", compared=Comparison(2, models=wrong))
    assert texts(chats, chat)[-1] == "3"
    chats.close()


def test_a_cut_answer_goes_on(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "count")
    stream = model.next_stream()
    stream.write("1 2 3")
    stream.finish(FinishReason.LENGTH)
    until_idle(chats, chat)
    answer = ids(chats, chat)[-1]
    chats.turns.resume(chat, answer)
    stream = model.next_stream()
    last = stream.request.messages[-1]
    assert stream.request.continue_last
    assert (last.role, last.content, last.token_ids) == ("assistant", "1 2 3", tuple(map(ord, "1 2 3")))
    assert texts(chats, chat)[-1] == "1 2 3" and chats.busy(chat)
    end(chats, chat, stream, " 4")
    assert texts(chats, chat) == ["count", "1 2 3 4"] and ids(chats, chat)[-1] == answer
    request = ask(chats, chat, model, "and?", "5").request
    assert request.messages[2].token_ids == tuple(map(ord, "1 2 3 4"))
    with pytest.raises(AppError, match="last answer"):
        chats.turns.resume(chat, answer)


def test_going_on_that_fails_loses_nothing(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "count")
    stream = model.next_stream()
    stream.write("1 2 3")
    stream.finish(FinishReason.LENGTH)
    until_idle(chats, chat)
    model.refuse = AppError("No.")
    chats.turns.resume(chat, ids(chats, chat)[-1])
    until_idle(chats, chat)
    assert (chats.view(chat).messages[-1].text, chats.view(chat).messages[-1].error) == ("1 2 3", "No.")
    model.refuse = None
    assert ask(chats, chat, model, "and?", "4").request.messages[2].token_ids == tuple(map(ord, "1 2 3"))


def test_thoughts_stand_apart_and_can_be_ended(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "2+2?")
    stream = model.next_stream()
    stream.write("<think>\nTwo and")
    until(chats, chat, lambda: chats.view(chat).messages[-1].thoughts is not None)
    last = chats.view(chat).messages[-1]
    assert last.thoughts and last.thoughts.growing and last.thoughts.length == 7 and last.text == ""
    assert chats.thoughts(chat, last.id) == "Two and"
    chats.turns.hurry(chat)
    assert stream.cancelled.is_set()
    stream = model.next_stream()
    assert stream.request.begin == "\n</think>\n\n" and stream.request.continue_last
    assert stream.request.messages[-1].content == "<think>\nTwo and"
    until(chats, chat, lambda: not (chats.view(chat).messages[-1].thoughts or last.thoughts).growing)
    end(chats, chat, stream, "Four.")
    last = chats.view(chat).messages[-1]
    assert (last.text, last.finish_reason) == ("Four.", "stop")
    assert last.thoughts and not last.thoughts.growing and chats.thoughts(chat, last.id) == "Two and"
    whole = "<think>\nTwo and\n</think>\n\nFour."
    request = ask(chats, chat, model, "Sure?", "Yes.").request
    assert (request.messages[2].content, request.messages[2].token_ids) == (whole, tuple(map(ord, whole)))
    chats.turns.hurry(chat)  # nothing thinks


def test_an_answer_in_other_words(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "a")
    end(chats, chat, model.next_stream(), "A")
    chats.revise(chat, ids(chats, chat)[-1], "My A")
    assert texts(chats, chat) == ["a", "My A"] and len(chats.view(chat).messages[1].versions) == 2
    said = ask(chats, chat, model, "b", "B").request.messages[2]
    assert (said.content, said.token_ids) == ("My A", ())
    with pytest.raises(AppError, match="empty"):
        chats.revise(chat, ids(chats, chat)[1], "\n")


def test_a_branch_in_a_chat_of_its_own(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "a")
    end(chats, chat, model.next_stream(), "A")
    ask(chats, chat, model, "b", "B")
    other = chats.branch(chat, ids(chats, chat)[1])
    assert texts(chats, other) == ["a", "A"] and len(chats.list_chats()) == 2
    assert contents(ask(chats, other, model, "c", "C")) == ["a", "A", "c"]
    assert texts(chats, chat) == ["a", "A", "b", "B"]


def test_a_removed_version(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "a")
    end(chats, chat, model.next_stream(), "A")
    chats.turns.retry(chat)
    end(chats, chat, model.next_stream(), "A2")
    chats.remove(chat, ids(chats, chat)[1])
    assert texts(chats, chat) == ["a", "A"]


def test_messages_wait_in_line(model: FakeModel, home: Home) -> None:
    chats = open_chats(home, model)
    chat = chats.send("", "one")
    first = model.next_stream()
    for text in ("two", "three", "four"):
        assert chats.send(chat, text) == chat
    _, three, four = chats.view(chat).line
    chats.change_waiting(chat, three.id, "drei")
    chats.change_waiting(chat, four.id, "")
    assert [each.text for each in chats.view(chat).line] == ["two", "drei"]
    first.write("1")
    first.finish()
    second = model.next_stream()
    assert contents(second) == ["one", "1", "two"]
    assert [each.text for each in chats.view(chat).line] == ["drei"]
    second.finish(FinishReason.ERROR, "a fault")  # the line stands still after what the person must see
    until_idle(chats, chat)
    assert [each.text for each in chats.view(chat).line] == ["drei"] and not chats.busy(chat)
    chats.close()
    again = open_chats(home, model)
    assert [each.text for each in again.view(chat).line] == ["drei"]
    again.send(chat, "five")  # behind what waits
    third = model.next_stream()
    assert third.request.messages[-1].content == "drei"
    end_of = again.view(chat).line
    assert [each.text for each in end_of] == ["five"]
    third.finish()
    fourth = model.next_stream()
    assert fourth.request.messages[-1].content == "five" and again.view(chat).line == ()
    fourth.finish()
    again.close()


def test_stop_holds_the_line_and_send_now_does_not_wait(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    first = model.next_stream()
    first.write("1")
    chats.send(chat, "two")
    chats.send(chat, "three")
    chats.stop(chat)
    until_idle(chats, chat)
    assert len(chats.view(chat).line) == 2 and model.new.empty()
    chats.turns.send_now(chat, chats.view(chat).line[1].id)
    stream = model.next_stream()
    assert stream.request.messages[-1].content == "three"
    chats.turns.send_now(chat, chats.view(chat).line[0].id)
    assert stream.cancelled.is_set()
    stream = model.next_stream()
    assert stream.request.messages[-1].content == "two" and chats.view(chat).line == ()
    stream.finish()


def test_the_line_waits_until_an_answer_is_picked(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    end(chats, chat, model.next_stream(), "1")
    chats.turns.retry(chat, compared=Comparison(2))
    streams = [model.next_stream() for _ in range(2)]
    chats.send(chat, "two")
    for stream in streams:
        stream.write("x")
        stream.finish()
    until_idle(chats, chat)
    assert model.new.empty()
    chats.pick(chat, ids(chats, chat)[2])
    stream = model.next_stream()
    assert stream.request.messages[-1].content == "two"
    stream.finish()


def test_samples_of_a_greedy_chat_differ_too(home: Home, model: FakeModel) -> None:
    settings = Settings(home, model="fake", sampling=SamplingParams(temperature=0.0))
    chats = ChatService(ChatStore(home / "chats.db"), make_runtime(home, model), settings)
    chat = chats.send("", "one")
    assert model.streams[0].request.sampling.temperature == 0
    end(chats, chat, model.next_stream(), "1")
    chats.turns.retry(chat, compared=Comparison(2))
    sampled = [model.next_stream().request.sampling for _ in range(2)]
    assert [params.temperature for params in sampled] == [0.7, 0.7]
    chats.close()


def test_what_is_sent_while_another_model_is_chosen_is_of_that_one(home: Home, model: FakeModel) -> None:
    settings = Settings(home, model="fake", sampling=SamplingParams(temperature=0.0))
    runtime = make_runtime(home, model)
    chats = ChatService(ChatStore(home / "chats.db"), runtime, settings)
    chats.send("", "one")
    first = model.next_stream()
    (home / "other.gguf").write_bytes(b"GGUF")
    OwnModels(home.path).keep("other", path=str(home / "other.gguf"), sampling={"temperature": 0.9})
    runtime.load("other")
    chat = chats.send("", "two")
    assert runtime.status().model == "fake" and chats.view(chat).messages[-1].model == "other"
    first.finish()
    second = model.next_stream()
    assert second.request.sampling.temperature == 0.9
    end(chats, chat, second, "2")
    chats.close()
