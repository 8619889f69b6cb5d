"""Files of chats: all of it comes in or nothing, once, in little memory; what was exported comes back."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chats import import_values, importing, message_rows
from app.chats.export import one, whole
from app.chats.import_values import values
from app.chats.importing import Importer
from app.chats.records import MOST_FOLDERS, Reply, ReplyStats, Turn
from app.chats.store import ChatStore
from app.documents.attachments import FOLDER, Attachments
from app.errors import AppError
from app.settings import Home
from tests.app.chats.test_import_forms import chatgpt, node, open_webui
from tests.app.fakes import make_home
from tests.app.sample_documents import pdf


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def store(home: Home) -> Iterator[ChatStore]:
    store = ChatStore(home / "chats.db")
    yield store
    store.close()


def bring(store: ChatStore, home: Home, content: Any) -> importing.Imported:
    importer = Importer(store, Attachments(home / FOLDER, store.place), home)
    path = importer.place()
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    try:
        return importer.take(path)
    finally:
        path.unlink()


def many(count: int) -> list[dict[str, Any]]:
    def turn(number: int) -> dict[str, Any]:
        nodes = node("q", None, "user", f"question {number}"), node("a", "q", "assistant", f"answer {number}")
        return chatgpt(*nodes, conversation_id=f"c{number}", title=f"chat {number}", update_time=1e9 + number)

    return [turn(number) for number in range(count)]


def test_a_list_comes_in_once(store: ChatStore, home: Home) -> None:
    new = store.fresh("m", "", "").id
    store.tree.begin(new, None, Turn(None, "mine"), title="mine", models=["m"])
    content = [*many(600), chatgpt(node("root", None)), open_webui({"3": {"role": "user", "content": "hi"}})]
    done = bring(store, home, content)
    assert (done.chats, done.messages, done.known, done.empty) == (601, 1201, 0, 1)
    titles = [chat.title for chat in store.chats()]
    assert titles[:3] == ["mine", "W", "chat 599"] and titles[-1] == "chat 0"  # old ones are not the newest
    chat = store.chats()[-1]
    assert [message.text for message in store.tree.open(chat.id).branch] == ["question 0", "answer 0"]
    done = bring(store, home, content)
    assert (done.chats, done.known) == (0, 601)
    store.delete(chat.id)
    assert bring(store, home, content).chats == 1  # what was deleted may come again


def test_a_zip(store: ChatStore, home: Home) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/conversations-000.json", json.dumps(many(2)))
        archive.writestr("export/conversations-001.json", json.dumps(many(3)))
        archive.writestr("../../evil.json", "[]")
    done = bring(store, home, packed.getvalue())
    assert (done.chats, done.known) == (3, 2)


def test_what_was_exported_comes_back(store: ChatStore, home: Home, tmp_path: Path) -> None:
    chat = store.fresh("m", "Be kind.", "2026-01-02").id
    (first,) = store.tree.begin(chat, None, Turn(None, "né 你好 🦊"), title="Tïtle", models=["m1"])
    store.tree.save_reply(first, Reply("one", (), "", "stop"))
    question = store.tree.open(chat).branch[0].id
    (second,) = store.tree.begin(chat, first, Turn(question), title="", models=["m2"])
    failed = Reply("two", (), "", "error", "The engine stopped.", ReplyStats(2, 1.5, 0.25, 3, 7, 0.5, 0.9))
    store.tree.save_reply(second, failed)
    store.tree.show(chat, first)
    folder = {"id": "f", "name": "Recipes", "system_prompt": ""}
    store.file.transact(lambda db: db["folders"].insert(folder))
    store.change(chat, pinned=1, folder="f", sampling='{"temperature": 0.25}', own_model="x", preset="P")
    files = Attachments(home / FOLDER, store.place)
    text = "".join(whole(store, files, "json")[1])
    assert "".join(one(store, files, chat, "json")[1])
    assert bring(store, home, text.encode()).known == 1
    (other := tmp_path / "other").mkdir()
    again = ChatStore(other / "chats.db")
    assert bring(again, make_home(other), b"\xef\xbb\xbf" + text.encode()).chats == 1
    old, new = store.tree.open(chat), again.tree.open(again.chats()[0].id)
    assert [each.text for each in new.branch] == ["né 你好 🦊", "one"] and len(new.branch[1].versions) == 2
    for name in ("title", "system_prompt", "pinned", "sampling", "own_model", "preset", "updated", "date"):
        assert getattr(new.chat, name) == getattr(old.chat, name)
    assert [each.model for each in new.branch] == ["", "m1"] and new.chat.folder
    again.tree.show(new.chat.id, new.branch[1].versions[1])
    assert again.tree.open(new.chat.id).branch[-1].reply == failed
    again.close()


PAGES = ("Page one.", "", "Page three.")


def test_documents_come_back_with_their_messages(store: ChatStore, home: Home, tmp_path: Path) -> None:
    """Whole, once however many messages have them, with what the model was given of them."""
    files = Attachments(home / FOLDER, store.place)
    chat = store.fresh("m", "", "").id
    drafts = []
    for name in ("book.pdf", "same.pdf"):
        with files.receiving(chat) as file:
            file.write(pdf(PAGES))
            drafts.append(files.take(chat, name, file, "f" * 64))
    store.tree.begin(
        chat, None, Turn(None, "q", files=tuple(each.id for each in drafts)), title="T", models=["m"]
    )
    book, _ = store.tree.open(chat).branch[0].files
    files.choose(chat, [replace(book, given="<file>Page one.</file>", parts=((1, 1),))])
    assert "*File: book.pdf, page 1 of 3*\n\n*File: same.pdf*" in "".join(one(store, files, chat, "md")[1])
    text = "".join(whole(store, files, "json")[1])
    assert len(json.loads(text)["documents"]) == 1
    (other := tmp_path / "other").mkdir()
    again, home = ChatStore(other / "chats.db"), make_home(other)
    assert bring(again, home, text.encode()).chats == 1
    kept = Attachments(home / FOLDER, again.place)
    first, second = again.tree.open(again.chats()[0].id).branch[0].files
    assert [(each.name, each.size, each.count, each.blank) for each in (first, second)] == [
        (each.name, each.size, 3, 1) for each in drafts
    ]
    assert (first.given, first.parts, second.given) == ("<file>Page one.</file>", ((1, 1),), None)
    assert kept.document(first.hash) == kept.document(second.hash) == files.document(book.hash)
    kept.sweep()
    assert len(list((home / FOLDER).iterdir())) == 1 and kept.document(first.hash).parts[0] == "Page one."
    assert json.loads("".join(whole(again, kept, "json")[1]))["chats"][0]["messages"][0]["files"][0]["given"]
    again.delete(again.chats()[0].id)
    kept.sweep()
    assert list((home / FOLDER).iterdir()) == []
    again.close()


def test_documents_of_open_webui_and_of_a_bad_file(store: ChatStore, home: Home) -> None:
    told = {"name": "../a.txt", "file": {"data": {"content": "one\ntwo"}}}
    odd = [7, {"name": 1}, {"name": "x", "file": {"data": {"content": 3}}}]
    said = {"role": "user", "content": "hi", "files": [told, *odd]}
    bring(store, home, [open_webui({"3": said})])
    (file,) = store.tree.open(store.chats()[0].id).branch[0].files
    kept = Attachments(home / FOLDER, store.place)
    assert (file.name, file.size) == ("a.txt", 7) and kept.document(file.hash).parts == ("one", "two")
    message = {"id": 1, "role": "user", "text": "q", "files": ["old", {"name": "gone.txt", "document": "?"}]}
    mine = {"documents": [{"id": "d", "unit": "leaf", "parts": ["x", 1]}], "chats": [{"messages": [message]}]}
    assert bring(store, home, mine).chats == 1
    assert store.tree.open(store.chats()[0].id).branch[0].files == ()
    assert len(list((home / FOLDER).iterdir())) == 1  # what no message has is gone
    with pytest.raises(AppError, match="can't be read"):
        bring(store, home, json.dumps(mine).encode()[:-1])
    assert len(list((home / FOLDER).iterdir())) == 1


def test_a_long_conversation_comes_and_goes_piece_by_piece(
    store: ChatStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others can write in between, and see nothing of it before all of it is there."""
    for module in (importing, message_rows):
        monkeypatch.setattr(module, "AT_ONCE", 1000)
    branches = [node(f"b{n}", "20", "user", f"branch {n}" + "y" * 2000) for n in range(5)]
    chain = [node(str(n), str(n - 1) if n else None, "user", f"{n} " + "x" * 100) for n in range(50)]
    content = [chatgpt(*chain, *branches, conversation_id="long", current_node="b3"), *many(2)]
    pieces, seen, written = [], set(), store.file.transact

    def transact(work: Any) -> Any:
        seen.add(len(store.chats()))
        before = count()
        done = written(work)
        pieces.append(abs(count() - before))
        return done

    def count() -> int:
        rows = "SELECT count(*) FROM messages"
        return int(store.file.read(lambda db: db.execute(rows).fetchone()[0]))

    store.file.transact = transact  # type: ignore[method-assign]
    assert bring(store, home, content).messages == 59
    assert max(pieces) == 4 and sum(pieces) == 59 and seen <= {0, 3}
    long = store.chats()[0]
    branch = store.tree.open(long.id).branch
    assert [each.depth for each in branch] == list(range(22)) and branch[-1].text.startswith("branch 3y")
    store.tree.show(long.id, branch[-1].versions[0])
    assert store.tree.open(long.id).branch[-1].text.startswith("49 x")
    pieces.clear()
    store.delete(long.id)
    assert max(pieces) == 3 and sum(pieces) == 55 and seen == {0, 2, 3}


