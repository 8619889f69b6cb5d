"""The tree of messages on disk: versions and what is seen below them, answers side by side, the line."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.database import Database
from app.chats.records import Reply, Turn
from app.chats.schema import migrations
from app.chats.store import ChatStore
from app.chats.tree import Tree
from app.errors import StoreError, UnknownChat


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
    yield store
    store.close()


@pytest.fixture
def tree(store: ChatStore) -> Tree:
    return store.tree


@pytest.fixture
def chat(store: ChatStore) -> str:
    return store.fresh("m", "Be brief.", "2026-01-02").id


def ask(tree: Tree, chat: str, turn: Turn, *texts: str, answers: int = 1) -> tuple[int, ...]:
    """A turn, answered."""
    leaf = tree.open(chat).chat.leaf
    ids = tree.begin(chat, leaf, turn, title=turn.text or "", models=["m"] * answers)
    for id, text in zip(ids, texts or ["yes"] * len(ids), strict=True):
        tree.save_reply(id, Reply(text, (1, 2), "tok", "stop"))
    return ids


def texts(tree: Tree, chat: str) -> list[str]:
    return [message.text for message in tree.open(chat).branch]


def grown(tree: Tree, chat: str, *turns: tuple[str, str]) -> list[int]:
    """A chat of some turns; the ids of its messages."""
    for question, answer in turns:
        ask(tree, chat, Turn(tree.open(chat).chat.leaf, question), answer)
    return [message.id for message in tree.open(chat).branch]


def test_an_edited_message_begins_a_branch_and_the_old_one_comes_back_whole(tree: Tree, chat: str) -> None:
    first, _, second, answer = grown(tree, chat, ("a", "A"), ("b", "B"))
    parent = tree.open(chat).branch[2].parent
    ask(tree, chat, Turn(parent, "b2"), "B2")
    assert texts(tree, chat) == ["a", "A", "b2", "B2"]
    edited = tree.open(chat).branch[2]
    assert edited.versions == (second, edited.id)
    grown(tree, chat, ("c", "C"))
    tree.show(chat, second)
    assert texts(tree, chat) == ["a", "A", "b", "B"] and tree.open(chat).chat.leaf == answer
    tree.show(chat, edited.id)
    assert texts(tree, chat) == ["a", "A", "b2", "B2", "c", "C"]  # the last leaf seen below it
    ask(tree, chat, Turn(None, "another beginning"), "Z")
    assert texts(tree, chat) == ["another beginning", "Z"]
    assert tree.open(chat).branch[0].versions == (first, tree.open(chat).branch[0].id)
    tree.show(chat, first)
    assert texts(tree, chat) == ["a", "A", "b2", "B2", "c", "C"]


def test_versions_of_another_chat_are_not_mixed_in(store: ChatStore, tree: Tree, chat: str) -> None:
    grown(tree, chat, ("a", "A"))
    other = store.fresh("m", "", "").id
    grown(tree, other, ("x", "X"))
    assert [len(message.versions) for message in tree.open(other).branch] == [1, 1]
    for call in (tree.show, tree.pick, tree.remove, tree.fork):
        with pytest.raises(StoreError, match="does not exist"):
            call(other, tree.open(chat).branch[0].id)
        with pytest.raises(UnknownChat):
            call("no such chat", 1)


def test_a_version_deep_in_another_branch_can_be_shown(tree: Tree, chat: str) -> None:
    ids = grown(tree, chat, ("a", "A"), ("b", "B"))
    ask(tree, chat, Turn(None, "z"), "Z")
    tree.show(chat, ids[2])
    assert texts(tree, chat) == ["a", "A", "b", "B"]


def test_answers_side_by_side_until_one_is_picked(tree: Tree, chat: str) -> None:
    (question, old) = grown(tree, chat, ("a", "A"))
    ids = ask(tree, chat, Turn(question), "A1", "A2", "A3", answers=3)
    found = tree.open(chat)
    assert [message.text for message in found.beside] == ["A1", "A2", "A3"]
    assert texts(tree, chat) == ["a", "A1"]
    assert found.branch[-1].versions == (old, *ids)
    tree.show(chat, ids[1])
    assert texts(tree, chat) == ["a", "A2"] and len(tree.open(chat).beside) == 3
    tree.pick(chat, ids[2])
    assert texts(tree, chat) == ["a", "A3"] and tree.open(chat).beside == ()
    assert tree.open(chat).branch[-1].versions == (old, *ids)
    ask(tree, chat, Turn(question), answers=2)
    grown(tree, chat, ("b", "B"))  # to go on picks the one that is on screen
    tree.show(chat, tree.open(chat).branch[1].id)
    assert tree.open(chat).beside == ()
    pair = ask(tree, chat, Turn(question), answers=2)
    tree.remove(chat, pair[0])
    assert tree.open(chat).beside == () and tree.open(chat).branch[-1].id == pair[1]


def test_a_removed_version_takes_what_is_below_it_along(tree: Tree, chat: str, tmp_path: Path) -> None:
    ids = grown(tree, chat, ("a", "A"), ("b the-secret", "B"))
    first, second = ids[1], ask(tree, chat, Turn(ids[0]), "A2")[0]
    third = ask(tree, chat, Turn(ids[0]), "A3")[0]
    tree.remove(chat, second)
    assert texts(tree, chat) == ["a", "A3"]  # it was not on screen
    assert tree.remove(chat, third) == {third}
    assert texts(tree, chat) == ["a", "A", "b the-secret", "B"]
    assert tree.remove(chat, first) == {first, ids[2], ids[3]}
    assert texts(tree, chat) == ["a"]
    for file in tmp_path.iterdir():
        assert b"the-secret" not in file.read_bytes()
    tree.remove(chat, ids[0])
    assert texts(tree, chat) == [] and tree.open(chat).chat.leaf is None


def test_a_new_chat_begins_as_another(tree: Tree, chat: str) -> None:
    ids = grown(tree, chat, ("a", "A"), ("b", "B"))
    ask(tree, chat, Turn(ids[0]), "A2")
    other = tree.fork(chat, ids[2])
    found = tree.open(other)
    assert [message.text for message in found.branch] == ["a", "A", "b"]
    assert found.branch[1].reply == Reply("A", (1, 2), "tok", "stop")
    assert [len(message.versions) for message in found.branch] == [1, 1, 1]
    assert (found.chat.title, found.chat.system_prompt) == ("a (2)", "Be brief.")
    assert tree.open(tree.fork(other, found.branch[0].id)).chat.title == "a (3)"
    grown(tree, other, ("c", "C"))
    tree.show(other, found.branch[0].id)
    assert texts(tree, other) == ["a", "A", "b", "c", "C"]
    assert texts(tree, chat) == ["a", "A2"]
    private = tree.fork(other, found.branch[0].id)
    assert not private.startswith("private-")


def test_a_private_chat_branches_into_a_private_one(store: ChatStore, tree: Tree) -> None:
    chat = store.private("m", "", "").id
    ids = grown(tree, chat, ("a", "A"))
    other = tree.fork(chat, ids[1])
    assert other.startswith("private-") and texts(tree, other) == ["a", "A"]


def test_an_answer_as_a_person_writes_it(tree: Tree, chat: str) -> None:
    _, answer = grown(tree, chat, ("a", "A"))
    tree.revise(chat, answer, "A, in my words")
    last = tree.open(chat).branch[-1]
    assert last.reply == Reply("A, in my words", finish="stop") and last.versions == (answer, last.id)


def test_the_line(tree: Tree, chat: str) -> None:
    grown(tree, chat, ("a", "A"))
    for text in ("one", "two", "three"):
        tree.wait(chat, text)
    one, two, _ = tree.open(chat).line
    tree.change_waiting(chat, two.id, "zwei")
    assert [each.text for each in tree.open(chat).line] == ["one", "zwei", "three"]
    ask(tree, chat, Turn(tree.open(chat).chat.leaf, one.text, waited=one.id))
    assert [each.text for each in tree.open(chat).line] == ["zwei", "three"]
    tree.change_waiting(chat, two.id, "")
    assert [each.text for each in tree.open(chat).line] == ["three"]


def test_random_trees_are_as_a_plain_model_of_them_says(store: ChatStore, tree: Tree) -> None:
    """Parents, versions and what was seen last, through hundreds of random acts."""
    chance = random.Random(7)
    for _ in range(6):
        chat = store.fresh("m", "", "").id
        parent: dict[int, int | None] = {}
        seen: dict[int | None, int | None] = {None: None}
        for step in range(60):
            branch = _followed(seen)
            kind = chance.choice(["send", "retry", "edit", "show", "remove"]) if branch else "send"
            chosen = chance.choice(list(parent)) if parent else None
            shown = tree.open(chat).branch
            if kind == "show" and chosen is not None:
                tree.show(chat, chosen)
                _look(chosen, parent, seen)
            elif kind == "remove" and chosen is not None and step % 3 == 0:
                gone = tree.remove(chat, chosen)
                _forget(chosen, gone, parent, seen)
            elif kind in ("send", "edit"):
                below = shown[-1].id if kind == "send" and shown else None
                if kind == "edit":
                    below = chance.choice([each.parent for each in shown if each.role == "user"])
                if below is not None and tree.open(chat).branch[-1].role == "user" and kind == "send":
                    continue
                answer = ask(tree, chat, Turn(below, f"q{step}"))[0]
                question = tree.open(chat).branch[-2].id
                parent |= {question: below, answer: question}
                _look(answer, parent, seen)
            elif kind == "retry":
                question = chance.choice([each.id for each in shown if each.role == "user"])
                answer = ask(tree, chat, Turn(question))[0]
                parent[answer] = question
                _look(answer, parent, seen)
            found = tree.open(chat).branch
            assert [message.id for message in found] == _followed(seen)
            for message in found:
                assert message.versions == tuple(
                    sorted(id for id, above in parent.items() if above == message.parent)
                )
        if tree.open(chat).branch:
            assert store.fresh("m", "", "").id != chat


def _followed(seen: dict[int | None, int | None]) -> list[int]:
    path, at = [], seen[None]
    while at is not None:
        path.append(at)
        at = seen.get(at)
    return path


def _look(message: int, parent: dict[int, int | None], seen: dict[int | None, int | None]) -> None:
    at: int | None = message
    while at is not None:
        seen[parent[at]] = at
        at = parent[at]


def _forget(
    chosen: int, gone: frozenset[int], parent: dict[int, int | None], seen: dict[int | None, int | None]
) -> None:
    above = parent[chosen]
    others = [id for id, its in parent.items() if its == above and id != chosen]
    if seen.get(above) == chosen:
        seen[above] = max((id for id in others if id < chosen), default=min(others, default=None))
    for id in gone:
        del parent[id]
        seen.pop(id, None)


def test_chats_of_the_first_form_keep_what_was_on_screen(tmp_path: Path) -> None:
    """Their retries were the newest below each question."""
    db = Database(str(tmp_path / "chats.db"))
    migrations.apply(db, stop_before="m002_the_list_of_chats")
    facts = {"title": "t", "model": "model", "system_prompt": "", "date": "", "updated": 0}
    db["chats"].insert({"id": "c", **facts, "turn": 1, "leaf": 4})
    for id, parent in ((1, None), (2, 1), (3, 1), (4, 1)):
        role = "assistant" if parent else "user"
        row = {"id": id, "chat": "c", "parent": parent, "depth": int(bool(parent)), "role": role, "text": "x"}
        db["messages"].insert({**row, "token_ids": b"", "tokenizer": "", "finish": "stop", "error": ""})
    db.close()
    store = ChatStore(tmp_path / "chats.db")
    found = store.tree.open("c")
    assert [message.id for message in found.branch] == [1, 4] and found.branch[1].versions == (2, 3, 4)
    assert found.branch[1].model == "model"
    store.tree.show("c", 1)
    assert store.tree.open("c").chat.leaf == 4
    store.close()
