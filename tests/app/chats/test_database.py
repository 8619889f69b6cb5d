"""The file under the chats: damaged, foreign, from the future, on a full disk, killed while it is written."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.chats import database
from app.chats.records import Reply, Turn
from app.chats.store import ChatStore
from app.errors import StoreError
from tests.source_tree import ROOT

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no kill -9 and no limit on file sizes")


def fill(path: Path, turns: int) -> str:
    store = ChatStore(path)
    chat = store.fresh("model", "", "2026-01-01").id
    leaf = None
    for number in range(turns):
        leaf = store.tree.begin(
            chat, leaf, Turn(leaf, f"question {number} " * 20), title="t", models=["model"]
        )[0]
        store.tree.save_reply(leaf, Reply("answer " * 50, tuple(range(50)), "tok", "stop"))
    store.close()
    return chat


def test_only_this_user_can_read_it(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    store.fresh("model", "", "")
    if os.name != "nt":
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {0o600}
    store.close()


def test_it_is_written_as_promised(tmp_path: Path) -> None:
    store = ChatStore(tmp_path / "chats.db")
    asked = ("journal_mode", "synchronous", "secure_delete", "foreign_keys")
    values = store._file.transact(lambda db: [db.execute(f"PRAGMA {name}").fetchone()[0] for name in asked])
    assert values == ["wal", 2, 1, 1]
    store.close()


@pytest.mark.parametrize("content", [b"", b"not a database, but long enough to look at" * 100])
def test_a_foreign_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "chats.db"
    path.write_bytes(content)
    store = ChatStore(path)
    assert store.chats() == []
    kept = list(tmp_path.glob("chats.db.damaged-*"))
    assert [file.read_bytes() for file in kept] == ([content] if content else [])
    assert bool(store.notice) == bool(content)
    store.close()


def test_a_damaged_file_is_kept_aside_and_said(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    fill(path, 40)
    content = bytearray(path.read_bytes())
    content[100:4096] = random.Random(1).randbytes(3996)  # the schema's page
    path.write_bytes(content)
    store = ChatStore(path)
    (kept,) = tmp_path.glob("chats.db.damaged-*")
    assert kept.read_bytes() == bytes(content)
    assert str(path) in store.notice and kept.name in store.notice
    chat = store.fresh("model", "", "")
    assert [each.id for each in store.chats()] == [chat.id]
    store.close()


@pytest.mark.parametrize("first", [4096, 5 * 4096])  # what the start reads, and what it does not
def test_damage_behind_the_schema_is_found_at_the_start(tmp_path: Path, first: int) -> None:
    path = tmp_path / "chats.db"
    fill(path, 40)
    content = bytearray(path.read_bytes())
    content[first:] = random.Random(1).randbytes(len(content) - first)
    path.write_bytes(content)
    store = ChatStore(path)
    assert "damaged" in store.notice
    assert store.chats() == []
    assert [file.read_bytes() for file in tmp_path.glob("chats.db.damaged-*")] == [content]
    store.close()


def test_a_damaged_text_hides_no_other(tmp_path: Path) -> None:
    fill(tmp_path / "chats.db", 1)
    store = ChatStore(tmp_path / "chats.db")
    store.file.transact(lambda db: db.execute("UPDATE chats SET title = CAST(x'41ff42' AS TEXT)"))
    fill(tmp_path / "chats.db", 1)
    assert {chat.title for chat in store.chats()} == {"A\ufffdB", "t"}
    store.close()


def test_random_damage_never_empties_in_silence(tmp_path: Path) -> None:
    fill(tmp_path / "good.db", 40)
    good = (tmp_path / "good.db").read_bytes()
    for seed in range(40):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        folder.mkdir()
        content = bytearray(good)
        for _ in range(rng.choice((1, 8, 64))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        (folder / "chats.db").write_bytes(content)
        try:
            store = ChatStore(folder / "chats.db")
        except StoreError:
            continue  # it says so and touches nothing
        try:
            shown = [store.tree.open(chat.id).branch for chat in store.chats()]
        except StoreError:
            shown = [()]
        assert shown or store.notice, seed
        store.close()


def test_a_log_without_its_file(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    store.fresh("model", "", "")
    log = path.with_name("chats.db-wal").read_bytes()  # as after kill -9
    store.close()
    path.unlink()
    path.with_name("chats.db-wal").write_bytes(log)
    store = ChatStore(path)
    assert store.chats() == []
    assert [file.read_bytes() for file in tmp_path.glob("chats.db.damaged-*-wal")] == [log]
    assert store.notice
    store.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows lets nobody delete or move an open file")
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_written_to_a_file_that_was_deleted(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    chat = store.fresh("model", "", "").id
    store.tree.begin(chat, None, Turn(None, "before"), title="t", models=["model"])[0]
    path.rename(tmp_path / "moved.db")
    if replaced:
        path.write_bytes(b"")
    with pytest.raises(StoreError, match="was deleted or replaced"):
        store.change(chat, title="after")
    assert [each.title for each in store.chats()] == ["t"]  # what was there can still be read
    (tmp_path / "moved.db").rename(path)
    store.change(chat, title="back")
    store.close()
    store = ChatStore(path)
    assert [each.title for each in store.chats()] == ["back"]
    store.close()


def test_a_file_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    fill(path, 1)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match=r"newer Octavo .its form is 99, this one knows \d"):
        ChatStore(path)
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"chats\.db can't be used: unable to open"):
        ChatStore(tmp_path / "missing" / "chats.db")


# what follows runs the store in processes of its own: they print what they were promised, and end badly
WRITER = """
import sys
from pathlib import Path
from app.chats.records import Reply, Turn
from app.chats.store import ChatStore
store = ChatStore(Path(sys.argv[1]))
chats = [chat.id for chat in store.chats()] or [store.fresh("m", "", "").id]
leaf, number = store.chat(chats[0]).leaf, int(sys.argv[2])
while True:
    leaf = store.tree.begin(chats[0], leaf, Turn(leaf, f"q{number} " * 40), title="t", models=["m"])[0]
    print("q", number, flush=True)
    store.tree.save_reply(leaf, Reply("half"))
    store.tree.save_reply(leaf, Reply(f"a{number} " * 40, tuple(range(200)), "tok", "stop"))
    print("a", number, flush=True)
    number += 1
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def promised(lines: list[str]) -> tuple[set[str], set[str]]:
    """The numbers of the questions and answers that were said to be kept."""
    whole = [line.split() for line in lines if line.endswith("\n")]
    return {n for kind, n in whole if kind == "q"}, {n for kind, n in whole if kind == "a"}


