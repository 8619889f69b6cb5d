"""Files of messages: kept once, private, gone with the last message that names them; chosen from once."""

from __future__ import annotations

import hashlib
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.chats.chat import ChatService
from app.chats.records import Attachment
from app.documents.attachments import DRAFT_LIFE_S, FOLDER, MOST_FILES
from app.errors import AppError, StoreError, UnknownChat, Unreadable
from app.settings import Home
from engine import FinishReason
from tests.app.chats.conftest import open_chats
from tests.app.chats.test_chat import until, until_idle
from tests.app.fakes import FakeModel, FakeStream, make_home
from tests.app.sample_documents import pdf


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(context_length=400)


@pytest.fixture
def chats(home: Home, model: FakeModel) -> Iterator[ChatService]:
    service = open_chats(home, model)
    yield service
    service.close()


def bring(chats: ChatService, data: bytes, name: str = "notes.txt", chat: str = "") -> Attachment:
    """As the route does."""
    kept = chats.attachments
    with kept.receiving(chat) as file:
        file.write(data)
        return kept.take(chat, name, file, hashlib.sha256(data).hexdigest())


def kept_files(home: Home) -> list[str]:
    return sorted(path.name for path in (home / FOLDER).glob("*"))


def asked(chats: ChatService, model: FakeModel, text: str, *files: Attachment, chat: str = "") -> FakeStream:
    """Send, and answer with a word."""
    chat = chats.send(chat, text, [file.id for file in files])
    stream = model.next_stream()
    stream.write("Yes.")
    stream.finish()
    until_idle(chats, chat)
    return stream


def test_a_file_stands_before_its_question(chats: ChatService, model: FakeModel, home: Home) -> None:
    file = bring(chats, b"Folded once.\nSewn twice.")
    assert (file.name, file.unit, file.count, file.given) == ("notes.txt", "line", 2, None)
    said = asked(chats, model, "How often is it sewn?", file).request.messages[-1].content
    assert said == '<file name="notes.txt">\nFolded once.\nSewn twice.\n</file>\n\nHow often is it sewn?'
    chat = chats.list_chats()[0].id
    shown = chats.view(chat).messages[0]
    assert shown.text == "How often is it sewn?"
    assert [(each.name, each.parts, each.given is None) for each in shown.files] == [("notes.txt", (), False)]
    later = asked(chats, model, "And folded?", chat=chat).request.messages
    assert later[1].content == said  # the same to the letter, so its prefix is found in the cache


def test_files_are_this_person_s_alone(chats: ChatService, home: Home) -> None:
    bring(chats, b"secret")
    folder = home / FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2


