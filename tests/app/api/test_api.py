"""The API over real HTTP: OpenAI's form, each bad request its own error, a client that leaves cancels."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from app.access.guard import Guard
from app.access.keys import Keys
from app.api.api import MAX_REQUESTS, api_routes
from app.api.server import listen
from app.memory.runtime import Runtime
from app.models.own_models import OwnModels
from app.services import build_api
from app.settings import Settings
from engine import (
    EngineStopped,
    FinishReason,
    Priority,
    PromptTooLong,
    Request,
    SamplingParams,
    TemplateError,
)
from tests.app.fakes import PATIENCE_S, FakeModel, FakeStream, echo, fake_loader, make_home, model_file
from tests.app.route_walk import walk

HELLO = [{"role": "user", "content": "hello"}]


@dataclass
class Api:
    """A served API and a client with its key."""

    client: httpx.Client
    runtime: Runtime
    keys: Keys
    model: FakeModel
    port: int

    def chat(self, **fields: Any) -> httpx.Response:
        body = {"model": "fake", "messages": HELLO, **fields}
        return self.client.post("/v1/chat/completions", json=body)

    def complete(self, **fields: Any) -> httpx.Response:
        return self.client.post("/v1/completions", json={"model": "fake", "prompt": "hello", **fields})

    def raw(self, body: bytes | str) -> httpx.Response:
        return self.client.post("/v1/chat/completions", content=body)

    def until_left(self) -> None:
        """Until no stream is open that nobody cancelled or read to its end."""
        end = time.monotonic() + PATIENCE_S
        while not self.model.streams or not self.model.streams[-1].cancelled.is_set():
            assert time.monotonic() < end
            time.sleep(0.01)


def start(folder: Path, model: FakeModel, gate: threading.Event | None = None) -> Iterator[Api]:
    home = make_home(folder)
    taken = listen(0)
    port = taken.getsockname()[1]
    settings = Settings(
        home, model=str(model_file(home)), port=port, sampling=SamplingParams(temperature=0.5)
    )
    services = build_api(settings, fake_loader(model, gate))
    services.runtime.start()
    if gate is None:
        services.runtime.wait()
    app = services.guard.wrap(Starlette(routes=api_routes(services)))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[taken])))
    thread.start()
    bearer = {"authorization": f"Bearer {services.keys.api_key}", "content-type": "application/json"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=PATIENCE_S) as client:
            yield Api(client, services.runtime, services.keys, model, port)
    finally:
        server.should_exit = True
        services.close()
        thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    yield from start(tmp_path_factory.mktemp("api"), FakeModel())


@pytest.fixture
def api(served: Api) -> Api:
    """The served API with a model that answers at once; a test may take that over."""
    served.model.answer, served.model.refuse, served.model.fault = echo, None, ""
    served.model.streams.clear()
    return served


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def error(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()["error"]
    assert set(body) == {"message", "type", "param", "code"}
    return answer.status_code, body["message"]


def test_a_whole_answer(api: Api) -> None:
    answer = api.chat()
    body = answer.json()
    assert answer.status_code == 200 and body["object"] == "chat.completion" and body["model"] == "fake"
    (choice,) = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "You said: hello ", "refusal": None}
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    details = {"cached_tokens": 4}
    cost = {
        "prompt_tokens": 10,
        "completion_tokens": 16,
        "total_tokens": 26,
        "prompt_tokens_details": details,
    }
    assert body["usage"] == cost and abs(body["created"] - time.time()) < 60


def test_a_stream(api: Api) -> None:
    answer = api.chat(stream=True, stream_options={"include_usage": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    first, *words, last, cost = events(answer.text)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [word["choices"][0]["delta"]["content"] for word in words] == ["You ", "said: ", "hello "]
    assert (last["choices"][0]["finish_reason"], last["choices"][0]["delta"]) == ("stop", {})
    assert cost["choices"] == [] and cost["usage"]["prompt_tokens_details"] == {"cached_tokens": 4}
    assert all(each["usage"] is None for each in (first, *words, last))
    assert len({(each["id"], each["object"]) for each in (first, *words, last, cost)}) == 1
    assert "usage" not in events(api.chat(stream=True).text)[-1]


def test_a_text_goes_on(api: Api) -> None:
    api.model.answer = lambda request: f"<think> {request.text} {request.suffix}"
    answer = api.complete(suffix="world", stop=["."], top_p=0.5)
    body, (stream,) = answer.json(), api.model.streams
    assert answer.status_code == 200 and body["object"] == "text_completion" and body["model"] == "fake"
    assert body["id"].startswith("cmpl-") and body["usage"]["completion_tokens"]
    (choice,) = body["choices"]
    assert choice == {"index": 0, "text": "<think> hello world ", "logprobs": None, "finish_reason": "stop"}
    asked, sampling = stream.request, stream.request.sampling
    assert (asked.messages, asked.text, asked.suffix, asked.model) == ((), "hello", "world", "fake")
    assert (sampling.max_tokens, sampling.stop, sampling.top_p, asked.shorten) == (16, (".",), 0.5, False)
    *words, last, cost = events(
        api.complete(prompt=["hello"], stream=True, max_tokens=5, stream_options={"include_usage": True}).text
    )
    assert [word["choices"][0]["text"] for word in words] == ["<think> ", "hello ", "None "]
    assert (last["choices"][0]["finish_reason"], last["choices"][0]["text"]) == ("stop", "")
    assert cost["usage"]["prompt_tokens"] == 10 and {each["object"] for each in words} == {"text_completion"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prompt": ["a", "b"]}, "prompt: one text is taken; no list of several, no token ids."),
        ({"prompt": [1, 2]}, "prompt: one text is taken"),
        ({"prompt": None}, "prompt: one text is taken"),
        ({"suffix": 3}, "suffix: "),
        ({"echo": True}, "echo is not supported but as false."),
        ({"best_of": 3}, "best_of is not supported but as 1."),
        ({"logprobs": 5}, "logprobs is not supported but as false."),
        ({"max_tokens": 0}, "max_tokens is 0"),
    ],
)
def test_a_text_that_can_t_go_on(api: Api, fields: dict[str, Any], said: str) -> None:
    status, message = error(api.complete(**fields))
    assert status == 400 and said in message and not api.model.streams


def test_thoughts_have_a_field_of_their_own(api: Api) -> None:
    api.model.answer = lambda request: "<think> two and two </think> Four."
    message = api.chat().json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("two and two", "Four. ")
    _, *parts, _ = events(api.chat(stream=True).text)
    deltas = [part["choices"][0]["delta"] for part in parts]
    assert deltas == [*({"reasoning_content": w} for w in ("two", " and", " two")), {"content": "Four. "}]


def test_a_stream_comes_as_it_is_made(api: Api) -> None:
    api.model.answer = lambda request: None
    api.model.new.queue.clear()
    made: list[FakeStream] = []

    def begin() -> None:
        made.append(api.model.next_stream())
        made[0].write("né")

    threading.Thread(target=begin).start()
    body = {"model": "fake", "messages": HELLO, "stream": True}
    with api.client.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = (line for line in answer.iter_lines() if line)
        assert json.loads(next(lines)[6:])["choices"][0]["delta"]["role"] == "assistant"
        assert json.loads(next(lines)[6:])["choices"][0]["delta"] == {"content": "né"}
        made[0].write("e")
        assert json.loads(next(lines)[6:])["choices"][0]["delta"] == {"content": "e"}
        made[0].finish(FinishReason.LENGTH)
        rest = list(lines)
    assert json.loads(rest[0][6:])["choices"][0]["finish_reason"] == "length" and rest[-1] == "data: [DONE]"


def test_what_the_engine_is_asked(api: Api) -> None:
    messages = [
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            "name": "x",
        },
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    fields = {"temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1, "seed": -5}
    fields |= {"frequency_penalty": 0.5, "presence_penalty": -0.5, "stop": ["x", "y"], "max_tokens": 7}
    harmless = {"n": 1, "logprobs": False, "tools": [], "user": "u", "store": True, "unheard_of": {"a": 1}}
    assert api.chat(messages=messages, **fields, **harmless).status_code == 200
    request: Request = api.model.streams[-1].request
    said = [(m.role, m.content) for m in request.messages]
    assert said == [("system", "Be brief."), ("user", "ab"), ("assistant", "c"), ("user", "d")]
    wanted = SamplingParams(**{**fields, "stop": ("x", "y")})
    assert request.sampling == wanted and request.priority is Priority.API
    assert request.owner == api.keys.api_owner != "person"
    api.chat(max_completion_tokens=3, max_tokens=9, stop="z", temperature=None)
    sampling = api.model.streams[-1].request.sampling
    assert (sampling.max_tokens, sampling.stop, sampling.temperature) == (3, ("z",), 0.5)


def test_what_a_request_leaves_open_is_as_its_model_is_used(tmp_path: Path) -> None:
    with contextmanager(start)(tmp_path, FakeModel()) as api:
        api.model.answer = echo
        (tmp_path / "other.gguf").write_bytes(b"GGUF")
        own = OwnModels(tmp_path)
        own.keep("other", path=str(tmp_path / "other.gguf"), sampling={"temperature": 0.9, "max_tokens": 5})
        assert api.chat(model="other").status_code == 200
        sampling = api.model.streams[-1].request.sampling
    assert (sampling.temperature, sampling.max_tokens) == (0.9, 5)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"messages": []}, "messages: "),
        ({"messages": "hello"}, "messages: "),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role: "),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0: tools are not supported."),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]},
            "messages.0: tools are not supported.",
        ),
        ({"messages": [{"role": "user"}]}, "messages.0.content: "),
        ({"messages": [{"role": "user", "content": None}]}, "messages.0.content: "),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only parts of type text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]},
            "only parts of type text",
        ),
        ({"messages": HELLO * 4097}, "messages: List should have at most 4096"),
        ({"model": 3}, "model: "),
        ({"temperature": "hot"}, "temperature: "),
        ({"temperature": -0.1}, "temperature is -0.1; it must lie between 0.0 and 5.0."),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"max_tokens": 0}, "max_tokens is 0; it must lie between 1 and 2,147,483,647."),
        ({"max_tokens": 10**30}, f"max_tokens is {10**30:,}; it must lie between 1 and 2,147,483,647."),
        ({"max_tokens": -(2**70)}, "max_tokens is "),
        ({"max_tokens": 1.5}, "max_tokens: "),
        ({"max_tokens": True}, "max_tokens: "),
        ({"max_tokens": -(10**400)}, "max_tokens is "),
        ({"top_k": 10**400}, "top_k is "),
        ({"top_k": -(10**400)}, "top_k is "),
        ({"temperature": 10**400}, "temperature: "),
        ({"seed": 10**400}, "seed is "),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"stop": ["x"] * 17}, "There are 17 stop strings; at most 16 are taken."),
        ({"stop": ""}, "A stop string has 0 characters; it must have 1 to 256."),
        ({"stop": ["x", "x" * 257]}, "A stop string has 257 characters; it must have 1 to 256."),
        ({"stream": "yes"}, "stream: "),
        ({"n": 2}, "n is not supported but as 1."),
        ({"logprobs": True}, "logprobs is not supported but as false."),
        ({"tools": [{"type": "function"}]}, "tools is not supported but as []."),
        (
            {"response_format": {"type": "json_object"}},
            'response_format is not supported but as {"type": "text"}.',
        ),
        ({"logit_bias": {"5": 1}}, "logit_bias is not supported but as {}."),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(api: Api, fields: dict[str, Any], said: str) -> None:
    status, message = error(api.chat(**fields))
    assert status == 400 and said in message
    assert not api.model.streams
    assert api.chat().status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"model": "fake", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "fake", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"model": "fake", "messages": [{"role": "user", "content": "x"}], "temperature": 1e999}',
        b'{"model": "fake", "messages": ' + b"[" * 100_000,
        b'{"messages": [{"role": "user", "content": "x"}]}',
    ],
)
def test_a_body_that_is_none(api: Api, body: bytes) -> None:
    status, message = error(api.raw(body))
    assert status == 400 and message and len(message) < 500
    assert not api.model.streams


def test_limits_of_the_server(api: Api) -> None:
    status, message = error(api.raw(b"x" * (8 * 2**20 + 1)))
    assert status == 413 and "8388609 bytes; at most 8388608" in message
    pieces = (bytes(2**20) for _ in range(9))
    status, _ = error(api.client.post("/v1/chat/completions", content=pieces))
    assert status == 413


@pytest.mark.parametrize(
    ("refuse", "status", "code"),
    [
        (PromptTooLong("The prompt has 9000 tokens, the context 2048."), 400, "context_length_exceeded"),
        (TemplateError("The template took more than 2 s."), 400, "template_error"),
        (EngineStopped("The engine has stopped."), 503, "engine_stopped"),
        (KeyError("a bug of ours /home/person"), 500, "internal_error"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_the_engine_refuses(api: Api, refuse: Exception, status: int, code: str, stream: bool) -> None:
    api.model.refuse = refuse
    answer = api.chat(stream=stream)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    message = answer.json()["error"]["message"]
    assert ("person" not in message) if code == "internal_error" else message == str(refuse)


def test_an_answer_that_fails(api: Api) -> None:
    api.model.answer = lambda request: None
    results: list[httpx.Response] = []
    for stream, first in ((False, ""), (True, ""), (False, "some"), (True, "some")):
        api.model.new.queue.clear()
        thread = threading.Thread(target=lambda stream=stream: results.append(api.chat(stream=stream)))
        thread.start()
        made = api.model.next_stream()
        if first:
            made.write(first)
        made.finish(FinishReason.ERROR, "a kernel gave NaN")
        thread.join()
    assert [error(answer) for answer in results[:3]] == [(500, "a kernel gave NaN")] * 3
    *_, text, last = events(results[3].text)
    assert text["choices"][0]["delta"] == {"content": "some"}
    assert last["error"]["message"] == "a kernel gave NaN"


def test_models(api: Api) -> None:
    (model,) = api.client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"], model["context_length"]) == ("fake", "model", 2048)
    assert model["loaded"] is True
    assert api.client.get("/v1/models/fake").json() == model and model["name"] == "fake"
    for spelled in ("fake", api.runtime._rota.settings.model):  # a path, too
        assert api.chat(model=spelled).json()["model"] == "fake"
    for answer in (api.client.get("/v1/models/gpt-5"), api.chat(model="gpt-5")):
        assert error(answer) == (404, "There is no model 'gpt-5' here; there is 'fake'.")
    long = api.chat(model="x" * 9000)
    assert error(long) == (404, f"There is no model '{'x' * 100}' here; there is 'fake'.")


def test_any_model_of_this_machine_answers(tmp_path: Path) -> None:
    with contextmanager(start)(tmp_path, FakeModel(echo)) as api:
        (file := tmp_path / "recto.gguf").write_bytes(b"GGUF")
        OwnModels(tmp_path).keep("recto", path=str(file), name="Recto")
        fake, recto = api.client.get("/v1/models").json()["data"]
        assert (recto["id"], recto["name"], recto["loaded"], recto["context_length"]) == (
            "recto",
            "Recto",
            False,
            None,
        )
        assert api.client.get("/v1/models/recto").json() == recto and fake["loaded"]
        for named in ("recto", "recto", "fake"):
            answer = api.chat(model=named).json()
            assert answer["model"] == named and answer["choices"][0]["message"]["content"]
            loaded = {each["id"]: each["loaded"] for each in api.client.get("/v1/models").json()["data"]}
            assert loaded == {"fake": named == "fake", "recto": named == "recto"}
        file.unlink()
        assert error(api.chat(model="recto")) == (404, "There is no model 'recto' here; there is 'fake'.")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/", "/v1/chat", "/v1/../v1/models"])
def test_what_is_not_here(api: Api, path: str) -> None:
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{api.port}\r\nconnection: close\r\n"
        key = f"authorization: Bearer {api.keys.api_key}\r\ncontent-length: 0\r\n\r\n"
        connection.sendall((head + key).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    assert answer.startswith("HTTP/1.1 404") and "There is no POST" in answer


def test_health(api: Api) -> None:
    answer = api.client.get("/health")
    assert (answer.status_code, answer.json()["status"], answer.json()["model"]) == (200, "ok", "fake")
    api.model.fault = "a kernel gave NaN"
    answer = api.client.get("/health")
    assert (answer.status_code, answer.json()["reason"]) == (503, "a kernel gave NaN")
    assert api.keys.api_key not in answer.text


def test_nobody_without_the_key(api: Api) -> None:
    for key in ("", "Bearer", "Bearer x", f"Bearer {api.keys.api_key}x"):
        for method, path in (("GET", "/health"), ("GET", "/v1/models"), ("POST", "/v1/chat/completions")):
            answer = api.client.request(method, path, headers={"authorization": key})
            assert error(answer) == (401, "A valid API key is needed.")
    assert not api.model.streams


def test_the_walk_over_the_api_s_routes(tmp_path: Path) -> None:
    home = make_home(tmp_path)
    services = build_api(Settings(home, port=8642))
    app = Starlette(routes=api_routes(services))
    found = walk(services.guard.wrap(app), app.routes, services.keys, 8642)
    assert not found.breaches, found.breaches[:5]
    assert {"/health", "/v1/models", "/v1/models/x", "/v1/chat/completions"} <= set(found.paths)
    assert isinstance(services.guard, Guard)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("first", ["", "some"])
def test_a_client_that_leaves_cancels(api: Api, stream: bool, first: str) -> None:
    api.model.answer = lambda request: None
    api.model.new.queue.clear()
    body = json.dumps({"model": "fake", "messages": HELLO, "stream": stream})
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{api.port}\r\n"
    key = f"authorization: Bearer {api.keys.api_key}\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        connection.sendall((head + key + body).encode())
        made = api.model.next_stream()
        if first:
            made.write(first)
            if stream:
                assert connection.recv(1000)
    if stream and first:
        made.write("more")  # it is noticed when it is sent
        made.write("more")
    api.until_left()


def test_many_clients_at_once(api: Api) -> None:
    answers: list[str] = []

    def one(number: int) -> None:
        body = {"model": "fake", "messages": [{"role": "user", "content": str(number)}], "stream": number % 2}
        body["stream"] = bool(number % 2)
        text = api.client.post("/v1/chat/completions", json=body).text
        answers.append(text if f"{number} " in text else f"lost {number}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 48 and not [answer for answer in answers if answer.startswith("lost")]


def test_too_many_clients(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_REQUESTS >= 64
    monkeypatch.setattr("app.api.api.MAX_REQUESTS", 0)
    assert error(api.chat()) == (429, "0 requests run or wait; at most 0 may.")


def test_before_the_model_is_loaded(tmp_path: Path) -> None:
    gate = threading.Event()
    for api in start(tmp_path, FakeModel(echo), gate):
        health = api.client.get("/health")
        assert health.status_code == 503 and "loading" in health.json()["reason"]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(api.chat)
            gate.set()
        assert waiting.result().json()["choices"][0]["message"]["content"] == "You said: hello "
        api.runtime.close()
        assert error(api.chat()) == (503, "Octavo is ending.")
