"""All parts together: one owner of a home folder, an end that loses nothing; the API server alone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from app.api.server import listen, serve
from app.errors import AlreadyRunning, AppError
from app.services import build, build_api
from app.settings import Home, Settings
from tests.app.fakes import PATIENCE_S, FakeModel, fake_loader, make_home, model_file


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def test_a_home_folder_has_one_owner(home: Home) -> None:
    services = build(Settings(home), fake_loader(FakeModel()))
    services.instance.announce(8642)
    with pytest.raises(AlreadyRunning) as raised:
        build(Settings(home))
    assert raised.value.port == 8642
    build_api(Settings(home)).close()  # the API alone is no owner
    services.close()
    build(Settings(home), fake_loader(FakeModel())).close()


def test_what_can_t_be_opened_lets_go_of_the_home(home: Home) -> None:
    (home / "key").write_text("damaged")
    with pytest.raises(AppError, match="key is damaged"):
        build(Settings(home))
    (home / "key").unlink()
    build(Settings(home)).close()


def test_ending_keeps_the_answers(home: Home) -> None:
    model = FakeModel()
    settings = Settings(home, model=str(model_file(home)))
    services = build(settings, fake_loader(model))
    services.runtime.start()
    chat = services.chats.new_chat()
    services.chats.send(chat, "x")
    stream = model.next_stream()
    version = services.chats.version(chat)
    stream.write("so far")
    while not services.chats.view(chat).messages[-1].text:
        version = services.chats.wait(chat, version, PATIENCE_S)
    services.close()
    assert model.closed
    again = build(settings, fake_loader(FakeModel()))
    assert again.chats.view(chat).messages[-1].text == "so far"
    again.close()


def test_a_port_in_use(home: Home) -> None:
    with listen(0) as taken:
        port = taken.getsockname()[1]
        assert taken.getsockname()[0] == "127.0.0.1"
        with pytest.raises(AppError, match=rf"Port {port} of 127\.0\.0\.1 can't be used: another program"):
            listen(port)
    listen(port).close()


def test_a_server_without_a_model_says_why(home: Home) -> None:
    services, ready = build_api(Settings(home)), threading.Event()
    with pytest.raises(AppError, match="octavo models pull smollm2-135m"):
        serve(services, listen(0), ready.set)
    assert not ready.is_set()


def test_a_signal_while_the_model_is_loading_is_a_plain_end(home: Home) -> None:
    released, ready, taken = threading.Event(), threading.Event(), listen(0)
    address = f"http://127.0.0.1:{taken.getsockname()[1]}/health"

    def load(*_: object) -> FakeModel:
        httpx.get(address, timeout=PATIENCE_S)  # what serves minds signals
        signal.raise_signal(signal.SIGTERM)
        released.wait(PATIENCE_S)
        return FakeModel()

    services = build_api(Settings(home, model=str(model_file(home))), load)
    serve(services, taken, ready.set)
    released.set()
    services.close()
    assert not ready.is_set()


def test_a_server_whose_device_is_lost_ends_to_be_started_anew(home: Home) -> None:
    """After its answers have ended, with the reason; in a process of its own it takes its own place."""
    model, ready = FakeModel(), threading.Event()
    services = build_api(Settings(home, model=str(model_file(home))), fake_loader(model))

    def lose() -> None:
        ready.set()
        model.fault, model.lost = "cuda failed", True

    assert serve(services, listen(0), lose) is True
    services.close()
    assert ready.is_set() and model.closed
    code = (
        "import sys; from app.commands.anew import start_anew; print(sys.argv[1:], flush=True);"
        "len(sys.argv) > 3 or start_anew('--port', '8000')"
    )
    done = subprocess.run([sys.executable, "-c", code, "--port", "0"], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["['--port', '0']", "['--port', '0', '--port', '8000']"]
