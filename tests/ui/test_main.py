"""The command `octavo`, as processes: the page, its port, a second start, the words that need no page."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.app.fakes import PATIENCE_S, make_home

ROOT = Path(__file__).resolve().parents[2]
READY = re.compile(r"Octavo is ready: http://127\.0\.0\.1:(\d+)/enter\?t=\S+")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def octavo(home: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ui", *words],
        cwd=ROOT,
        env={**os.environ, "OCTAVO_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def running(home: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The page's process and its link. There is no model: the page works without, and says so."""
    process = octavo(home, "run", "--no-browser", "--port", str(port))
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert READY.fullmatch(line.strip()), process.communicate()[1]
        yield process, line.split(": ", 1)[1].strip()
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def test_the_page_s_life(tmp_path: Path) -> None:
    home, port = make_home(tmp_path), free_port()
    with running(home.path, port) as (process, link):
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(link, timeout=PATIENCE_S) as page:
            assert b"octavoWords" in page.read()
        second = octavo(home.path, "--no-browser", "--port", str(port))  # no word at all: run
        code, out, err = end(second)
        assert (code, err) == (0, "")
        said, there = out.splitlines()
        assert f"already running at http://127.0.0.1:{port}" in said
        with opener.open(there.split(": ", 1)[1], timeout=PATIENCE_S) as page:
            assert page.status == 200
        for option, value in (("--port", str(port + 1)), ("--model", "qwen2.5-coder-1.5b")):
            code, out, err = end(octavo(home.path, "run", "--no-browser", option, value))
            assert (code, out) == (1, "") and "End it" in err
            assert "with the model smollm2-135m@gguf-q4_1 at http" in err
        assert process.stderr is not None
        assert "octavo models pull" in process.stderr.readline()  # what the page says, too
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as stranger:
            stranger.sendall(b"\x16\x03\x01 no request\r\n\r\n")
            assert stranger.recv(99).startswith(b"HTTP/1.1 400")  # what uvicorn says of it goes into the log
        process.send_signal(signal.SIGINT if os.name != "nt" else signal.SIGTERM)
        assert end(process) == (0, "", "")
    assert not (home / "instance.json").exists()


def test_a_port_that_another_program_has(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, out, err = end(octavo(tmp_path, "run", "--no-browser", "--port", str(port)))
    assert code == 1 and out == ""
    assert err.count("\n") == 1 and f"Port {port}" in err and "--port" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "nope"), "There is no model 'nope'."),
        (("--model", "no/such.gguf"), f"There is no file or folder {Path('no/such.gguf').absolute()}."),
        (("--port", "99999999"), "port is 99999999; it must lie between 1 and 65535."),
    ],
)
def test_what_can_t_be_is_said_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, out, err = end(octavo(tmp_path, "run", "--no-browser", *words))
    assert (code, out) == (1, "") and said in err and err.count("\n") == 1


def test_a_port_that_is_taken_at_the_last_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ui import __main__ as entry, shell

    with socket.socket() as other:

        def too_late(blocks: object, port: int, *rest: object) -> None:
            other.bind(("127.0.0.1", port))
            other.listen()
            raise OSError("Cannot find empty port in range")

        monkeypatch.setattr(shell, "serve", too_late)
        monkeypatch.setattr(signal, "signal", lambda number, handler: None)
        monkeypatch.setenv("OCTAVO_HOME", str(make_home(tmp_path).path))
        assert entry.command(["run", "--no-browser", "--port", str(free_port())]) == 1
    assert "another program uses it" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("key",), ("models", "--json"), ("--version",), ("no-such-word",)])
def test_words_that_need_no_page_load_no_gradio(tmp_path: Path, words: tuple[str, ...]) -> None:
    code = f"""
import sys
from ui.__main__ import command
sys.modules["gradio"] = None  # an import of it would fail
try:
    sys.exit(command({list(words)!r}))
except SystemExit as end:
    print(end.code, "gradio" in sys.modules and sys.modules["gradio"] is not None)
"""
    env = {**os.environ, "OCTAVO_HOME": str(make_home(tmp_path).path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == ("2 False" if words == ("no-such-word",) else "0 False"), (
        done.stderr
    )


def test_a_restart_is_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.__main__ import RESTART, _End

    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    ended = _End()
    ended.restart()
    assert ended.wait() == RESTART == 75


def test_the_installed_command_starts_itself_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The installer's child, `python -m ui`, leaves that to its parent."""
    from ui import __main__ as entry

    monkeypatch.setattr(entry, "command", lambda words: entry.RESTART)
    monkeypatch.setattr("app.start_anew", lambda: 0)
    monkeypatch.setattr(entry, "QUICK_S", 60.0)
    assert entry.main() == entry.RESTART  # not over and over
    monkeypatch.setattr(entry, "QUICK_S", 0.0)
    assert entry.main() == 0


def test_after_a_fault_of_the_device_it_starts_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.__main__ import RESTART, _End

    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    answers = iter((False, True))
    assert _End(is_lost=lambda: next(answers)).wait() == RESTART
