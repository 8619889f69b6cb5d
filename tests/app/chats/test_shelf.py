"""The list of chats: what stands where, the bin, and that nothing is left of what was in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.shelf import ARCHIVE, Shelf
from app.chats.store import ChatStore
from app.errors import AppError, UnknownChat
from app.settings import Home, Settings
from tests.app.fakes import FakeModel, echo, make_home, make_runtime

SECRET = "zqxwvkj"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(answer=echo)


@pytest.fixture
def shelf(home: Home, model: FakeModel) -> Iterator[Shelf]:
    shelf = open_shelf(home, model)
    yield shelf
    close(shelf)


def open_shelf(home: Home, model: FakeModel) -> Shelf:
    store = ChatStore(home / "chats.db")
    return Shelf(
        ChatService(
            store,
            make_runtime(home, model),
            Settings(home, model="fake", system_prompt="Be kind."),
        ),
        store,
    )


def close(shelf: Shelf) -> None:
    shelf.close()
    shelf._chats.close()


def said(shelf: Shelf, text: str, chat: str = "") -> str:
    chat = shelf._chats.send(chat, text)
    while shelf._chats._open.answers(chat):
        shelf._chats.wait(chat, shelf._chats.version(chat), 0.01)
    return chat


def rows(shelf: Shelf, place: str = "") -> list[str]:
    return [row.id for row in shelf.look(place, 100, "").rows]


def stored(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in home.path.glob("chats.db*"))


def test_pinned_first_then_the_newest(shelf: Shelf) -> None:
    one, two, three = (said(shelf, text) for text in ("one", "two", "three"))
    assert rows(shelf) == [three, two, one]
    shelf.pin(one, True)
    assert rows(shelf) == [one, three, two] and shelf.look("", 9, "").rows[0].pinned
    shelf.pin(one, False)
    private = said(shelf, "private", shelf.new(private=True))
    assert rows(shelf) == [private, three, two, one]


def test_what_is_counted_is_what_stands_there(shelf: Shelf) -> None:
    """An archived chat whose messages were all removed stands nowhere."""
    chats = [said(shelf, text) for text in ("one", "two")]
    for chat in chats:
        shelf.archive(chat, True)
    shelf._chats.remove(chats[0], shelf._chats.view(chats[0]).messages[0].id)
    assert rows(shelf, ARCHIVE) == chats[1:] and shelf.look("", 9, "").archived == 1


def test_folders_and_the_archive_are_places_of_their_own(shelf: Shelf) -> None:
    one, two, three = (said(shelf, text) for text in ("one", "two", "three"))
    recipes = shelf.make_folder("  Recipes \n of ours")
    shelf.move(one, recipes)
    shelf.move(two, recipes)
    shelf.archive(three, True)
    assert (rows(shelf), rows(shelf, recipes), rows(shelf, ARCHIVE)) == ([], [two, one], [three])
    view = shelf.look(recipes, 1, three)
    assert [(folder.name, folder.chats) for folder in view.folders] == [("Recipes of ours", 2)]
    assert (len(view.rows), view.total, view.archived) == (1, 2, 1)
    assert view.here and view.here.id == three and view.here.archived
    shelf.pin(two, True)
    assert (rows(shelf), rows(shelf, recipes)) == ([two], [two, one])
    shelf.archive(three, False)
    shelf.delete_folder(recipes)
    assert sorted(rows(shelf)) == sorted([one, two, three])
    assert shelf.look(recipes, 1, "gone").place == ""
    for call in (lambda: shelf.move(one, recipes), lambda: shelf.change_folder(recipes, "x", "")):
        with pytest.raises(AppError, match="does not exist any more"):
            call()


def test_a_new_chat_in_a_folder_begins_with_its_system_prompt(shelf: Shelf, model: FakeModel) -> None:
    folder, plain = shelf.make_folder("Pirates"), shelf.make_folder("Plain")
    shelf.change_folder(folder, "Pirates", "Talk like a pirate.")
    for place, prompt in ((folder, "Talk like a pirate."), (plain, "Be kind.")):
        chat = shelf.new(place)
        assert rows(shelf, place) == [] and shelf._chats.new_chat() != chat  # it is nobody else's
        said(shelf, "hello", chat)
        assert rows(shelf, place) == [chat]
        assert model.streams[-1].request.messages[0].content == prompt


@pytest.mark.parametrize(("name", "complaint"), [(" \n", "empty"), ("recipes", "already"), ("x" * 300, "")])
def test_names_of_folders(shelf: Shelf, name: str, complaint: str) -> None:
    first = shelf.make_folder("Recipes")
    shelf.change_folder(first, "RECIPES", "")  # itself
    if not complaint:
        shelf.make_folder(name)
        assert max(len(folder.name) for folder in shelf.look("", 1, "").folders) == 100
        return
    with pytest.raises(AppError, match=complaint):
        shelf.make_folder(name)


def test_out_of_the_bin_it_comes_back_as_it_was(shelf: Shelf, model: FakeModel) -> None:
    chat = said(shelf, "keep me")
    shelf.pin(chat, True)
    model.answer = lambda request: None
    shelf._chats.send(chat, "and this")
    while model.new.qsize():
        stream = model.next_stream()
    shelf.discard(chat)
    assert stream.cancelled.wait(9)
    assert rows(shelf) == [] and shelf.look("", 1, chat).here is None
    for call in (shelf._chats.view, shelf.discard, lambda id: shelf.pin(id, False), shelf._chats.attend):
        if call != shelf._chats.attend:
            with pytest.raises(UnknownChat):
                call(chat)
    shelf.restore(chat)
    assert rows(shelf) == [chat] and shelf.look("", 1, chat).here.pinned  # type: ignore[union-attr]
    assert [m.text for m in shelf._chats.view(chat).messages][::2] == ["keep me", "and this"]
    with pytest.raises(UnknownChat):
        shelf.restore(chat)


@pytest.mark.parametrize("end", ["its time is up", "the program ends", "the program was killed"])
def test_what_was_in_the_bin_is_overwritten(home: Home, model: FakeModel, end: str) -> None:
    shelf = open_shelf(home, model)
    kept = said(shelf, "another chat")
    chat = said(shelf, f"{SECRET} in a question")
    assert SECRET.encode() in stored(home)
    shelf.discard(chat)
    if end == "its time is up":
        shelf._bin[chat].function(chat)
        with pytest.raises(UnknownChat):
            shelf.restore(chat)
    if end == "the program was killed":
        shelf._bin.pop(chat).cancel()
    close(shelf)
    assert (SECRET.encode() in stored(home)) == (end == "the program was killed")
    again = open_shelf(home, model)
    again._sweep()
    assert rows(again) == [kept]
    close(again)
    assert SECRET.encode() not in stored(home)


def test_a_private_chat_is_gone_at_once_and_never_on_disk(home: Home, model: FakeModel) -> None:
    shelf = open_shelf(home, model)
    chat = said(shelf, f"{SECRET} in private", shelf.new(private=True))
    other = said(shelf, "more", shelf.new(private=True))
    assert shelf.look("", 9, chat).here.private  # type: ignore[union-attr]
    owners = {stream.request.owner for stream in model.streams}
    assert len(owners) == 2 and "person" not in owners  # they share no memory, not with each other either
    shelf.discard(chat)
    with pytest.raises(UnknownChat):
        shelf.restore(chat)
    assert rows(shelf) == [other]
    assert SECRET.encode() not in stored(home)
    close(shelf)
    again = open_shelf(home, model)
    assert rows(again) == []
    close(again)


def test_what_was_prepared_and_never_used_is_gone_at_the_next_start(home: Home, model: FakeModel) -> None:
    shelf = open_shelf(home, model)
    shelf.new(shelf.make_folder("Empty"))
    close(shelf)
    shelf = open_shelf(home, model)
    assert len(shelf._store.chats()) == 1
    shelf._sweep()
    assert shelf._store.chats() == []
    close(shelf)
