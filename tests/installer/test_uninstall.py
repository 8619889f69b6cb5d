"""Removing exactly what was installed, and data only on request; what was stopped half way goes on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from installer import uninstall as module
from installer.errors import SetupError
from installer.manifest import read_manifest
from installer.uninstall import uninstall, used
from tests.installer.conftest import Person

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the person's system is a Linux")
DATA = {f".local/share/octavo{rest}" for rest in ("", "/models", "/models/tiny.gguf", "/chats.db")}


@pytest.fixture
def installed(person: Person) -> Person:
    """With some data."""
    person.install()
    (person.data / "models").mkdir(parents=True)
    (person.data / "models" / "tiny.gguf").write_bytes(bytes(5_000_000))
    (person.data / "chats.db").write_text("chats")
    return person


def test_data_stays_where_nobody_can_be_asked(installed: Person, capsys: pytest.CaptureFixture[str]) -> None:
    person = installed
    assert uninstall([]) == 0
    assert person.owns() == {".local", ".local/share", *DATA}
    assert f"Your data stays in {person.data}" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--data", "delete"], ["--data", "keep"]])
def test_data_goes_if_it_is_said(
    installed: Person, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    uninstall(options)
    assert installed.owns() == (set() if "delete" in options else {".local", ".local/share", *DATA})
    said = capsys.readouterr().out
    assert f"  Removing the program from {installed.places.program}: done in" in said
    data_goes = f"  Removing your chats, models and settings from {installed.data}: done in" in said
    assert data_goes == ("delete" in options)
    freed = [line for line in said.splitlines() if line.endswith(" freed.")]
    assert float(freed[0].split()[0]) >= (5 if "delete" in options else 0)


def test_what_others_put_beside_it_stays(installed: Person) -> None:
    other = installed.places.menu.with_name("music.desktop")
    other.touch()
    uninstall(["--data", "delete"])
    assert installed.owns() == {
        str(path.relative_to(installed.folder)) for path in (other, *other.parents[:3])
    }


def asked(answers: str, *command: str | Path) -> str:
    """What a person sees who answers in a terminal."""
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        assert process.stdout is not None
        seen = process.stdout.read()
        os.close(ours)
    assert process.returncode == 0
    return seen


@pytest.mark.parametrize(
    ("answers", "kept"), [("\n", True), ("keep\n", True), ("?\nK\n", True), ("d\n", False), ("\4", True)]
)
def test_in_a_terminal_it_asks(installed: Person, answers: str, kept: bool) -> None:
    seen = asked(answers, installed.places.word, "uninstall")
    assert f"Your chats, models and settings lie in {installed.data}, 5 MB." in seen
    assert seen.count("[k]eep them") == 1 + answers.count("?")
    assert installed.owns() == ({".local", ".local/share", *DATA} if kept else set())


def test_twice_and_never_installed(installed: Person, capsys: pytest.CaptureFixture[str]) -> None:
    assert uninstall([]) == uninstall([]) == 0
    assert "Octavo is not installed for this user." in capsys.readouterr().out


def test_a_data_folder_of_the_person_s_own_choice_is_not_deleted(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = person.folder / "everything"
    chosen.mkdir()
    (chosen / "letters").touch()
    monkeypatch.setenv("OCTAVO_HOME", str(chosen))
    person.install()
    monkeypatch.delenv("OCTAVO_HOME")
    uninstall(["--data", "delete"])
    monkeypatch.delenv("OCTAVO_HOME")
    assert person.owns() == {"everything", "everything/letters"}
    assert f"You chose the folder {chosen} yourself" in capsys.readouterr().out


def test_a_linked_data_folder_is_not_followed(person: Person) -> None:
    person.install()
    (person.folder / "disk").mkdir()
    person.data.symlink_to(person.folder / "disk")
    uninstall(["--data", "delete"])
    assert person.owns() == {".local", ".local/share", ".local/share/octavo", "disk"}


def test_stopped_anywhere_it_goes_on(installed: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, done = module._remove, list[Path]()

    def stop(path: Path) -> int:
        if path not in done:  # one thing more each time
            done.append(path)
            raise KeyboardInterrupt
        return remove(path)

    monkeypatch.setattr(module, "_remove", stop)
    stopped = 0
    while installed.places.program.exists():
        try:
            uninstall(["--data", "delete"])
        except KeyboardInterrupt:
            stopped += 1
    assert stopped > 5 and installed.owns() == set()


def test_a_first_installation_that_was_stopped_goes_as_a_whole(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.write("one", broken=True)
    with pytest.raises(SetupError):
        person.install()
    assert uninstall([]) == 0 and person.owns() == set()


def test_what_a_stopped_installer_left_goes_too(installed: Person) -> None:
    installed.places.word.with_name(".octavo.new").touch()
    uninstall(["--data", "delete"])
    assert installed.owns() == set()


def test_one_that_does_not_end_is_left_alone(installed: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def stays(home: Path) -> None:
        raise SetupError(f"Octavo did not end, it works in {home}.")

    monkeypatch.setattr(module, "end_running", stays)
    before = installed.owns()
    with pytest.raises(SetupError, match="did not end"):
        uninstall(["--data", "delete"])
    assert installed.owns() == before


def test_bytes_that_removing_frees(tmp_path: Path) -> None:
    kept, folder = tmp_path / "kept", tmp_path / "folder"
    folder.mkdir()
    kept.write_bytes(bytes(1000))
    (folder / "own").write_bytes(bytes(10))
    os.link(kept, folder / "second name")
    (folder / "link").symlink_to(kept)
    assert used(folder) == 10 + (folder / "link").lstat().st_size
    assert used(folder / "own") == 10


def test_windows_removes_what_runs_when_it_has_ended(
    installed: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[list[str]]()
    monkeypatch.setattr(module.subprocess, "Popen", lambda command, cwd: started.append(command))
    manifest = read_manifest(installed.places.manifest)
    assert manifest
    module._remove_program(installed.places, manifest, "win32")
    assert installed.places.program.exists() and not installed.places.word.exists()
    module._remove_soon(Path("C:/it's here"))
    assert started[1][-1].endswith("Remove-Item -Recurse -Force -LiteralPath 'C:/it''s here'")
