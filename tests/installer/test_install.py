"""Installing, upgrading, repairing, and being stopped at any moment, in a person's own folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from installer import install as module, program
from installer.environment import Environment
from installer.errors import SetupError
from installer.manifest import read_manifest
from tests.installer.conftest import Person, set_up
from tests.source_tree import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the person's system is a Linux")
# What an installer knows of a program that runs: it holds the data folder until it is asked.
RUNNING = """
import sys, time
from pathlib import Path
from app.access.instance import Instance
from app.settings import Home
instance = Instance(Home(Path(sys.argv[1])))
print("running", flush=True)
while not instance.asked_to_end:
    time.sleep(0.01)
instance.close()
"""


def versions(person: Person) -> list[str]:
    return sorted(path.name for path in person.places.program.iterdir() if path.is_dir())


def test_what_lies_where(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    assert person.install() == 0
    (version,) = versions(person)
    assert version.startswith("0.1.0-")
    assert person.octavo("doctor") == "one: doctor"
    top = {path for path in person.owns() if path.count("/") < 4 and "octavo-program/0" not in path}
    assert top == {
        ".local",
        ".local/bin",
        ".local/bin/octavo",
        ".local/share",
        ".local/share/applications",
        ".local/share/applications/octavo.desktop",
        ".local/share/octavo-program",
        ".local/share/octavo-program/installed.json",
        ".local/share/octavo-program/installer.lock",
    }
    assert "PATH" not in capsys.readouterr().out


def test_a_folder_that_is_not_in_path_is_said(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    person.install()
    assert f"{person.places.word.parent} is not in this terminal's PATH" in capsys.readouterr().out


def test_the_same_again_changes_nothing(person: Person) -> None:
    person.install()
    before = person.owns()
    person.install()
    assert person.owns() == before


def test_a_damaged_program_is_repaired(person: Person) -> None:
    person.install()
    (person.places.program / versions(person)[0] / "ui" / "__main__.py").write_text("nonsense")
    person.places.word.unlink()
    person.install()
    assert person.octavo("run") == "one: run"


def test_an_upgrade_keeps_data_and_leaves_no_old_program(
    person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    person.install()
    (before,) = versions(person)
    (person.data / "models").mkdir(parents=True)
    (person.data / "chats.db").write_text("chats")
    person.write("two")
    person.install()
    assert person.octavo("run") == "two: run" and len(versions(person)) == 1
    said = capsys.readouterr().out
    steps = ("Copying the program to", "Making the menu entry", f"Removing the version before, {before}")
    assert all(f"  {step}" in said for step in steps)
    assert (person.data / "chats.db").read_text() == "chats"


def test_a_version_that_does_not_work_leaves_the_old_one(person: Person) -> None:
    person.install()
    person.write("two", broken=True)
    with pytest.raises(SetupError, match="nothing was changed:\nit does not answer"):
        person.install()
    assert person.octavo("run") == "one: run"
    person.write("three")
    person.install()
    assert person.octavo("run") == "three: run" and len(versions(person)) == 1


def test_a_running_one_is_asked_to_end_when_the_new_one_is_ready(person: Person) -> None:
    person.install()
    person.write("two")
    person.data.mkdir(parents=True)
    command = [sys.executable, "-c", RUNNING, str(person.data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdout.readline() == "running\n"
        person.install()
        assert running.wait(20) == 0
    assert person.octavo("run") == "two: run"
    assert not (person.data / "instance.quit").exists()


def test_without_a_starter_model_the_program_is_tried_all_the_same(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(root: Path, python: Path) -> None:
        raise SetupError("The starter model could not be fetched.")

    monkeypatch.setattr(module, "ensure_starter", missing)
    person.write("one", broken=True)  # only where it is asked to chat
    person.install()
    assert "installed without it" in capsys.readouterr().out


def test_a_chosen_data_folder_stays_chosen(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_HOME", str(person.folder / "my books"))
    person.install()
    monkeypatch.delenv("OCTAVO_HOME")
    assert person.octavo("run") == f"one: run {person.folder / 'my books'}"
    monkeypatch.setenv("OCTAVO_HOME", "elsewhere")
    assert person.octavo("run") == "one: run elsewhere"
    monkeypatch.delenv("OCTAVO_HOME")
    person.write("two")
    person.install()
    monkeypatch.delenv("OCTAVO_HOME")
    assert person.octavo("run") == f"two: run {person.folder / 'my books'}"


def test_another_program_s_files_stay(person: Person, capsys: pytest.CaptureFixture[str]) -> None:
    person.places.word.parent.mkdir(parents=True)
    person.places.word.write_text("the music program")
    person.install()
    assert person.places.word.read_text() == "the music program"
    assert "is there already and is not from this installer" in capsys.readouterr().out
    manifest = read_manifest(person.places.manifest)
    assert manifest and manifest.files == (str(person.places.menu),)


def test_what_cannot_be_written_is_a_sentence(person: Person) -> None:
    (person.folder / ".local").write_text("a file where the folder should be")
    with pytest.raises(SetupError, match=r"\.local.* can't be used: "):
        person.install()


def test_stopped_anywhere_the_old_or_the_new_one_works(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file comes by os.replace: it is stopped while it copies, then at each later file in turn."""
    person.install()
    person.write("two")
    replace, left = os.replace, [0]

    def stop_in_time(source: Path, target: Path) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        replace(source, target)

    monkeypatch.setattr(program.os, "replace", stop_in_time)
    seen = []
    for allowed in (0, 3, 1000, *range(10)):
        left[0] = allowed
        if allowed == 1000:
            module.copy_program(person.root, person.places.program / module.folder_name(person.root))
            continue
        try:
            person.install()
            break
        except KeyboardInterrupt:
            seen.append(person.octavo("run"))
    assert seen == ["one: run"] * 5 + ["two: run"] * 2
    assert person.octavo("run") == "two: run" and len(versions(person)) == 1


def test_a_download_that_was_stopped_goes_on(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(root: Path, extras: tuple[str, ...] = ()) -> Environment:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "prepare", stop)
    with pytest.raises(KeyboardInterrupt):
        person.install()
    manifest = read_manifest(person.places.manifest)
    assert manifest and not manifest.version and not person.places.word.exists()
    monkeypatch.setattr(module, "prepare", set_up)
    person.install()
    assert person.octavo("run") == "one: run"
