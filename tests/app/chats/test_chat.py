"""Chats as a person has them: several at once, stopped, retried, deleted while they answer, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.chats.answer import Answer
from app.chats.chat import ChatService
from app.chats.records import Reply
from app.chats.tree import Tree
from app.errors import AppError, StoreError, UnknownChat
from app.settings import Home
from engine import FinishReason, Priority, PromptTooLong
from tests.app.chats.conftest import SAMPLING, open_chats
from tests.app.fakes import PATIENCE_S, FakeModel, FakeStream, echo, make_home
from tests.source_tree import ROOT


def until(chats: ChatService, chat: str, true: Callable[[], bool]) -> None:
    """Wait for the chat to change until something is true of it."""
    end = time.monotonic() + PATIENCE_S
    version = -1
    while not true():
        version = chats.wait(chat, version, PATIENCE_S)
        assert time.monotonic() < end


def until_idle(chats: ChatService, chat: str) -> None:
    """Until the answer has ended and is stored."""
    until(chats, chat, lambda: not chats._open.answers(chat))


def texts(chats: ChatService, chat: str) -> list[str]:
    return [message.text for message in chats.view(chat).messages]


def ask(chats: ChatService, chat: str, model: FakeModel, text: str, answer: str) -> FakeStream:
    """A whole turn."""
    chats.send(chat, text)
    stream = model.next_stream()
    stream.write(answer)
    stream.finish()
    until_idle(chats, chat)
    return stream


def test_a_message_from_click_to_stored_reply(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    chats.send(chat, "  What is\n 2+2?\n")
    stream = model.next_stream()
    view = chats.view(chat)
    assert [(m.role, m.text, m.streaming) for m in view.messages] == [
        ("user", "  What is\n 2+2?\n", False),
        ("assistant", "", True),
    ]
    assert view.busy and chats.busy(chat) and view.title == "What is" and chats.list_chats()[0].busy
    stream.write("Fo")
    until(chats, chat, lambda: texts(chats, chat)[-1] == "Fo")
    stream.write("ur")
    stream.finish()
    until_idle(chats, chat)
    view = chats.view(chat)
    reply = view.messages[-1]
    assert (reply.text, reply.finish_reason, reply.error, reply.streaming) == ("Four", "stop", "", False)
    assert reply.stats and (reply.stats.tokens, reply.stats.cached_tokens, reply.stats.first_token_s) == (
        4,
        4,
        0.25,
    )
    assert (view.busy, view.context_used, view.context_limit, view.status) == (False, 14, 2048, "")
    assert view.version == chats.version(chat)


def test_the_request_is_the_conversation(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    ask(chats, chat, model, "one", "uno")
    chats.attend(chat)
    request = ask(chats, chat, model, "two", "due").request
    said = [(m.role, m.content, m.token_ids, m.tokenizer) for m in request.messages]
    assert said == [
        ("system", "Be brief.", (), ""),
        ("user", "one", (), ""),
        ("assistant", "uno", tuple(map(ord, "uno")), "fake"),  # the ids that were sampled
        ("user", "two", (), ""),
    ]
    assert request.sampling == SAMPLING and request.owner == "person"
    assert request.priority is Priority.FOREGROUND
    other = chats.new_chat()
    assert ask(chats, other, model, "x", "y").request.priority is Priority.CHAT
    assert len(request.date) == 10


def test_the_date_stays_that_of_the_chat_s_first_day(
    chats: ChatService, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = chats.new_chat()
    first = ask(chats, chat, model, "x", "y").request.date
    monkeypatch.setattr("app.chats.chat.datetime", None)
    assert ask(chats, chat, model, "x", "y").request.date == first


def test_the_message_is_on_the_disk_before_the_answer_starts(
    chats: ChatService, model: FakeModel, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    real = model.submit

    def submit(request: object) -> FakeStream:
        code = "import sqlite3, sys; db = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True); "
        code += "print(db.execute('SELECT text FROM messages').fetchall())"
        found.append(subprocess.check_output([sys.executable, "-c", code, str(home / "chats.db")], text=True))
        return real(request)  # type: ignore[arg-type]

    monkeypatch.setattr(model, "submit", submit)
    chat = chats.new_chat()
    ask(chats, chat, model, "keep me", "ok")
    assert "keep me" in found[0]


def test_two_chats_answer_at_once(chats: ChatService, model: FakeModel) -> None:
    streams = {}
    for name in ("a", "b"):
        chat = chats.new_chat()
        chats.send(chat, name)
        streams[chat] = model.next_stream()
    for text in ("1", "2", "3"):
        for chat, stream in streams.items():
            stream.write(f"{stream.request.messages[-1].content}{text} ")
            until(chats, chat, lambda chat=chat, text=text: texts(chats, chat)[-1].endswith(f"{text} "))
    assert all(chats.busy(chat) for chat in streams)
    for chat, stream in streams.items():
        stream.finish()
        until_idle(chats, chat)
    assert sorted(texts(chats, chat)[-1] for chat in streams) == ["a1 a2 a3 ", "b1 b2 b3 "]


def test_a_chat_has_one_turn_at_a_time(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    chats.send(chat, "one")
    question, answer = (message.id for message in chats.view(chat).messages)
    for call in (
        lambda: chats.turns.retry(chat),
        lambda: chats.turns.edit(chat, question, "zwei"),
        lambda: chats.revise(chat, answer, "eins"),
        lambda: chats.remove(chat, answer),
    ):
        with pytest.raises(AppError, match="still answering"):
            call()
    assert len(texts(chats, chat)) == 2
    model.next_stream().finish()


def test_many_senders_at_once(chats: ChatService, model: FakeModel) -> None:
    """One is answered, the others wait; nothing is lost."""
    model.answer = echo
    chat = chats.new_chat()
    senders = [threading.Thread(target=chats.send, args=(chat, str(place))) for place in range(8)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    until(chats, chat, lambda: len(texts(chats, chat)) == 16 and not chats._open.answers(chat))
    assert sorted(texts(chats, chat)[::2]) == [str(place) for place in range(8)]
    assert chats.view(chat).line == ()


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_an_empty_message(chats: ChatService, text: str) -> None:
    chat = chats.new_chat()
    with pytest.raises(AppError, match="empty"):
        chats.send(chat, text)
    assert texts(chats, chat) == []


def test_half_a_character_is_no_error(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    chats.send(chat, "a\ud83d b")
    model.next_stream().finish()
    chats.rename(chat, "c\ude42")
    assert chats.view(chat).messages[0].text == "a? b"
    assert chats.view(chat).title == "c?"


def test_stop_really_stops(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    chats.send(chat, "count")
    stream = model.next_stream()
    stream.write("1 2 3")
    until(chats, chat, lambda: "3" in texts(chats, chat)[-1])
    chats.stop(chat)
    assert stream.cancelled.wait(PATIENCE_S)
    until_idle(chats, chat)
    reply = chats.view(chat).messages[-1]
    assert (reply.text, reply.finish_reason) == ("1 2 3", "cancelled")
    chats.stop(chat)  # nothing to stop
    request = ask(chats, chat, model, "go on", "4").request
    assert request.messages[2].token_ids == tuple(map(ord, "1 2 3"))


def test_stop_before_the_model_is_there(home: Home, model: FakeModel) -> None:
    gate = threading.Event()
    chats = open_chats(home, model, gate)
    chat = chats.new_chat()
    chats.send(chat, "early")
    view = chats.view(chat)
    assert view.busy and "loading" in view.status and view.context_limit == 0
    chats.stop(chat)
    until_idle(chats, chat)
    assert chats.view(chat).messages[-1].finish_reason == "cancelled" and not model.streams
    chats.send(chat, "again")
    gate.set()
    request = model.next_stream().request
    assert [m.content for m in request.messages] == [
        "Be brief.",
        "again",
    ]  # a question without answer is no turn
    chats.close()


def test_an_error_is_the_reply_s_and_the_chat_goes_on(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    model.refuse = PromptTooLong("The prompt has 9000 tokens, the context 2048.")
    chats.send(chat, "a book")
    until_idle(chats, chat)
    reply = chats.view(chat).messages[-1]
    assert (reply.error, reply.finish_reason) == ("The prompt has 9000 tokens, the context 2048.", "error")
    model.refuse = None
    request = ask(chats, chat, model, "a word", "yes").request
    assert [m.content for m in request.messages] == ["Be brief.", "a word"]
    chats.send(chat, "half")
    stream = model.next_stream()
    stream.write("an ans")
    stream.finish(FinishReason.ERROR, "a kernel gave NaN")
    until_idle(chats, chat)
    reply = chats.view(chat).messages[-1]
    assert (reply.text, reply.error) == ("an ans", "a kernel gave NaN")
    model.refuse = ValueError("a bug of ours")
    chats.send(chat, "x")
    until_idle(chats, chat)
    assert "a fault in Octavo" in chats.view(chat).messages[-1].error


def test_retry_answers_again(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    with pytest.raises(AppError, match="nothing"):
        chats.turns.retry(chat)
    ask(chats, chat, model, "dice", "3")
    chats.turns.retry(chat)
    stream = model.next_stream()
    assert [m.content for m in stream.request.messages] == ["Be brief.", "dice"]
    stream.write("5")
    stream.finish()
    until_idle(chats, chat)
    assert texts(chats, chat) == ["dice", "5"]


def test_rename_and_titles(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    assert chats.view(chat).title == ""  # the page words it
    ask(chats, chat, model, "\n \n" + "long " * 40 + "\nsecond line", "ok")
    title = chats.view(chat).title
    assert title == " ".join(["long"] * 40)
    version = chats.version(chat)
    chats.rename(chat, "  my\n chat ")
    assert (
        chats.view(chat).title == chats.list_chats()[0].title == "my chat" and chats.version(chat) > version
    )
    ask(chats, chat, model, "more", "ok")
    assert chats.view(chat).title == "my chat"
    with pytest.raises(AppError, match="empty"):
        chats.rename(chat, " ")


def test_new_chat_uses_the_unused_one(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    assert chats.new_chat() == chat
    ask(chats, chat, model, "x", "y")
    assert chats.new_chat() != chat
    assert [each.id for each in chats.list_chats()] == [chat]  # without the one in which nothing was said


def test_each_first_message_makes_a_chat_of_its_own(chats: ChatService, model: FakeModel) -> None:
    begun = [chats.send("", text) for text in ("one", "two")]
    assert [chats.view(chat).title for chat in begun] == ["one", "two"]
    assert {each.id for each in chats.list_chats()} == set(begun)
    assert [model.next_stream().request.priority for _ in begun] == [Priority.FOREGROUND] * 2
    with pytest.raises(AppError, match="empty"):
        chats.send("", " ")
    blank = chats.blank()
    assert (blank.id, blank.title, blank.messages, blank.context_limit) == ("", "", (), 2048)


def test_the_context_grows_with_the_answer(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "first")
    stream = model.next_stream()
    for _ in range(2):
        stream.write("word")
        until(chats, chat, lambda: texts(chats, chat)[-1] == "word")
        assert chats.view(chat).context_used == 10 + 4
        stream.finish()
        until_idle(chats, chat)
        assert chats.view(chat).context_used == 14
        chats.turns.retry(chat)
        stream = model.next_stream()
    until(chats, chat, lambda: chats.view(chat).context_used == 10)
    stream.cancel()
    until_idle(chats, chat)
    chats.send(chat, "refused")
    model.next_stream().prompt_tokens = 0  # as of one that was stopped while the model was loading
    chats.stop(chat)
    until_idle(chats, chat)
    assert chats.view(chat).context_used == 10


def test_a_window_of_a_long_chat(chats: ChatService, model: FakeModel) -> None:
    model.answer = echo
    chat = chats.new_chat()
    for number in range(6):
        chats.send(chat, str(number))
        until_idle(chats, chat)
    view = chats.view(chat, last=4)
    assert [m.text for m in view.messages] == ["4", "You said: 4 ", "5", "You said: 5 "] and view.earlier == 8


def test_delete_while_it_answers(chats: ChatService, model: FakeModel) -> None:
    chat, other = chats.new_chat(), None
    chats.send(chat, "a secret")
    stream = model.next_stream()
    version = chats.version(chat)
    chats.delete(chat)
    assert stream.cancelled.is_set() and chats.version(chat) > version
    stream.write("too late")
    with pytest.raises(UnknownChat):
        chats.view(chat)
    for call in (
        chats.delete,
        chats.turns.retry,
        lambda id: chats.send(id, "x"),
        lambda id: chats.rename(id, "x"),
    ):
        with pytest.raises(UnknownChat):
            call(chat)
    assert chats.list_chats() == []
    other = chats.new_chat()
    ask(chats, other, model, "next", "fine")
    assert texts(chats, other) == ["next", "fine"]


def test_every_change_changes_the_version(chats: ChatService, model: FakeModel) -> None:
    chat = chats.new_chat()
    chats.send(chat, "x")
    stream = model.next_stream()
    seen = [chats.version(chat)]
    for letter in "abc":
        stream.write(letter)
        until(chats, chat, lambda letter=letter: letter in texts(chats, chat)[-1])
        seen.append(chats.version(chat))
    assert seen == sorted(set(seen))
    assert chats.wait(chat, seen[-1], 0.01) == seen[-1]  # nothing happens


def test_a_watcher_never_misses_the_end(chats: ChatService, model: FakeModel) -> None:
    """As a page does: look whether it is busy, then at the content, until it is not."""
    model.answer = lambda request: "word " * 50 + "end"
    chat = chats.new_chat()
    for _ in range(20):
        chats.send(chat, "x")
        version = -1
        while True:
            busy = chats.busy(chat)
            view = chats.view(chat)
            if not busy:
                break
            version = chats.wait(chat, version, PATIENCE_S)
        assert view.messages[-1].text.endswith("end ") and view.messages[-1].finish_reason == "stop"
        until_idle(chats, chat)


def test_what_is_shown_while_it_begins_is_never_an_interrupted_answer(
    chats: ChatService, model: FakeModel
) -> None:
    model.answer = echo
    chat = chats.new_chat()
    seen: set[str | None] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            seen.update(message.finish_reason for message in chats.view(chat).messages)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(20):
        chats.send(chat, str(number))
        until_idle(chats, chat)
    done.set()
    watcher.join()
    assert seen == {None, "stop"}


def test_closing_keeps_what_there_is(home: Home, model: FakeModel) -> None:
    chats = open_chats(home, model)
    chat = chats.new_chat()
    chats.send(chat, "x")
    stream = model.next_stream()
    stream.write("so far")
    until(chats, chat, lambda: texts(chats, chat)[-1] == "so far")
    chats.close()
    again = open_chats(home, FakeModel())
    reply = again.view(chat).messages[-1]
    assert (reply.text, reply.finish_reason) == ("so far", "interrupted")
    again.close()


def test_an_answer_is_saved_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch, model: FakeModel) -> None:
    now, saved = [0.0], []
    monkeypatch.setattr("app.chats.answer.time.monotonic", lambda: now[0])
    written = threading.Semaphore(0)
    answer = Answer(1, lambda: (model, None), saved.append, written.release, written.release)  # type: ignore
    monkeypatch.setattr(model, "submit", lambda request: stream)
    stream = FakeStream(None)  # type: ignore[arg-type]
    answer.start()
    for second in (0.1, 0.5, 0.9, 1.1, 1.2, 2.0, 2.2, 9.0):
        now[0] = second
        stream.write(".")
        assert written.acquire(timeout=PATIENCE_S)
    stream.finish()
    assert written.acquire(timeout=PATIENCE_S)
    assert [len(reply.text) for reply in saved] == [4, 7, 8, 8]
    assert [reply.finish for reply in saved] == [None, None, None, "stop"]


def test_a_full_disk_while_it_answers(home: Home, model: FakeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text stays on the page with the reason, and is stored as soon as there is room."""
    monkeypatch.setattr("app.chats.answer.SAVE_EVERY_S", 0.01)
    chats = open_chats(home, model)
    chat = chats.new_chat()
    chats.send(chat, "x")
    stream, full = model.next_stream(), threading.Event()
    full.set()
    real = Tree.save_reply

    def save(tree: Tree, id: int, reply: Reply) -> None:
        if full.is_set():
            raise StoreError("This could not be saved: the disk is full.")
        real(tree, id, reply)

    monkeypatch.setattr(Tree, "save_reply", save)
    stream.write("the answer")
    stream.finish()
    until(chats, chat, lambda: bool(chats.view(chat).messages[-1].error))
    reply = chats.view(chat).messages[-1]
    assert (reply.text, reply.finish_reason) == ("the answer", "stop") and "disk is full" in reply.error
    assert not chats.busy(chat)
    with pytest.raises(StoreError, match="disk is full"):
        chats.send(chat, "y")
    full.clear()
    until_idle(chats, chat)
    reply = chats.view(chat).messages[-1]
    assert (reply.text, reply.error) == ("the answer", "")
    chats.close()
    again = open_chats(home, FakeModel())
    assert texts(again, chat) == ["x", "the answer"]
    again.close()


