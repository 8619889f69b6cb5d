"""Messages that wait go where they were written; what hinders them is said; what grows is not mixed up."""

from __future__ import annotations

import threading

import pytest

from app.chats.chat import ChatService
from app.chats.comparison import Comparison
from app.errors import AppError
from tests.app.chats.test_chat import texts, until_idle
from tests.app.chats.test_chat_turns import contents, end, ids
from tests.app.fakes import PATIENCE_S, FakeModel


def test_a_follow_up_goes_below_what_it_was_written_under(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    end(chats, chat, model.next_stream(), "first")
    old = ids(chats, chat)[1]
    chats.turns.retry(chat)
    again = model.next_stream()
    chats.send(chat, "more on the second")
    chats.send(chat, "and more")
    chats.show(chat, old)
    again.write("second")
    again.finish()
    follow_up = model.next_stream()
    assert contents(follow_up) == ["one", "second", "more on the second"]
    chats.show(chat, old)
    follow_up.write("third")
    follow_up.finish()
    last = model.next_stream()
    assert contents(last) == ["one", "second", "more on the second", "third", "and more"]
    last.finish()
    until_idle(chats, chat)


def test_a_held_follow_up_goes_on_with_another_try(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    first = model.next_stream()
    first.write("bad")
    chats.send(chat, "two")
    chats.stop(chat)
    until_idle(chats, chat)
    chats.turns.retry(chat)
    again = model.next_stream()
    again.write("good")
    again.finish()
    follow_up = model.next_stream()
    assert contents(follow_up) == ["one", "good", "two"]
    follow_up.finish()
    until_idle(chats, chat)


def test_send_now_says_that_an_answer_must_be_picked(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    end(chats, chat, model.next_stream(), "1")
    chats.turns.retry(chat, compared=Comparison(2))
    streams = [model.next_stream() for _ in range(2)]
    chats.send(chat, "two")
    for stream in streams:
        stream.write("x")
        stream.finish()
    until_idle(chats, chat)
    with pytest.raises(AppError, match="Pick one of the answers first"):
        chats.turns.send_now(chat, chats.view(chat).line[0].id)
    chats.pick(chat, ids(chats, chat)[2])
    stream = model.next_stream()
    assert contents(stream) == ["one", "x", "two"]
    stream.finish()
    until_idle(chats, chat)


def test_another_version_waits_while_a_turn_begins(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    end(chats, chat, model.next_stream(), "1")
    message, done = ids(chats, chat)[1], threading.Event()

    def turn() -> None:
        chats.show(chat, message)
        done.set()

    shower = threading.Thread(target=turn)
    with chats.turns.lock:  # as held from the moment a turn is kept until its question is put together
        shower.start()
        assert not done.wait(0.1)
    assert done.wait(PATIENCE_S)
    shower.join()


def test_a_branch_takes_what_has_grown_so_far(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    stream = model.next_stream()
    version = 0
    for said in ("kept", "kept, and more"):  # what came first may be on the disk, what came after it is not
        stream.write(said.removeprefix("kept") or said)
        while said not in texts(chats, chat):
            version = chats.wait(chat, version, PATIENCE_S)
    assert texts(chats, chats.branch(chat, ids(chats, chat)[1])) == ["one", "kept, and more"]
    stream.finish()
    until_idle(chats, chat)


def test_what_is_in_the_bin_is_not_gone(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    end(chats, chat, model.next_stream(), "1")
    chats._store.change(chat, deleted=1)
    assert chats.gone([chat, "never"]) == ["never"]
    chats.delete(chat)
    assert chats.gone([chat]) == [chat]
