"""One process for each home folder; a second start finds the first one's page; a kill leaves no trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from app.access.instance import Instance, Running, ask_to_end, end_running, running, running_port
from app.access.keys import Keys
from app.errors import AlreadyRunning, AppError
from app.settings import Home
from tests.source_tree import ROOT

HOLDER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from app.access.instance import Instance
from app.settings import Home
instance = Instance(Home(Path(sys.argv[1])))
if sys.argv[2]:
    instance.announce(int(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


def hold(home: Home, port: str = "") -> subprocess.Popen[bytes]:
    """Another process that has the home folder until it is killed."""
    command = [sys.executable, "-c", HOLDER, str(home.path), port]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"held\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_a_second_start_is_told_where_the_first_is(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = hold(home, "8642")
    with pytest.raises(AlreadyRunning, match=r"already running at http://127\.0\.0\.1:8642") as raised:
        Instance(home)
    assert raised.value.port == running_port(home) == 8642
    end(first)


def test_after_kill_9_the_next_has_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    end(hold(home, "8642"))
    assert (tmp_path / "instance.json").exists()
    instance = Instance(home)
    assert not (tmp_path / "instance.json").exists()  # the dead one's port is not believed
    instance.announce(9000)
    assert running_port(home) == 9000
    instance.close()
    instance.close()
    Instance(home).close()


def test_one_that_never_shows_its_page(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = hold(home)
    with pytest.raises(AlreadyRunning) as raised:
        Instance(home)
    assert raised.value.port is None
    with pytest.raises(AppError, match="has not shown its page"):
        running_port(home, timeout=0)
    end(first)


@pytest.mark.parametrize(
    ("health", "model", "fault"),
    [
        ({"status": "ok", "model": "m"}, "m", ""),
        ({"status": "loading", "model": "m", "reason": "The model is loading."}, "m", ""),
        ({"status": "error", "model": "m", "reason": "A kernel gave NaN."}, "m", "A kernel gave NaN."),
        ([], "", "It does not say how it is"),
    ],
)
def test_a_running_one_is_asked_how_it_is(tmp_path: Path, health: object, model: str, fault: str) -> None:
    home = Home(tmp_path)

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == f"Bearer {Keys(home).api_key}"
            self.send_response(200 if known and self.path == "/health" else 401)
            self.end_headers()
            self.wfile.write(json.dumps(health).encode() if known else b"")

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Health)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    instance = Instance(home)
    try:
        instance.announce(server.server_port)
        there = running(home)
        assert (there.port, there.model) == (server.server_port, model) and there.fault.startswith(fault)
        assert bool(there.fault) == bool(fault)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    gone = running(home)
    assert gone.model == "" and gone.fault.startswith("It does not say")
    instance.close()


def test_wishes_that_a_running_one_does_not_grant(tmp_path: Path) -> None:
    home, there = Home(tmp_path), Running(8642, "smollm2-135m@gguf-q4_1", "")
    for port, model in ((None, None), (8642, "smollm2-135m"), (8642, "smollm2-135m@gguf-q4_1")):
        there.check_wishes(home, port, model)
    Running(8642, "mine", "").check_wishes(home, None, "/models/mine.gguf")
    for port, model in ((9000, None), (None, "qwen2.5-coder-1.5b"), (8642, "other.gguf")):
        with pytest.raises(
            AppError, match=r"already running, with the model smollm2-135m@gguf-q4_1 at http.*:8642\. End"
        ):
            there.check_wishes(home, port, model)
    Running(8642, "", "").check_wishes(home, None, "anything")  # one that does not say


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"port": "x"}', "\0"])
def test_a_damaged_note_is_no_port(tmp_path: Path, note: str) -> None:
    (tmp_path / "instance.json").write_text(note)
    with pytest.raises(AppError):
        running_port(Home(tmp_path), timeout=0)


def test_two_home_folders_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    instances = [Instance(Home(tmp_path / name)) for name in "ab"]
    for instance in instances:
        instance.close()


def test_the_note_is_private(tmp_path: Path) -> None:
    instance = Instance(Home(tmp_path))
    instance.announce(1)
    if os.name != "nt":
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    instance.close()


def test_a_note_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    instance = Instance(Home(tmp_path))
    (tmp_path / "instance.json").mkdir()  # as good as a full disk
    with pytest.raises(AppError, match=r"instance\.json can't be written"):
        instance.announce(8642)
    instance.close()


POLITE = """
import sys, time
from pathlib import Path
from app.access.instance import Instance
from app.settings import Home
instance = Instance(Home(Path(sys.argv[1])))
print("held", flush=True)
while not instance.asked_to_end:
    time.sleep(0.01)
instance.close()
"""


def test_a_running_one_ends_when_it_is_asked(tmp_path: Path) -> None:
    home, command = Home(tmp_path), [sys.executable, "-c", POLITE, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"held\n"
        assert end_running(home) is True
        assert process.wait() == 0
    assert end_running(home) is False


def test_one_that_does_not_heed_is_a_sentence(tmp_path: Path) -> None:
    first = hold(Home(tmp_path))
    with pytest.raises(AppError, match="asked to end but has not in 0 s"):
        end_running(Home(tmp_path), timeout=0)
    (tmp_path / "instance.json").write_text('{"pid": 4321, "port": 8000}')
    with pytest.raises(AppError, match="End its process 4321 by hand"):
        end_running(Home(tmp_path), timeout=0)
    end(first)


def test_it_may_ask_itself_and_an_old_wish_is_forgotten(tmp_path: Path) -> None:
    home = Home(tmp_path)
    ask_to_end(home)
    instance = Instance(home)
    assert not instance.asked_to_end
    ask_to_end(home)
    assert instance.asked_to_end
    if os.name != "nt":
        assert (tmp_path / "instance.quit").stat().st_mode & 0o777 == 0o600
    instance.close()
    assert not instance.asked_to_end


def test_a_wish_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(AppError, match=r"instance\.quit can't be written"):
        ask_to_end(Home(tmp_path / "nowhere"))
    with pytest.raises(AppError, match=r"instance\.lock can't be used"):
        end_running(Home(tmp_path / "nowhere"))
