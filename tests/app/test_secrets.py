"""Keys, cookies, links and what was said stand nowhere they should not: logs, answers, other files."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.api.api import api_routes
from app.memory.runtime import Runtime
from app.services import build
from app.settings import Settings
from engine import Request
from tests.app.fakes import PATIENCE_S, FakeModel, fake_loader, make_home, model_file

PORT = 8642
PROMPT, REPLY = "canary-of-the-prompt", "canary-of-the-reply"


def failing(request: Request) -> str:
    """Answers, but for one prompt that meets a bug."""
    if "bug" in request.messages[-1].content:
        raise KeyError(request.messages[-1].content)
    return REPLY


def test_nothing_leaks_into_logs_answers_or_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    for client_s in ("httpx", "httpx2"):  # they are not ours
        caplog.set_level(logging.WARNING, logger=client_s)
    home = make_home(tmp_path)
    settings = Settings(home, model=str(model_file(home)), port=PORT)
    services = build(settings, fake_loader(FakeModel(failing)))
    services.runtime.start()
    services.runtime.wait()
    keys, link = services.keys, services.keys.link(PORT)
    app = services.guard.wrap(Starlette(routes=api_routes(services)))
    answers = []
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False) as client:
        bearer = {"authorization": f"Bearer {keys.api_key}"}
        body = {"model": "fake", "messages": [{"role": "user", "content": PROMPT}]}
        answers += [client.post("/v1/chat/completions", json=body, headers=bearer) for _ in range(2)]
        answers += [client.post("/v1/chat/completions", json={**body, "seed": "x"}, headers=bearer)]
        answers += [client.get("/enter?t=x"), client.get("/v1/models", headers={"authorization": "Bearer x"})]
        answers += [client.get("/health", headers=bearer), client.get("/v1/models", headers=bearer)]
        client.get(link)
        answers += [client.get(link), client.get("/health")]
    chat = services.chats.new_chat()
    version = services.chats.version(chat)
    services.chats.send(chat, PROMPT)
    while services.chats.busy(chat):
        version = services.chats.wait(chat, version, PATIENCE_S)
    services.close()

    secrets = [keys.api_key, keys.session(PORT), link.partition("=")[2], (home / "secret").read_text()]
    said = caplog.text + "".join(capfd.readouterr())
    assert not [canary for canary in (*secrets, PROMPT, REPLY) if canary in said]
    shown = "".join(answer.text + str(answer.headers) for answer in answers)
    assert not [canary for canary in (*secrets, PROMPT) if canary in shown]
    holders = {path.name for path in tmp_path.rglob("*") if path.is_file() and holds(path, secrets)}
    assert holders == {"key", "secret"}
    tellers = {path.name for path in tmp_path.rglob("*") if path.is_file() and holds(path, [PROMPT, REPLY])}
    assert tellers == {"chats.db"}


def holds(path: Path, texts: list[str]) -> bool:
    content = path.read_bytes()
    return any(text.encode() in content for text in texts)


def test_a_fault_of_ours_tells_no_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its log names the fault; what the client gets does not even do that."""
    home = make_home(tmp_path)
    services = build(Settings(home, model=str(model_file(home)), port=PORT), fake_loader(FakeModel(failing)))
    services.runtime.start()
    assert isinstance(services.runtime, Runtime) and services.runtime.wait().state == "ready"
    app = services.guard.wrap(Starlette(routes=api_routes(services)))
    client = TestClient(app, base_url=f"http://127.0.0.1:{PORT}")
    body = {"model": "fake", "messages": [{"role": "user", "content": "a bug"}]}
    answer = client.post(
        "/v1/chat/completions", json=body, headers={"authorization": f"Bearer {services.keys.api_key}"}
    )
    services.close()
    assert answer.status_code == 500 and "a bug" not in answer.text
    assert "KeyError" in caplog.text and services.keys.api_key not in caplog.text
