"""The words, the options that go on to pytest, and how each failure ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer import commands
from installer.environment import Environment
from installer.errors import SetupError


def test_help_and_unknown_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main([]) == commands.main(["--help"]) == commands.main(["run", "--help"]) == 0
    assert "--port N, --no-browser" in capsys.readouterr().out
    assert commands.main(["instal"]) == 2
    assert "Unknown command 'instal'. Commands: run, test, install, uninstall." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [(SetupError("The disk is full."), 1, "The disk is full."), (KeyboardInterrupt(), 130, "Stopped.")],
)
def test_failures_end_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failure: BaseException,
    code: int,
    words: str,
) -> None:
    def fail(options: list[str]) -> int:
        raise failure

    monkeypatch.setitem(commands.WORDS, "run", fail)
    assert commands.main(["run"]) == code
    assert words in capsys.readouterr().err


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `test` starts, on a machine where all is set up."""
    command: list[str] = []
    monkeypatch.setattr(commands, "prepare", lambda root, extras=(): Environment(Path("checkout")))
    monkeypatch.setattr(commands, "ensure_starter", lambda root, python: None)
    monkeypatch.setattr(commands, "ensure_browser", lambda: None)
    monkeypatch.setattr(commands, "run_once", lambda words, folder: command.extend(words) or 5)
    monkeypatch.setattr(commands.os, "cpu_count", lambda: 2)
    return command


@pytest.mark.parametrize(
    ("option", "processes"), [("-x", True), ("-s", False), ("-n0", False), ("--co", False)]
)
def test_tests_run_on_two_processes_unless_an_option_speaks_against_it(
    started: list[str], option: str, processes: bool
) -> None:
    assert commands.main(["test", option, "tests/engine"]) == 5
    assert started[-2:] == [option, "tests/engine"]
    assert ("--dist" in started) is processes


def test_run_goes_on_without_a_starter_model(
    started: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(root: Path, python: Path) -> None:
        raise SetupError("The starter model could not be fetched.")

    monkeypatch.setattr(commands, "ensure_starter", missing)
    monkeypatch.setattr(commands, "ensure_compiled", None)  # for what there is not
    monkeypatch.setattr(commands, "keep_running", lambda words, folder: started.extend(words) or 0)
    assert commands.main(["run", "--port", "1"]) == 0
    assert started[1:] == ["-m", "installer.child", "run", "--port", "1"]
    assert "Octavo starts without it." in capsys.readouterr().out
