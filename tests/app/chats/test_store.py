"""The chats on disk: the tree, one commit for each call, nothing left of what was deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.records import Reply, ReplyStats, Turn
from app.chats.store import ChatStore
from app.errors import StoreError, UnknownChat

SECRET = "the-canary-in-this-chat zqxwvkj"
WORDS = {b"canary-in", b"zqxwvkj"}  # in a message, in the search's index


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
    yield store
    store.close()


def new_chat(store: ChatStore) -> str:
    return store.fresh("model", "Be brief.", "2026-01-02").id


def say(store: ChatStore, chat: str, text: str, reply: str = "yes") -> int:
    leaf = store.chat(chat).leaf
    id = store.tree.begin(chat, leaf, Turn(leaf, text), title=text, models=["model"])[0]
    store.tree.save_reply(id, Reply(reply, (1, 2**32 - 1), "tok", "stop"))
    return id


def found(folder: Path) -> set[bytes]:
    """Which of the secret's words stand in some file."""
    content = b"".join(file.read_bytes() for file in folder.iterdir())
    return {word for word in WORDS if word in content}


def texts(store: ChatStore, chat: str) -> list[str]:
    return [message.text for message in store.tree.open(chat).branch]


def test_everything_comes_back_after_closing(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    chat = new_chat(store)
    stats = ReplyStats(3, 60.5, 0.25, 16, 20)
    id = store.tree.begin(chat, None, Turn(None, "né 你好 🦊"), title="t", models=["other"])[0]
    reply = Reply("answer", (0, 1, 151_935), "fingerprint", "stop", "", stats)
    store.tree.save_reply(id, reply)
    store.close()
    again = ChatStore(tmp_path / "chats.db")
    question, answer = again.tree.open(chat).branch
    assert (question.role, question.text) == ("user", "né 你好 🦊")
    assert (question.parent, question.depth) == (None, 0)
    assert (answer.role, answer.reply, answer.parent, answer.depth) == ("assistant", reply, question.id, 1)
    kept = again.chat(chat)
    assert (kept.title, kept.model, kept.system_prompt, kept.date) == (
        "t",
        "other",
        "Be brief.",
        "2026-01-02",
    )
    again.close()


def test_an_unused_chat_is_used_again(store: ChatStore) -> None:
    first = new_chat(store)
    assert store.fresh("m2", "", "2027-01-01").id == first
    assert (store.chat(first).model, store.chat(first).date) == ("m2", "2027-01-01")
    say(store, first, "hello")
    assert new_chat(store) != first


def test_the_newest_stands_first_whatever_the_clock_says(
    store: ChatStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = []
    for now in (3_000.0, 1_000.0, 2_000.0):
        monkeypatch.setattr("app.chats.store.time.time", lambda now=now: now)
        chats.append(new_chat(store))
        say(store, chats[-1], "x")
    assert [chat.id for chat in store.chats()] == chats[::-1]
    say(store, chats[0], "again")
    assert store.chats()[0].id == chats[0]


def test_another_answer_is_a_branch_of_its_own(store: ChatStore) -> None:
    chat = new_chat(store)
    first = say(store, chat, "question", "first")
    question = store.tree.open(chat).branch[-2].id
    (second,) = store.tree.begin(chat, first, Turn(question), title="", models=["model"])
    store.tree.save_reply(second, Reply("second", finish="stop"))
    assert texts(store, chat) == ["question", "second"]
    say(store, chat, "and then?", "the end")
    assert texts(store, chat) == ["question", "second", "and then?", "the end"]


def test_a_turn_on_an_old_view_is_refused(store: ChatStore) -> None:
    chat = new_chat(store)
    seen = say(store, chat, "one")
    say(store, chat, "two")
    with pytest.raises(StoreError, match="has changed"):
        store.tree.begin(chat, seen, Turn(seen, "from a stale tab"), title="", models=["model"])
    assert texts(store, chat) == ["one", "yes", "two", "yes"]


def test_nothing_to_answer(store: ChatStore) -> None:
    with pytest.raises(StoreError, match="nothing"):
        store.tree.begin(new_chat(store), None, Turn(None), title="", models=["model"])


@pytest.mark.parametrize("call", ["chat", "delete", "change"])
def test_an_unknown_chat(store: ChatStore, call: str) -> None:
    for id in ("no such", "private-no such"):
        with pytest.raises(UnknownChat):
            getattr(store, call)(id, **({"title": "x"} if call == "change" else {}))


def test_deleted_is_gone_from_the_disk(store: ChatStore, tmp_path: Path) -> None:
    kept, gone = new_chat(store), None
    say(store, kept, "other")
    gone = new_chat(store)
    for _ in range(50):
        say(store, gone, SECRET * 20, SECRET * 20)
    reply = say(store, gone, SECRET)
    assert found(tmp_path) == WORDS
    store.delete(gone)
    store.tree.save_reply(reply, Reply(SECRET))  # an answer that had not noticed yet
    assert [chat.id for chat in store.chats()] == [kept]
    assert found(tmp_path) == set()


def test_a_private_chat_is_never_on_the_disk(store: ChatStore, tmp_path: Path) -> None:
    kept, private = new_chat(store), store.private("model", "", "2026-01-02").id
    other = store.private("model", "", "2026-01-02").id
    say(store, kept, "other")
    for _ in range(50):
        reply = say(store, private, SECRET * 20, SECRET * 20)
    store.change(private, title=SECRET, pinned=1)
    assert [chat.id for chat in store.chats()] == [private, other, kept]
    assert store.chat(private).is_private and not store.chat(kept).is_private
    assert len(store.tree.open(private).branch) == 100 and len(store.tree.open(kept).branch) == 2
    assert 2**52 < reply < 2**53  # a browser knows it exactly
    assert found(tmp_path) == set()
    store.delete(private)
    with pytest.raises(UnknownChat):
        store.tree.open(private)
    assert [chat.id for chat in store.chats()] == [other, kept]


def test_ids_of_deleted_messages_are_not_used_again(store: ChatStore) -> None:
    chat = new_chat(store)
    old = say(store, chat, "x")
    store.delete(chat)
    other = new_chat(store)
    say(store, other, "y", "mine")
    store.tree.save_reply(old, Reply("a late part of another answer"))
    assert texts(store, other) == ["y", "mine"]


def test_after_closing(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    store.close()
    with pytest.raises(StoreError, match="ending"):
        store.chats()
