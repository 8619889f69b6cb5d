"""The catalogue against the hub: the hub's real client asks a small server that answers as the hub does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from huggingface_hub import constants

from app.errors import AppError
from app.models.catalogue import Catalogue, read_catalogue
from app.models.catalogue_check import Finding, check
from app.models.hub_client import Hub as HubClient
from app.models.hub_search import LICENCES
from app.settings import Home, Settings
from tests.source_tree import ROOT

ENTRY = """
[sources]
page = "https://example.com/page"
[[models]]
id = "m"
name = "M"
licence = "MIT"
context = 4096
parameters = 1_000_000
sources = ["page"]
checked = false
variants = [
    { format = "bf16", repo = "maker/M", source = "page" },
    { format = "GGUF Q6_K", repo = "maker/M-GGUF", source = "page" },
]
"""
WHOLE = {
    "id": "maker/M",
    "sha": "a" * 40,
    "private": False,
    "gated": "auto",
    "cardData": {"license": "mit"},
    "safetensors": {"parameters": {"BF16": 1_010_000}, "total": 1_010_000},
    "siblings": [
        {"rfilename": "model-00001-of-00002.safetensors", "size": 1_200_000},
        {"rfilename": "model-00002-of-00002.safetensors", "size": 820_000},
        {"rfilename": "consolidated.safetensors", "size": 2_020_000},
        {"rfilename": "original/model.safetensors", "size": 2_020_000},
        {"rfilename": "README.md", "size": 100},
    ],
}
GGUF = {
    "id": "maker/M-GGUF",
    "sha": "b" * 40,
    "private": False,
    "gated": False,
    "siblings": [
        {"rfilename": "m-q6_k.gguf", "size": 830_000},
        {"rfilename": "m-Q6_K_L.gguf", "size": 900_000},
        {"rfilename": "mmproj-Q6_K.gguf", "size": 800_000},
    ],
}


class Hub(ThreadingHTTPServer):
    """Answers GET /api/models/<repo> with what is put into `repos`; a number there is an error's status."""

    repos: dict[str, Any]
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        assert path.query == "blobs=true" and "authorization" not in self.headers
        repo = path.path.removeprefix("/api/models/")
        self.server.asked.append(repo)
        answer = self.server.repos.get(repo, 401)
        status = answer if isinstance(answer, int) else 200
        body = json.dumps({"error": "no"} if isinstance(answer, int) else answer).encode()
        self.send_response(status)
        if status == 401:  # so the hub answers a stranger who asks for what is not there
            self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # read from the environment on import
    with Hub(("127.0.0.1", 0), Handler) as server:
        server.repos, server.asked = {"maker/M": WHOLE, "maker/M-GGUF": GGUF}, []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    path = tmp_path / "models.toml"
    path.write_text(ENTRY, "utf-8")
    return read_catalogue(path)


def findings(catalogue: Catalogue, hub: Hub) -> list[Finding]:
    return list(check(catalogue, client(hub.server_port)))


def client(port: int) -> HubClient:
    return HubClient(Settings(Home(Path()), hub=f"http://127.0.0.1:{port}"))


def test_what_agrees(catalogue: Catalogue, hub: Hub) -> None:
    assert findings(catalogue, hub) == [
        Finding("m", "bf16", "maker/M", "a" * 40, 2_020_000, True, ()),
        Finding("m", "GGUF Q6_K", "maker/M-GGUF", "b" * 40, 830_000, False, ()),
    ]
    assert hub.asked == ["maker/M", "maker/M-GGUF"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (401, "it is not there for everyone"),
        (404, "it is not there for everyone"),
        ({**WHOLE, "id": "other/M2"}, "it is called other/M2 now"),
        ({**WHOLE, "siblings": []}, "it has no safetensors file"),
        ({**WHOLE, "siblings": WHOLE["siblings"][:1]}, "it has 1.2 MB, not about 2.0 MB"),
        ({**WHOLE, "cardData": {"license": "apache-2.0"}}, "its licence is Apache-2.0, not MIT"),
        ({**WHOLE, "safetensors": {"parameters": {}, "total": 3}}, "it has 3 parameters, not 1,000,000"),
    ],
)
def test_what_differs(catalogue: Catalogue, hub: Hub, answer: Any, said: str) -> None:
    hub.repos["maker/M"] = answer
    first, second = findings(catalogue, hub)
    assert first.problems == (said,) and not second.problems


def test_bytes_that_were_looked_up_must_agree(catalogue: Catalogue, hub: Hub) -> None:
    (model,) = catalogue.models
    model = replace(model, variants=(replace(model.variants[1], bytes=830_001),))
    (found,) = findings(Catalogue((model,)), hub)
    assert found.problems == ("it has 830000 bytes, not 830001",)


def test_a_hub_that_is_ill_or_away(catalogue: Catalogue, hub: Hub) -> None:
    hub.repos["maker/M"] = 500
    with pytest.raises(AppError, match="answered 500 when it was asked about maker/M"):
        findings(catalogue, hub)
    with pytest.raises(AppError, match=r"The hub can't be reached: [^\[]+\.$"):
        list(check(catalogue, client(9)))


def test_the_command(hub: Hub, tmp_path: Path) -> None:
    hub.repos = {"openai/gpt-oss-20b": {**WHOLE, "id": "openai/gpt-oss-20b"}}
    (tmp_path / "settings.toml").write_text(f'hub = "http://127.0.0.1:{hub.server_port}"')
    env = {**os.environ, "HF_HUB_OFFLINE": "0", "OCTAVO_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "app", "models", "check"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "") and len(lines) == len(hub.asked) > 80
    assert lines[0].endswith("bartowski/SmolLM2-1.7B-Instruct-GGUF  it is not there for everyone")
    assert "it has 2.0 MB, not about 12.81 GB; its licence is MIT, not Apache-2.0" in lines[-1]


def test_models_from_wheels_are_not_asked_for(hub: Hub) -> None:
    catalogue = read_catalogue()
    ours = Catalogue(tuple(model for model in catalogue.models if model.fetched))
    assert ours.models and not findings(ours, hub) and not hub.asked


def test_every_licence_has_the_hub_s_word() -> None:
    assert {model.licence for model in read_catalogue().models} <= set(LICENCES.values())
