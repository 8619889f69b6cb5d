"""Setting up for real: virtual environment, pip, restart, repair; no network, a tiny program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from installer.environment import Environment, Stamp, _stamp_there, prepare
from installer.errors import SetupError
from tests.installer import checkout as tiny

READY = "asked: run --port 1 --no-browser"


@dataclass(frozen=True, slots=True)
class Story:
    """A checkout, and what its first installers wrote: one killed half way, then two at the same time."""

    checkout: tiny.Checkout
    killed: int  # exit code
    mark_stayed: bool
    both: list[tuple[int, str]]  # exit code, all that was written


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Told once: every virtual environment takes seconds."""
    made = tiny.make(tmp_path_factory.mktemp("set up"))
    env = Environment(made.root)
    with made.start("run") as first:
        assert first.stdout is not None
        while first.stdout.readline() != "  Which PyTorch ...\n":
            continue
        first.terminate()
    mark_stayed = env.mark.exists() and not env.stamp.exists()
    (env.folder / "half").mkdir()
    started = [made.start("run", "--port", "1", "--no-browser") for _ in range(2)]
    written = [process.communicate()[0] for process in started]
    both = [(process.returncode, text) for process, text in zip(started, written, strict=True)]
    return Story(made, first.returncode, mark_stayed, both)


@pytest.fixture
def checkout(story: Story) -> tiny.Checkout:
    """Set up by then."""
    return story.checkout


def test_what_was_interrupted_is_made_anew(story: Story) -> None:
    env = Environment(story.checkout.root)
    assert story.killed not in (0, 7) and story.mark_stayed
    (maker,) = [text for _, text in story.both if "Virtual environment: Python 3." in text]
    assert "nothing to download, 1 file on this machine" in maker
    assert not (env.folder / "half").exists() and not env.mark.exists()


def test_two_at_once_make_it_once_and_both_start(story: Story) -> None:
    assert story.checkout.log.count("--editable") == 1
    assert [(code, READY in text) for code, text in story.both] == [(7, True), (7, True)]


def test_the_starter_model_is_there(checkout: tiny.Checkout) -> None:
    assert Path(checkout.environ["OCTAVO_HOME"], "models/smollm2-135m/tiny.gguf").is_file()


def test_the_second_start_does_nothing_but_start(checkout: tiny.Checkout) -> None:
    before = checkout.log
    assert checkout.run("run", "--port", "1", "--no-browser") == (7, f"{READY}\n")
    assert checkout.log == before


def test_an_update_that_fails_says_what_to_do_and_the_next_start_makes_good(checkout: tiny.Checkout) -> None:
    project, env = checkout.root / "pyproject.toml", Environment(checkout.root)
    before = project.read_text()
    project.write_text(before.replace("requires = []", 'requires = ["not-on-this-index"]'))
    code, written = checkout.run("run")
    assert code == 1
    assert "The package index has no file that fits" in written
    assert "asked" not in written
    assert not env.mark.exists()
    project.write_text(f'{before}description = "new"\n')
    code, written = checkout.run("run")
    assert code == 7
    assert "Virtual environment" not in written
    assert "installed already" in written and "Octavo's packages: done" in written


def test_no_room_for_the_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(tiny.PYPROJECT)
    (tmp_path / ".venv").write_text("a file where the folder should be")
    with pytest.raises(SetupError, match=r"\.venv cannot be written"):
        prepare(tmp_path)


def test_a_python_without_venv_is_told_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(tiny.PYPROJECT)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"sudo apt install python3\.\d+-venv"):
        prepare(tmp_path)


STAMP = Stamp("abc", "/checkout", "3.12", "", ("test",))


@pytest.mark.parametrize(
    ("asked", "will_do"),
    [
        (Stamp("abc", "/checkout", "3.12", ""), True),
        (Stamp("abc", "/checkout", "3.12", "", ("test",)), True),
        (Stamp("abc", "/checkout", "3.12", "", ("other",)), False),
        (Stamp("new", "/checkout", "3.12", ""), False),
        (Stamp("abc", "/moved", "3.12", ""), False),
        (Stamp("abc", "/checkout", "3.13", ""), False),
        (Stamp("abc", "/checkout", "3.12", "/dev/nvidiactl"), False),
    ],
)
def test_a_stamp_covers(asked: Stamp, will_do: bool) -> None:
    assert STAMP.covers(asked) is will_do


@pytest.mark.parametrize("damage", ["", "{", "[]", json.dumps({"project": "abc"})])
def test_a_damaged_stamp_counts_as_none(tmp_path: Path, damage: str) -> None:
    env = Environment(tmp_path)
    env.folder.mkdir()
    env.stamp.write_text(damage)
    assert _stamp_there(env) is None