def test_the_same_file_is_kept_and_read_once(
    chats: ChatService, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bring(chats, b"same", "a.txt")
    monkeypatch.setattr("app.documents.attachments.read_document", None)
    second = bring(chats, b"same", "b.txt")
    assert first.hash == second.hash and first.id != second.id and len(kept_files(home)) == 2
    chats.attachments.drop("", first.id)
    assert len(kept_files(home)) == 2
    chats.attachments.drop("", second.id)
    assert kept_files(home) == []


def test_a_file_goes_with_its_last_message(chats: ChatService, model: FakeModel, home: Home) -> None:
    asked(chats, model, "One?", bring(chats, b"one and two"))
    asked(chats, model, "Two?", bring(chats, b"one and two"))
    one, two = (chat.id for chat in chats.list_chats())
    chats.delete(one)
    assert len(kept_files(home)) == 2
    chats.delete(two)
    assert kept_files(home) == []


def test_an_edited_question_and_a_branch_keep_their_files(chats: ChatService, model: FakeModel) -> None:
    asked(chats, model, "One?", bring(chats, b"a b c"))
    chat = chats.list_chats()[0].id
    chats.turns.edit(chat, chats.view(chat).messages[0].id, "Two?")
    stream = model.next_stream()
    assert stream.request.messages[-1].content == '<file name="notes.txt">\na b c\n</file>\n\nTwo?'
    stream.finish()
    until_idle(chats, chat)
    other = chats.branch(chat, chats.view(chat).messages[0].id)
    assert chats.view(other).messages[0].files[0].given
    chats.delete(chat)
    assert chats.attachments.document(chats.view(other).messages[0].files[0].hash).parts == ("a b c",)


def test_a_message_that_waits_keeps_its_files(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "One?")
    first, file = model.next_stream(), bring(chats, b"a b c")
    chats.send(chat, "Two?", [file.id])
    first.finish()
    second = model.next_stream()
    assert second.request.messages[-1].content.endswith("a b c\n</file>\n\nTwo?")
    second.finish()
    until_idle(chats, chat)


def test_what_does_not_fit_whole_is_given_in_its_best_parts(chats: ChatService, model: FakeModel) -> None:
    pages = [f"Page {n} is about paper. " + "Fill the page. " * 60 for n in range(1, 31)]
    pages[16] = "The headband has two colours. " + "Fill the page. " * 12
    file = bring(chats, pdf(["\n".join(page.split(". ")) for page in pages]), "book.pdf")
    stream = asked(chats, model, "Which colours has the headband?", file)
    said = stream.request.messages[-1].content
    assert "[page 17]\nThe headband has two colours" in said
    chosen = chats.view(chats.list_chats()[0].id).messages[0].files[0]
    assert (17, 17) in chosen.parts and f"of {file.count}" in said
    assert model.estimate(stream.request).prompt_tokens + 100 <= 400, "an answer has room"


def test_a_small_file_goes_in_whole_beside_a_large_one(chats: ChatService, model: FakeModel) -> None:
    model.context_length = 1000
    small = bring(chats, b"The key is 42.", "small.txt")
    large = bring(chats, b"\n".join(b"line %d of many words in a row" % n for n in range(900)), "large.txt")
    asked(chats, model, "What is line 500?", large, small)
    first, second = chats.view(chats.list_chats()[0].id).messages[0].files
    assert (first.name, second.name, second.parts) == ("large.txt", "small.txt", ())
    assert first.parts and any(low <= 501 <= high for low, high in first.parts)


def test_no_room_beside_a_long_conversation(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "word " * 250)
    stream = model.next_stream()
    stream.write("so " * 100)
    stream.finish()
    until_idle(chats, chat)
    file = bring(chats, b"a b c " * 100)
    chats.send(chat, "And this?", [file.id])
    until(chats, chat, lambda: bool(chats.view(chat).messages[-1].error))
    assert "of 400 tokens" in chats.view(chat).messages[-1].error
    assert chats.view(chat).messages[-1].finish_reason == FinishReason.ERROR


def test_private_files_never_reach_the_disk(chats: ChatService, model: FakeModel, home: Home) -> None:
    chat = chats._store.private("fake", "", "2026-11-30").id
    file = bring(chats, b"a very private canary", chat=chat)
    said = asked(chats, model, "Sing!", file, chat=chat).request.messages[-1].content
    assert "canary" in said
    found = [path for path in home.path.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]
    assert found == [] and kept_files(home) == []
    chats.delete(chat)
    assert chats.attachments._private == {}


def test_files_that_are_gone_or_too_many(chats: ChatService) -> None:
    with pytest.raises(StoreError, match="Attach it once more"):
        chats.send("", "x", ["no such file"])
    ids = [bring(chats, b"%d" % n).id for n in range(MOST_FILES + 1)]
    with pytest.raises(StoreError, match="There are 21 files; a message takes at most 20"):
        chats.send("", "x", ids)
    assert chats.list_chats() == [], "nothing was begun"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\x\\a.txt", "a.txt"),
        ("a\nb\u202ec.txt", "a b c.txt"),
        ("", "file"),
        ("x" * 300 + ".txt", "x" * 196 + ".txt"),
    ],
)
def test_names_are_one_line_and_lead_nowhere(chats: ChatService, name: str, kept: str) -> None:
    assert bring(chats, b"x", name).name == kept