def test_of_many_folders_those_that_may_be_are_made(store: ChatStore, home: Home) -> None:
    said = {"messages": [{"id": 1, "role": "user", "text": "q"}]}
    chats = [{**said, "id": f"x{number}", "folder": f"Folder {number}"} for number in range(MOST_FOLDERS + 2)]
    assert bring(store, home, {"chats": chats}).chats == MOST_FOLDERS + 2
    assert len({chat.folder for chat in store.chats()} - {None}) == MOST_FOLDERS


def test_a_message_that_is_too_long(store: ChatStore, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "LONGEST", 100)
    bring(store, home, [chatgpt(node("q", None, "user", "x" * 100))])
    with pytest.raises(AppError, match="A message in this file has 101 characters; at most 100 are taken"):
        bring(store, home, [*many(600), chatgpt(node("q", None, "user", "x" * 101))])
    assert len(store.chats()) == 1


def test_it_says_how_far_it_is_and_can_be_stopped(store: ChatStore, home: Home) -> None:
    importer = Importer(store, Attachments(home / FOLDER, store.place), home)
    path, shares = importer.place(), []
    path.write_text(json.dumps(many(2000)))
    written, undone = store.file.transact, []

    def transact(work: Any) -> Any:
        (undone if importer.is_undone else shares).append(importer.share)
        if len(shares) == 3:
            importer.stop()
        return written(work)

    store.file.transact = transact  # type: ignore[method-assign]
    with pytest.raises(AppError, match="import was stopped"):
        importer.take(path)
    assert 0 == shares[0] < shares[1] <= shares[2] < 1
    assert undone == sorted(undone) and 0 == undone[0] < undone[-1] < 1 and len(undone) < 20
    assert store.file.read(lambda db: db.execute("SELECT count(*) FROM chats").fetchone()[0]) == 0
    assert importer.take(path).chats == 2000 and importer.share == 1


