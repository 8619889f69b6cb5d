"""What the installer says, and in which units."""

from __future__ import annotations

import io
import sys

import pytest

from installer import console
from installer.console import Step, duration, size


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "2 kB"), (98_362_432, "98 MB"), (2_900_000_000, "2.9 GB")],
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (41, "41 s"), (185, "3 min 05 s")])
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_step_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with Step("PyTorch") as step:
        step.note("downloading")
        step.done("all is well")
    assert capsys.readouterr().out == "  PyTorch ...\n  PyTorch: all is well, done in 0 s\n"


def test_a_step_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), Step("PyTorch") as step:
        step.done("all is well")
        raise ValueError
    assert capsys.readouterr().out == "  PyTorch ...\n  PyTorch: stopped after 0 s\n"


class Terminal(io.StringIO):
    """Says of itself that it is one."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_line_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(console, "REDRAW_S", 0.001)
    with Step("PyTorch") as step:
        step.note("downloading")
        while "downloading" not in sys.stdout.getvalue():  # type: ignore[attr-defined]
            step.ended.wait(0.001)
    written = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "\r\x1b[K  PyTorch, 0 s: downloading" in written
    assert written.endswith("\r\x1b[K  PyTorch: done in 0 s\n")
