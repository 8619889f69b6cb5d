"""What nobody foresaw: one sentence for the person, the details in the home folder's log, nothing else."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.faults import explain, keep_log
from tests.source_tree import ROOT

SENTENCE = "The model could not be loaded; this is a fault in Octavo. The details are in {}."
# Runs a command in which the loader has a bug.
BUGGY = """
import sys
import app.memory.runtime, engine
def load(*_, **__):
    raise TypeError("an odd thing")
engine.LLM = type("LLM", (), {"load": staticmethod(load)})
from app.commands.commands import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """The log of this process for one test."""
    before = logging.getLogger().handlers[:]
    keep_log(tmp_path / "octavo.log")
    yield tmp_path / "octavo.log"
    for handler in set(logging.getLogger().handlers) - set(before):
        logging.getLogger().removeHandler(handler)
        handler.close()


def test_the_sentence_names_the_log_and_the_log_has_the_rest(log: Path) -> None:
    assert not log.exists()
    assert explain("The model could not be loaded", TypeError("odd")) == SENTENCE.format(log)
    assert "Traceback" not in log.read_text() and "TypeError: odd" in log.read_text()
    keep_log(log)
    logging.getLogger("some.library").warning("once")
    assert log.read_text().count("once") == 1


def test_a_log_that_can_t_be_written_disturbs_nobody(
    log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log.mkdir()
    assert explain("It failed", TypeError("odd")).startswith("It failed; this is a fault in Octavo.")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "stream"), [(("chat", "hello"), "err"), (("serve", "--port", "0"), "err"), (("doctor",), "out")]
)
def test_a_loader_with_a_bug(tmp_path: Path, words: tuple[str, ...], stream: str) -> None:
    model = tmp_path / "x.gguf"
    model.write_bytes(b"GGUF")
    done = subprocess.run(
        [sys.executable, "-c", BUGGY, *words, "--model", str(model)],
        cwd=ROOT,
        env={**os.environ, "OCTAVO_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    said = {"out": done.stdout, "err": done.stderr}
    log = tmp_path / "octavo.log"
    assert done.returncode == 1 and SENTENCE.format(log) in said.pop(stream).splitlines()[0]
    assert said.popitem()[1] == "" and "TypeError" not in done.stdout + done.stderr
    assert "an odd thing" in log.read_text() and "Traceback" in log.read_text()
    assert os.name == "nt" or log.stat().st_mode & 0o77 == 0
