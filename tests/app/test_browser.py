"""Opening the page: the browser gets a private file, and the one-time link stands in no list of processes."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from app import browser
from app.settings import Home

LINK = "http://127.0.0.1:8642/enter?t=1.the-token"
# what stands for a browser: it notes what it was asked to open, and every process's words at that moment
BROWSER = """
import pathlib, sys
words = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
out = pathlib.Path(sys.argv[1])
draft = out.with_suffix(".draft")
draft.write_text(sys.argv[2] + chr(10) + str(any(b"the-token" in each for each in words)))
draft.replace(out)
"""


def asked(path: Path) -> list[str]:
    """What the browser noted."""
    end = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    return path.read_text().splitlines()


@pytest.mark.skipif(os.name == "nt", reason="Windows chooses its browser another way")
def test_the_browser_is_sent_to_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "SNAP", tmp_path / "no snap here")
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, str(script), str(tmp_path / "asked")]) + " %s")
    browser.open_page(Home(tmp_path), LINK)
    opened, in_a_process_list = asked(tmp_path / "asked")
    assert opened == (tmp_path / "enter.html").as_uri() and in_a_process_list == "False"
    assert f"url={LINK}" in (tmp_path / "enter.html").read_text()
    assert (tmp_path / "enter.html").stat().st_mode & 0o777 == 0o600
    browser.forget_page(Home(tmp_path))
    browser.forget_page(Home(tmp_path))
    assert not (tmp_path / "enter.html").exists()


def test_a_browser_in_a_snap_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "SNAP", tmp_path)
    monkeypatch.setattr(browser.Path, "home", lambda: tmp_path)
    hidden, visible = tmp_path / ".local" / "octavo", tmp_path / "octavo"
    assert browser._file(Home(hidden)) == tmp_path / "octavo-enter.html"
    assert browser._file(Home(visible)) == visible / "enter.html"