@POSIX
def test_kill_9_loses_nothing_that_was_promised(tmp_path: Path) -> None:
    rng, path, number = random.Random(0), tmp_path / "chats.db", 0
    questions: set[str] = set()
    answers: set[str] = set()
    for _ in range(8):
        writer = start(WRITER, path, number)
        assert writer.stdout
        lines = [writer.stdout.readline() for _ in range(rng.randrange(1, 60))]
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        more_questions, more_answers = promised(lines)
        questions |= more_questions
        answers |= more_answers
        number += 1000
    store = ChatStore(path)
    assert not store.notice
    branch = store.tree.open(store.chats()[0].id).branch
    kept_questions = {message.text.split()[0][1:] for message in branch if message.role == "user"}
    kept_answers = {message.text.split()[0][1:] for message in branch if message.reply.finish == "stop"}
    assert questions <= kept_questions and answers <= kept_answers
    assert len(answers) > 50
    assert store._file.transact(lambda db: db.execute("PRAGMA integrity_check").fetchone()[0]) == "ok"
    store.close()


FULL = """
import resource, sys
from pathlib import Path
from app.errors import StoreError
from app.chats.records import Reply, Turn
from app.chats.store import ChatStore

for limit in map(int, sys.argv[2:]):
    path = Path(sys.argv[1]) / f"{limit}.db"
    store = ChatStore(path)
    chat, leaf, kept = store.fresh("m", "", "").id, None, 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        while True:
            leaf = store.tree.begin(chat, leaf, Turn(leaf, "q" * 900), title="t", models=["m"])[0]
            store.tree.save_reply(leaf, Reply("a" * 900, (), "", "stop"))
            kept += 1
    except StoreError as error:
        assert "could not be saved" in str(error), error
    old = [message.text for message in store.tree.open(chat).branch]  # can still be read
    assert len(old) // 2 >= kept > 0, (limit, len(old), kept)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    leaf = store.chat(chat).leaf
    store.tree.begin(chat, leaf, Turn(leaf, "room again"), title="t", models=["m"])
    assert store.tree.open(chat).branch[-2].text == "room again"
    store.close()
    again = ChatStore(path)
    assert not again.notice and len(again.tree.open(chat).branch) == len(old) + 2
    again.close()
print("done")
"""