KILLED = """
import sys, threading
from pathlib import Path
from tests.app.fakes import FakeModel, make_home, make_runtime
from app.chats.chat import ChatService
from app.settings import Settings
from app.chats.store import ChatStore
import app.chats.answer
app.chats.answer.SAVE_EVERY_S = 0
home = make_home(Path(sys.argv[1]))
model = FakeModel()
chats = ChatService(ChatStore(home / "chats.db"), make_runtime(home, model), Settings(home))
chat = chats.new_chat()
chats.send(chat, "before the kill")
stream = model.next_stream()
version = chats.version(chat)
stream.write("half an ")
while "half" not in chats.view(chat).messages[-1].text:
    version = chats.wait(chat, version, 9)
print(chat, flush=True)
threading.Event().wait()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no kill -9")
def test_after_kill_9_the_answer_is_there_as_far_as_it_came(tmp_path: Path, model: FakeModel) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    chat = process.stdout.readline().strip()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    chats = open_chats(make_home(tmp_path), model)
    question, answer = chats.view(chat).messages
    assert question.text == "before the kill"
    assert (answer.text, answer.finish_reason, answer.streaming) == ("half an ", "interrupted", False)
    assert not chats.busy(chat) and not chats.notice
    chats.turns.retry(chat)
    stream = model.next_stream()
    stream.write("whole")
    stream.finish()
    until_idle(chats, chat)
    assert texts(chats, chat) == ["before the kill", "whole"]
    chats.close()
