"""Opening the page: the browser gets a private file, and the one-time link stands in no list of processes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.access import browser
from app.settings import Home
from installer import browser as for_tests

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
# pywebview, as far as it is used here
WEBVIEW = """
def create_window(title, url, width, height):
    print(title, url)
def start(private_mode, storage_path):
    print(private_mode, storage_path)
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


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One whose only programs are in this folder, and no browser in any of the places."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(browser, "PLACES", {})
    monkeypatch.setattr(browser, "SNAP", tmp_path / "no snap here")
    return tmp_path


def program(machine: Path, name: str, text: str = "") -> Path:
    path = machine / "bin" / name
    path.write_text(text)
    path.chmod(0o700)
    return path


def test_browsers_that_can_open_a_window(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert browser.find_window_browser() == ""
    edge, chromium = program(machine, "microsoft-edge"), machine / "Chromium" / "chrome.exe"
    assert browser.find_window_browser("win32") == str(edge)
    monkeypatch.setattr(browser, "NAMES", ())
    monkeypatch.setenv("SOMEWHERE", str(machine))
    places = ("$SOMEWHERE/Google/chrome.exe", "$SOMEWHERE/Chromium/chrome.exe")
    monkeypatch.setattr(browser, "PLACES", {"win32": places})
    assert browser.find_window_browser("win32") == browser.find_window_browser("linux") == ""
    chromium.parent.mkdir()
    chromium.touch()
    assert browser.find_window_browser("win32") == str(chromium)


def test_every_browser_of_the_tests_can_open_a_window() -> None:
    assert set(for_tests.NAMES) <= set(browser.NAMES)
    for system, places in for_tests.PLACES.items():
        assert {place.lower() for place in places} <= {place.lower() for place in browser.PLACES[system]}


def test_without_a_browser_pywebview_then_nothing(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert browser.window_command("file:///a", machine) == []
    (machine / "webview.py").write_text(WEBVIEW)
    monkeypatch.syspath_prepend(machine)
    command = browser.window_command("file:///a", machine / "storage")
    assert command[-2:] == ["file:///a", str(machine / "storage")]
    environ = {**os.environ, "PYTHONPATH": str(machine)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Octavo", "file:///a", "False", str(machine / "storage")]
    chromium = program(machine, "chromium")
    assert browser.window_command("file:///a", machine) == [str(chromium), "--app=file:///a"]


@pytest.mark.skipif(os.name == "nt", reason="the browser is a shell's script")
def test_a_window_gets_the_private_file_too(machine: Path) -> None:
    """A browser that notes what it was asked and every process's words, as above."""
    (machine / "browser.py").write_text(BROWSER)
    words = shlex.join([sys.executable, str(machine / "browser.py"), str(machine / "asked")])
    program(machine, "google-chrome", f'#!/bin/sh\nexec {words} "$1"\n')
    browser.open_page(Home(machine), LINK, window=True)
    opened, in_a_process_list = asked(machine / "asked")
    assert opened == f"--app={(machine / 'enter.html').as_uri()}" and in_a_process_list == "False"
    assert (machine / "enter.html").stat().st_mode & 0o777 == 0o600
