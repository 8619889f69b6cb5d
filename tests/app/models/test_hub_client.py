"""A hub that only a proxy can reach: asked, and fetched from, in a tunnel through a real one that is named by
the settings or by the environment.

The proxy sends what is for hub.test to the fake hub, which has a certificate of an authority made here.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from huggingface_hub import constants
from huggingface_hub.utils._http import close_session

from app.errors import HubFailed
from app.models.catalogue import Variant
from app.models.hub_client import Hub
from app.models.hub_fetch import HubFetch
from app.models.model_store import ModelStore
from app.settings import Home, Settings, use_proxy
from tests.app.fake_hub import FakeHub, folder_repo, hub_catalogue, serving_hub

HUB = "https://hub.test"
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class Proxy(ThreadingHTTPServer):
    """`asked` is every request line; `refusal`: a status that it answers with instead."""

    daemon_threads = True
    refusal = 0

    def __init__(self, hub_port: int) -> None:
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        self.hub_port, self.asked = hub_port, list[str]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None: ...


class ProxyHandler(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_CONNECT(self) -> None:
        self.server.asked.append(self.requestline)
        if self.server.refusal or self.path != "hub.test:443":
            return self.send_error(self.server.refusal or 502)
        self.send_response(200)
        self.end_headers()
        with socket.create_connection(("127.0.0.1", self.server.hub_port)) as there:
            back = threading.Thread(target=_carry, args=(there, self.connection), daemon=True)
            back.start()
            _carry(self.connection, there)
            back.join()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None: ...


def _carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(2**16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the other end is gone
        pass


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def hub(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    for name in NAMES:
        for spelled in (name, name.lower()):
            monkeypatch.setenv(spelled, "")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)  # as settings.QUIET has it
    with serving_hub(monkeypatch) as hub:
        hub.add(folder_repo())
        close_session()  # the client remembers a proxy
        yield hub
    close_session()


@contextmanager
def serving(proxy: Proxy) -> Iterator[Proxy]:
    with proxy:
        threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield proxy
        proxy.shutdown()


def fetch_all(home: Path, settings: Settings) -> list[str]:
    """Search, look and fetch as the program does; the files that came."""
    asked = Hub(settings)
    assert [found.id for found in asked.search("tiny", "safetensors")] == ["maker/Tiny"]
    variant = Variant("bf16", repo="maker/Tiny")
    store = ModelStore(Home(home), hub_catalogue(variant))
    path = HubFetch(store, asked, store.catalogue["tiny"], variant).run(lambda stage, part: None)
    return sorted(file.name for file in path.iterdir())


@pytest.mark.parametrize("by_settings", [True, False])
def test_everything_goes_through_the_proxy(
    hub: FakeHub, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_settings: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hub.test").configure_cert(context)
    hub.socket = context.wrap_socket(hub.socket, server_side=True)
    with serving(Proxy(hub.server_port)) as proxy:
        settings = Settings(Home(tmp_path), hub=HUB, proxy=proxy.url if by_settings else "")
        if not by_settings:
            monkeypatch.setenv("https_proxy", proxy.url)
        use_proxy(settings)
        files = fetch_all(tmp_path, settings)
    assert {"octavo.json", "config.json", "model-00002-of-00002.safetensors"} <= set(files)
    assert proxy.asked and set(proxy.asked) == {"CONNECT hub.test:443 HTTP/1.1"}
    assert hub.paths("/api/models/maker/Tiny") and hub.paths("/cdn/")


def test_a_proxy_that_refuses_or_is_away_is_one_sentence(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(Home(tmp_path), hub=HUB)
    with serving(Proxy(hub.server_port)) as proxy:
        proxy.refusal = 407
        monkeypatch.setenv("https_proxy", proxy.url)
        for ask in (lambda: Hub(settings).look("maker/Tiny"), lambda: Hub(settings).search("tiny", "gguf")):
            with pytest.raises(HubFailed, match=r"The hub can't be reached: 407[^\n]*\.$"):
                ask()
    close_session()
    with pytest.raises(HubFailed, match=r"The hub can't be reached: [^\n]+\.$"):
        Hub(settings).look("maker/Tiny")