def test_what_can_t_be_read_leaves_nothing(chats: ChatService, home: Home) -> None:
    for data, sentence in ((bytes(9), "odd.bin was not taken. It is neither"), (b"", "odd.bin is empty.")):
        with pytest.raises(Unreadable, match=sentence):
            bring(chats, data, "odd.bin")
    assert kept_files(home) == []


def test_a_full_disk_is_said(chats: ChatService, monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    def full(*args: object, **more: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(AppError, match=r"could not be kept: No space left on device \(.* free\)"):
        bring(chats, b"x")
    assert kept_files(home) == []


def test_drafts_go_after_a_week(chats: ChatService, home: Home) -> None:
    bring(chats, b"x")
    chats.attachments.sweep()
    assert len(kept_files(home)) == 2
    long_ago = time.time() - DRAFT_LIFE_S - 1
    chats._store.file.transact(lambda db: db.execute("UPDATE attachments SET added = ?", [long_ago]))
    chats.attachments.sweep()
    assert kept_files(home) == []


def test_half_an_upload_is_gone_at_the_next_start(home: Home, model: FakeModel) -> None:
    (home / FOLDER).mkdir()
    (home / FOLDER / "half.new").write_bytes(b"secret")
    chats = open_chats(home, model)
    assert kept_files(home) == []
    with chats.attachments.receiving() as file:  # one that comes in just now is nobody else's to delete
        file.write(b"x")
        chats.attachments.sweep()
        assert len(kept_files(home)) == 1
    chats.close()


def test_a_private_upload_never_touches_the_disk(chats: ChatService, home: Home) -> None:
    private = chats.new_chat(private=True)
    with chats.attachments.receiving(private) as file:
        file.write(pdf(["a secret"]))
        assert kept_files(home) == []
        taken = chats.attachments.take(private, "a.pdf", file, "0" * 64)
    assert chats.attachments.document(taken.hash).parts == ("a secret",) and kept_files(home) == []
    chats.delete(private)
    with pytest.raises(UnknownChat):
        bring(chats, b"late", chat=private)


def test_the_files_of_a_message_that_waits_stay_until_it_is_taken_back(
    chats: ChatService, model: FakeModel, home: Home
) -> None:
    chat = chats.send("", "one")
    stream = model.next_stream()
    file = bring(chats, b"Folded once.", chat=chat)
    chats.send(chat, "SECRET follow-up", [file.id])
    with pytest.raises(AppError, match="goes with a message that waits"):
        chats.attachments.drop(chat, file.id)
    long_ago = time.time() - DRAFT_LIFE_S - 1
    chats._store.file.transact(lambda db: db.execute("UPDATE attachments SET added = ?", [long_ago]))
    chats.attachments.sweep()
    waiting = chats.view(chat).line[0]
    assert [each.name for each in waiting.given] == ["notes.txt"] and len(kept_files(home)) == 2
    chats.change_waiting(chat, waiting.id, "")
    assert chats.view(chat).line == () and kept_files(home) == []
    assert not [each for each in home.path.glob("chats.db*") if b"SECRET" in each.read_bytes()]
    stream.finish()


def test_a_message_that_waits_for_a_lost_file_says_so(chats: ChatService, model: FakeModel) -> None:
    chat = chats.send("", "one")
    stream = model.next_stream()
    file = bring(chats, b"Folded once.", chat=chat)
    chats.send(chat, "two", [file.id])
    chats._store.file.transact(lambda db: db.execute("DELETE FROM attachments"))
    chats.note_change(chat)
    waiting = chats.view(chat).line[0]
    assert waiting.files and not waiting.given
    with pytest.raises(StoreError, match="Attach it once more"):
        chats.turns.send_now(chat, waiting.id)
    assert not stream.cancelled.is_set()  # the answer goes on
    stream.finish()
    until_idle(chats, chat)
    assert chats.view(chat).line == (waiting,)
