"""The linter, the formatter and the type checker have nothing to say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.source_tree import ROOT


@pytest.mark.parametrize("words", ["ruff check --quiet .", "ruff format --check --quiet .", "mypy"])
def test_nothing_to_say(words: str) -> None:
    done = subprocess.run([sys.executable, "-m", *words.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