GOOD = json.dumps(many(600))
BAD = [
    (b"", "can't be read as JSON|empty"),
    (b"[", "can't be read"),
    (b"not json", "can't be read"),
    (b"PK\x03\x04 a broken archive", "can't be read"),
    (GOOD.encode()[:-1], "can't be read"),
    (GOOD.encode()[:-1] + b", 7]", "no export of chats"),
    (GOOD.encode() + b"x", "can't be read"),
    (b"[" * 1_000_000, "more than 64 deep"),
    (b'{"a":' * 1_000_000, "more than 64 deep"),
    (b'[{"mapping": {"\xff": 1}}]', "can't be read"),
    (b'[{"mapping": {"a": ' + b"9" * 10_000 + b"}}]", ""),
    (b'{"a": 1}', "no export of chats"),
    (b"7", "no export of chats|can't be read"),
]


@pytest.mark.parametrize(("content", "said"), BAD)
def test_of_a_bad_file_nothing_comes_in(store: ChatStore, home: Home, content: bytes, said: str) -> None:
    kept = store.fresh("m", "", "").id
    begin = time.monotonic()
    try:
        bring(store, home, content)
    except AppError as error:
        assert "Nothing was imported." in str(error) and len(str(error)) < 400
    else:
        assert not said
    if said:
        with pytest.raises(AppError, match=said):
            bring(store, home, content)
    assert time.monotonic() - begin < 60
    rows = store.file.read(lambda db: db.execute("SELECT id FROM chats").fetchall())
    assert [row["id"] for row in rows] == [kept]
    assert not list((home / "cache").glob("import-*"))


class Endless(io.RawIOBase):
    """A list whose one conversation never ends, as far as a file of any size would."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int = -1) -> bytes:
        self.given += size
        return b'[{"mapping": {"a": "' if self.given == size else b"a" * size


def test_a_file_of_any_size_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_values, "LARGEST_CHAT", 2**20)
    file = Endless()
    with pytest.raises(AppError, match="A conversation in this file is larger than"):
        list(values(file))  # type: ignore[arg-type]
    assert file.given < 2**21


def test_a_zip_bomb(store: ChatStore, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_values, "LARGEST_UNPACKED", 2**22)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + b" " * 2**24 + b"]")
    with pytest.raises(AppError, match="The file is larger than"):
        bring(store, home, packed.getvalue())


def test_what_an_import_left_when_the_program_was_killed_does_not_count(store: ChatStore, home: Home) -> None:
    """It is in no list, and comes in whole the next time, whatever part of it is there."""
    bring(store, home, many(3))
    store.file.transact(lambda db: db.execute("UPDATE chats SET deleted = 2 WHERE title = 'chat 1'"))
    store.file.transact(lambda db: db.execute("DELETE FROM messages WHERE text = 'answer 1'"))
    assert [chat.title for chat in store.chats()] == ["chat 2", "chat 0"]
    done = bring(store, home, many(3))
    assert (done.chats, done.messages, done.known) == (1, 2, 2)
    whole = next(chat.id for chat in store.chats() if chat.title == "chat 1")
    assert [each.text for each in store.tree.open(whole).branch] == ["question 1", "answer 1"]


def test_what_a_killed_program_was_importing_is_gone_at_the_next_start(store: ChatStore, home: Home) -> None:
    files = Attachments(home / FOLDER, store.place)
    left = Importer(store, files, home).place()
    left.write_text("a secret")
    importer = Importer(store, files, home)
    assert not left.exists()
    kept = importer.place()
    importer.place()
    assert kept.exists()  # another that comes in meanwhile
