"""Words are found wherever they were said, in any script, and what is typed is never syntax."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.records import Reply, Turn
from app.chats.search import PACES, Hit, find, has_index, set_pace, spaced
from app.chats.store import ChatStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
    yield store
    store.close()


def say(store: ChatStore, text: str, answer: str = "", title: str = "") -> tuple[str, int]:
    chat = store.fresh("m", "", "").id
    (reply,) = store.tree.begin(chat, None, Turn(None, text), title=title or text[:40], models=["m"])
    store.tree.save_reply(reply, Reply(answer, (), "", "stop"))
    return chat, reply


def look(store: ChatStore, text: str) -> list[Hit]:
    return store.file.read(lambda db: find(db, text))


def marked(hit: Hit) -> str:
    return "".join(f"[{text}]" if is_hit else text for text, is_hit in hit.pieces)


FOUND = [  # what was said, what is looked for, what is marked
    ("The cat sat.", "cat", "The [cat] sat."),
    ("Grüße aus Köln", "koln", "Grüße aus [Köln]"),
    ("He said interoperability", "interop", "He said [interoperability]"),
    ("我想学习中文写作", "中文", "我想学习[中文]写作"),
    ("我想学习中文写作", "学习 写作", "我想[学习]中文[写作]"),
    ("日本語とカタカナ", "カタ", "日本語と[カタ]カナ"),
    ("한국어를 배우다", "국어", "한[국어]를 배우다"),
    ("用Python写代码", "python写", "用[Python写]代码"),
    ("𠮷野家で食べる", "𠮷野", "[𠮷野]家で食べる"),
    ("x = a[i] + f(b)", "f(b)", "x = a[i] + [f(b])"),
    ("<think>a zebra</think>No", "zebra", "a [zebra]No"),
]


@pytest.mark.parametrize(("said", "wanted", "shown"), FOUND)
def test_found_and_marked(store: ChatStore, said: str, wanted: str, shown: str) -> None:
    say(store, "something else", "文中 他的")
    chat, reply = say(store, "question", said)
    (hit,) = look(store, wanted)
    assert (hit.chat, hit.message, hit.role, marked(hit)) == (chat, reply, "assistant", shown)


def test_an_answer_is_shown_without_markdown_and_what_was_asked_as_it_was(store: ChatStore) -> None:
    said = "## Sizes\n\n- an **octavo** of `16` pages"
    say(store, said, said, title="x")
    answer, question = look(store, "octavo")
    assert marked(answer) == "Sizes\n\n• an [octavo] of 16 pages"
    assert marked(question) == said.replace("octavo", "[octavo]")


def test_words_that_stand_far_apart(store: ChatStore) -> None:
    say(store, "q", "*" * 500_000 + " walnut " + "*_" * 500_000, title="x")
    (hit,) = look(store, "walnut")
    assert ("walnut", True) in hit.pieces and sum(len(text) for text, _ in hit.pieces) <= 1000


def test_no_part_of_a_word_and_no_other_order(store: ChatStore) -> None:
    say(store, "concatenate", "文中", title="x")
    assert look(store, "cat") == [] and look(store, "中文") == [] and look(store, "co") == []
    assert len(look(store, "conc")) == 1


HOSTILE = [
    *('"', "'", 'a"b', "*", "-", "^cat", "NEAR(a b)", "cat OR dog", "text:cat", "{a b} : c", "(", ")", "\\"),
    *(
        "\0",
        "cat\0dog",
        "a" * 100_000,
        "a " * 10_000,
        "+++ ☃",
        "cat AND",
        "NOT",
        "\ud83d",
        "\x1f",
        " ",
        "%",
        "_",
    ),
    "'; DROP TABLE messages; --",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_typed_is_never_syntax(store: ChatStore, text: str) -> None:
    say(store, "the cat and the dog")
    look(store, text.encode("utf-8", "replace").decode())
    assert len(look(store, "cat")) == 2


def test_the_newest_first_and_few_of_one_chat(store: ChatStore) -> None:
    chats = [say(store, f"number {number} walnut", "walnut", title="x")[0] for number in range(3)]
    first = chats[0]
    for _ in range(5):
        leaf = store.chat(first).leaf
        (reply,) = store.tree.begin(first, leaf, Turn(leaf, "walnut"), title="", models=["m"])
        store.tree.save_reply(reply, Reply("walnut", (), "", "stop"))
    assert [hit.chat for hit in look(store, "walnut")] == [first] * 3 + [chats[2]] * 2 + [chats[1]] * 2


def test_titles_come_first(store: ChatStore) -> None:
    said, reply = say(store, "hm", "apple pie", title="Dessert")
    chat, _ = say(store, "hm", title="Äpple and Pie")
    assert [(hit.chat, hit.message) for hit in look(store, "pie äPP")] == [(chat, None), (said, reply)]


def test_the_index_follows_every_change(store: ChatStore) -> None:
    chat, reply = say(store, "first", "walnut", title="t")
    store.tree.save_reply(reply, Reply("half of a pecan", (), "", None))  # it goes on
    assert look(store, "walnut") == [] == look(store, "pecan")
    store.tree.save_reply(reply, Reply("a pecan", (), "", "stop"))
    assert [hit.message for hit in look(store, "pecan")] == [reply]
    store.change(chat, deleted=1)
    assert look(store, "pecan") == []
    store.restore(chat)
    assert len(look(store, "pecan")) == 1
    private = store.private("m", "", "").id
    store.tree.begin(private, None, Turn(None, "a pecan"), title="pecan", models=["m"])
    assert [hit.chat for hit in look(store, "pecan")] == [chat]
    store.delete(chat)
    assert look(store, "pecan") == []


def test_an_answer_that_was_cut_off_is_found_after_a_start(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    chat = store.fresh("m", "", "").id
    (reply,) = store.tree.begin(chat, None, Turn(None, "q"), title="t", models=["m"])
    store.tree.save_reply(reply, Reply("half a pecan"))
    store.close()
    store = ChatStore(tmp_path / "chats.db")
    assert [hit.message for hit in look(store, "pecan")] == [reply]
    store.close()


DAMAGE = [
    "DROP TABLE words",
    "DROP TRIGGER words_new",
    "DELETE FROM words_data WHERE id > 10",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_lost_index_is_made_anew(tmp_path: Path, damage: str) -> None:
    store = ChatStore(tmp_path / "chats.db")
    chat, _ = say(store, "a walnut", title="t")
    store.close()
    with sqlite3.connect(tmp_path / "chats.db") as connection:
        connection.create_function("spaced", 1, spaced)
        connection.execute(damage)
    connection.close()
    store = ChatStore(tmp_path / "chats.db")
    assert not store.notice
    say(store, "another walnut")
    assert len([hit for hit in look(store, "walnut") if hit.message]) == 2
    assert store.file.read(has_index)
    store.delete(chat)
    store.close()


def test_much_at_once_is_found_and_the_pace_is_what_it_was(store: ChatStore) -> None:
    def pace() -> dict[str, int]:
        rows = "SELECT k, v FROM words_config WHERE k != 'version'"
        return {k: v for k, v in store.file.read(lambda db: db.execute(rows).fetchall())}

    store.file.transact(lambda db: set_pace(db, is_much=True))
    assert pace() == {name: much for name, (_, much) in PACES.items()}
    for number in range(20):
        say(store, f"word{number} and more")
    assert len(look(store, "more")) == 20 + 8  # titles
    store.file.transact(lambda db: set_pace(db, is_much=False))
    assert pace() == {name: usual for name, (usual, _) in PACES.items()}
