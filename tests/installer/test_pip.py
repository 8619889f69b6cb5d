"""pip's lines as progress, its failures as sentences."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from installer.console import Step
from installer.pip import Pip, PipFailed, explain, progress


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("Collecting numpy>=2.1", "", "looking for numpy>=2.1"),
        (
            "  Downloading torch-2.13.0-cp311-x.whl (190.1 MB)",
            "looking for torch",
            "downloading torch (190.1 MB)",
        ),
        ("Downloading https://host/x/pip-26.3-py3-none-any.whl (1.8 MB)", "", "downloading pip (1.8 MB)"),
        (
            "Progress 52000000 of 190000000",
            "downloading torch (190 MB)",
            "downloading torch (52 MB of 190 MB)",
        ),
        ("Progress 99 of 0", "downloading torch", "downloading torch"),
        ("Installing collected packages: a, b, c", "", "installing 3 packages"),
        ("Installing collected packages: a", "", "installing 1 package"),
        ("  Preparing metadata (pyproject.toml): started", "looking for x", "looking for x"),
    ],
)
def test_progress(line: str, before: str, after: str) -> None:
    assert progress(line, before) == after


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk is full",
        ),
        ("WARNING: Retrying ... [Errno -3] Temporary failure in name resolution", "cannot be reached"),
        ("ProxyError('Cannot connect to proxy.')", "HTTPS_PROXY"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "PIP_CERT"),
        ("PermissionError: [Errno 13] Permission denied: '/x'", "where you may write"),
        ("no such option: --report", "too old"),
        ("ERROR: No matching distribution found for torch==2.13.*", "no file that fits"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "Start again"),
        ("something new", "pip failed."),
    ],
)
def test_explain(output: str, sentence: str) -> None:
    assert sentence in explain(output)


@pytest.fixture
def pip(tmp_path: Path) -> Pip:
    return Pip(Path(sys.executable), tmp_path / "log")


def test_a_failure_of_the_real_one(pip: Pip) -> None:
    with pytest.raises(PipFailed, match="no file that fits") as caught:
        pip("install", "--no-index", "--dry-run", "no-such-package-anywhere")
    assert not caught.value.touched
    assert str(pip.log) in str(caught.value)
    assert "no-such-package-anywhere" in pip.log.read_text()


@pytest.mark.parametrize(
    ("folder", "version"),
    [
        ("lib/python3.12/site-packages/pip-24.1.2.dist-info", (24, 1)),
        ("Lib/site-packages/pip-26.3.dist-info", (26, 3)),
        ("lib/python3.12/site-packages/pip_tools-7.0.dist-info", (0,)),
    ],
)
def test_its_version(tmp_path: Path, folder: str, version: tuple[int, ...]) -> None:
    (tmp_path / folder).mkdir(parents=True)
    assert Pip(tmp_path / "bin" / "python", tmp_path / "log").version() == version


@pytest.mark.skipif(os.name == "nt", reason="it takes a POSIX shell")
def test_a_pip_that_is_stopped_leaves_nothing_behind(tmp_path: Path) -> None:
    python = tmp_path / "python"  # one whose pip unpacks something and is never done
    python.write_text('#!/bin/sh\nmkdir "$TMPDIR/pip-unpack-1"\necho "Collecting x"\nexec sleep 600\n')
    python.chmod(0o755)
    pip = Pip(python, tmp_path / "log")

    class Stop(Step):
        def note(self, news: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pip("install", "x", step=Stop("x"))
    assert {path.name for path in tmp_path.iterdir()} == {"python", "log"}


def test_nothing_to_fetch_for_what_is_there(pip: Pip) -> None:
    assert pip.plan("--no-index", "pytest") == []