@POSIX
def test_a_full_disk_is_said_and_got_over(tmp_path: Path) -> None:
    writer = start(FULL, tmp_path, *range(300_000, 400_000, 9_000))
    said, complaints = writer.communicate(timeout=60)
    assert said == "done\n", complaints


@POSIX
def test_a_full_file_system(tmp_path: Path) -> None:
    """A real one, where this user may make one; elsewhere the test above stands for it."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "octavo", str(tmp_path)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        return
    try:
        store = ChatStore(tmp_path / "chats.db")
        chat, leaf, kept = store.fresh("m", "", "").id, None, 0
        with pytest.raises(StoreError, match=r"disk is full \([\d.]+ \w+ free\)"):
            while True:
                leaf = store.tree.begin(chat, leaf, Turn(leaf, "q" * 9000), title="t", models=["m"])[0]
                kept += 1
        assert len(store.tree.open(chat).branch) == 2 * kept > 0
        subprocess.run(["mount", "-o", "remount,size=4m", tmp_path], check=True)
        leaf = store.chat(chat).leaf
        store.tree.begin(chat, leaf, Turn(leaf, "room again"), title="t", models=["m"])
        store.close()
        again = ChatStore(tmp_path / "chats.db")
        assert len(again.tree.open(chat).branch) == 2 * kept + 2
        again.close()
    finally:
        subprocess.run(["umount", tmp_path], check=True)


HOLDER = """
import sqlite3, sys, time
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
time.sleep(0.3)
other.execute("ROLLBACK")
"""


@pytest.mark.parametrize("write", ["rename", "fresh", "begin_turn"])
def test_what_another_program_locks_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    monkeypatch.setattr(database, "PRAGMAS", (*database.PRAGMAS, "busy_timeout=60000"))
    store = ChatStore(tmp_path / "chats.db")
    chat = store.fresh("model", "", "").id
    holder = start(HOLDER, tmp_path / "chats.db")
    assert holder.stdout and holder.stdout.readline() == "locked\n"
    assert [each.id for each in store.chats()] == [chat]  # at once
    calls = {
        "rename": lambda: store.change(chat, title="t"),
        "fresh": lambda: store.fresh("model", "", ""),
        "begin_turn": lambda: store.tree.begin(chat, None, Turn(None, "q"), title="t", models=["model"])[0],
    }
    calls[write]()
    assert holder.communicate(timeout=60) == ("", "")
    store.close()


def test_a_file_that_another_program_has_locked(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    store = ChatStore(path)
    chat = store.fresh("model", "", "")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"Another program works with .*chats\.db\. Close it and try again"):
        store.change(chat.id, title="a title")
    assert [each.id for each in store.chats()] == [chat.id]
    other.execute("ROLLBACK")
    other.close()
    store.change(chat.id, title="a title")
    assert [each.title for each in store.chats()] == ["a title"]
    store.close()
