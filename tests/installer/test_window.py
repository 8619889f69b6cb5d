"""A click in the menu, as processes: after a crash a new start, after too many a page that says so."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from app.chats.store import ChatStore
from app.settings import Home
from installer import window as window_module
from installer.launch import CRASHES
from tests.app.chats.test_store import new_chat, say, texts
from tests.app.fakes import PATIENCE_S, make_home
from tests.source_tree import ROOT
from tests.ui.test_main import free_port

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no kill -9")
T = TypeVar("T")
# Notes its number and words, and waits to be killed; or says why it can't go on.
PROGRAM = """
import os, signal, sys
if os.environ["PORT"] == "taken":
    print("octavo: Port 8642 can't be used.", file=sys.stderr)
    sys.exit(1)
print("http://127.0.0.1/enter?t=secret", os.environ.get("OCTAVO_HOME"), flush=True)
print("a warning", file=sys.stderr, flush=True)
with open("started", "a") as file:
    print(os.getpid(), *sys.argv[1:], file=file)
signal.pause()
"""
# A browser as far as Octavo knows: it opens the file, goes where that leads, and notes what it got.
BROWSER = """
import html, re, sys, urllib.parse, urllib.request
page = open(urllib.parse.unquote(sys.argv[2].removeprefix("--app=file://"))).read()
link = html.unescape(re.search('url=([^"]+)', page)[1])
opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
with opener.open(link) as reply, open(sys.argv[1], "a") as visits:
    print(reply.status, b"octavoWords" in reply.read(), file=visits)
"""


def wait_for(ask: Callable[[], T | None]) -> T:
    """Its first answer."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := ask()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return answer


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


@contextmanager
def click(root: Path, **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """What the menu entry runs."""
    command, env = [sys.executable, "-m", "installer.window"], {**os.environ, **environ}
    with subprocess.Popen(command, cwd=root, env=env, stdin=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tiny program with the real installer; $BROWSER is what shows its trouble."""
    shutil.copytree(ROOT / "installer", tmp_path / "installer")
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "__init__.py").touch()
    (tmp_path / "ui" / "__main__.py").write_text(PROGRAM)
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path / "hömé"))
    monkeypatch.setenv("BROWSER", f"sh -c {shlex.quote(f'echo $0 > {tmp_path}/shown')} %s")
    return tmp_path


def test_it_is_started_again_until_it_crashed_too_often(tiny: Path) -> None:
    with click(tiny, PORT="free") as window:
        for number in range(CRASHES + 1):
            text = wait_for(lambda n=number: (started(tiny)[n:] or [""])[0])  # type: ignore[misc]
            pid, *words = text.split()
            assert words == ["run", "--window"] and window.poll() is None
            os.kill(int(pid), signal.SIGKILL)
        assert window.wait(PATIENCE_S) == 128 + signal.SIGKILL
    page, log = tiny / "hömé" / "trouble.html", tiny / "hömé" / "window.log"
    assert (
        wait_for(lambda: (tiny / "shown").exists()) and (tiny / "shown").read_text().strip() == page.as_uri()
    )
    assert f"It crashed {CRASHES + 1} times within 10 minutes" in page.read_text()
    assert log.read_text().count("a warning\n") == CRASHES + 1 and "secret" not in log.read_text()
    assert {path.stat().st_mode & 0o777 for path in (page, log)} == {0o600}


def started(root: Path) -> list[str]:
    path = root / "started"
    return path.read_text().splitlines() if path.exists() else []


def test_a_program_that_says_why_it_cannot_is_not_started_again(tiny: Path) -> None:
    (tiny / "hömé").mkdir()
    (tiny / "hömé" / "window.log").write_text("what was before\n")
    with click(tiny, PORT="taken") as window:
        assert window.wait(PATIENCE_S) == 1
    text = (tiny / "hömé" / "trouble.html").read_text()
    assert "Port 8642 can&#x27;t be used." in text and "what was before" not in text


def test_told_to_end_it_ends_without_a_word(tiny: Path) -> None:
    with click(tiny, PORT="free") as window:
        wait_for(lambda: started(tiny))
        window.terminate()
        assert window.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert not (tiny / "hömé" / "trouble.html").exists()


def test_a_later_start_opens_a_window_only_where_the_old_one_looks_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path))
    how = list[str]()

    def several_times(command: list[str], root: Path, again: Callable[[], list[str]], *rest: object) -> int:
        how.append(command[-1])
        for text in ("", "port = 8700", "port = 8700", "port = ?", ""):
            (tmp_path / "settings.toml").write_text(text)
            how.append(again()[-1])
        return 0

    monkeypatch.setattr(window_module, "keep_running", several_times)
    assert window_module.main() == 0
    window, none = "--window", "--no-browser"
    assert how == [window, none, window, none, window, none]


def running(home: Home) -> tuple[int, int] | None:
    """(process, port) of the one whose page can be used."""
    try:
        note = json.loads((home / "instance.json").read_text())
        return note["pid"], note["port"]
    except (OSError, ValueError):
        return None


def test_the_real_program_comes_back_with_its_chats(tmp_path: Path) -> None:
    """A click, a crash, a second click, an end."""
    home, visits = make_home(tmp_path / "home"), tmp_path / "visits"
    (home / "settings.toml").write_text(f"port = {free_port()}\n")
    store = ChatStore(home / "chats.db")
    chat = new_chat(store)
    say(store, chat, "What is kept?", "This.")
    store.close()
    (tmp_path / "browser.py").write_text(BROWSER)
    words = map(shlex.quote, (sys.executable, str(tmp_path / "browser.py"), str(visits)))
    program(tmp_path / "bin" / "google-chrome", f'exec {" ".join(words)} "$@"')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    env = {"OCTAVO_HOME": str(home.path), "PATH": path, "BROWSER": "true %s"}
    with click(ROOT, **env) as window:
        wait_for(visits.exists)
        first, port = wait_for(lambda: running(home))
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: (running(home) or (first,))[0] != first)
        before = visits.read_text().count("200 True")
        with click(ROOT, **env) as second:
            assert second.wait(PATIENCE_S) == 0
        wait_for(lambda: visits.read_text().count("200 True") > before)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/")
        quit = [sys.executable, "-m", "ui", "quit"]
        said = subprocess.run(quit, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True)
        assert (said.stdout, said.stderr) == ("Octavo has ended.\n", "")
        assert window.wait(PATIENCE_S) == 0
    store = ChatStore(home / "chats.db")
    assert texts(store, chat) == ["What is kept?", "This."]
    store.close()
