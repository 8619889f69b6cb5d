"""The model's way into memory: what is said meanwhile, and what becomes of requests that came too soon."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.errors import AppError
from app.memory.runtime import Runtime
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelStore
from app.settings import Home, Settings
from engine import BadRequest, Delta, Finish, FinishReason, Message, ModelTooLarge, Request
from tests.app.fakes import PATIENCE_S, FakeModel, echo, fake_loader, make_home, make_runtime

HELLO = Request((Message("user", "hello"),))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


def with_loader(home: Home, load: Any, model: str = "smollm2-135m") -> Runtime:
    return Runtime(Settings(home, model=model), ModelStore(home, read_catalogue()), b"", load)


def test_a_model_that_is_not_there(home: Home) -> None:
    runtime = with_loader(home, None)
    assert runtime.status().state == "loading" and runtime.fault()
    runtime.start()
    status = runtime.wait()
    assert (status.model, status.state) == ("smollm2-135m@gguf-q4_1", "missing")
    assert status.name == "SmolLM2 135M Instruct"
    assert "octavo models pull smollm2-135m" in status.message
    with pytest.raises(AppError, match="models pull"):
        runtime.submit(HELLO)
    assert runtime.fault() == status.message and runtime.stats() is None and runtime.context_length == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModelTooLarge("needs 5 GB, 3 GB are free"), "needs 5 GB, 3 GB are free"),
        (
            RuntimeError("odd"),
            "The model could not be loaded; this is a fault in Octavo. The details are in ",
        ),
        (MemoryError(), "The memory ran out"),
    ],
)
def test_a_model_that_can_t_be_loaded(home: Home, error: Exception, said: str) -> None:
    def load(*_: object) -> FakeModel:
        raise error

    make_runtime(home, FakeModel())  # so that the file is there
    runtime = with_loader(home, load, str(home / "fake.gguf"))
    runtime.start()
    status = runtime.wait()
    assert status.state == "failed" and status.message.startswith(said) and "odd" not in status.message
    with pytest.raises(AppError):
        runtime.submit(HELLO)


def test_it_can_be_tried_again(home: Home) -> None:
    runtime = with_loader(home, fake_loader(FakeModel(echo)), str(home / "fake.gguf"))
    runtime.start()
    assert runtime.wait().state == "missing"
    (home / "fake.gguf").write_bytes(b"GGUF")
    runtime.start()
    assert runtime.wait().state == "ready"


def test_a_request_waits_for_the_model(home: Home) -> None:
    gate = threading.Event()
    runtime = make_runtime(home, FakeModel(echo), gate)
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(list, runtime.submit(HELLO)) for _ in range(2)]
        status = runtime.status()
        assert status.state == "loading" and not any(answer.done() for answer in answers)
        gate.set()
        for answer in answers:
            *parts, end = answer.result(PATIENCE_S)
            assert "".join(part.text for part in parts if isinstance(part, Delta)) == "You said: hello "
            assert isinstance(end, Finish) and end.reason is FinishReason.STOP
    assert runtime.status().message == "" and runtime.fault() == "" and runtime.context_length == 2048


def test_progress_only_grows(home: Home) -> None:
    seen: list[float] = []

    def load(file: object, settings: object, secret: object, progress: object) -> FakeModel:
        for stage in ("checking", "tokenizer", "weights", "warm-up"):
            for part in (0.0, 0.5, 1.0):
                progress(stage, part)  # type: ignore[operator]
                seen.append(runtime.status().progress)
                assert "loading" in runtime.status().message
        return FakeModel()

    make_runtime(home, FakeModel())
    runtime = with_loader(home, load, str(home / "fake.gguf"))
    runtime.start()
    assert runtime.wait().progress == 1.0
    assert seen == sorted(seen) and len(set(seen)) > 6


def test_a_waiting_request_is_cancelled_at_once(home: Home) -> None:
    gate = threading.Event()
    model = FakeModel()
    runtime = make_runtime(home, model, gate)
    stream = runtime.submit(HELLO)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(list, stream)
        stream.cancel()
        (end,) = answer.result(PATIENCE_S)
    assert isinstance(end, Finish) and end.reason is FinishReason.CANCELLED and not model.streams
    gate.set()


def test_a_waiting_request_hears_what_the_engine_says_of_it(home: Home) -> None:
    gate = threading.Event()
    runtime = make_runtime(home, FakeModel(refuse=BadRequest("too long")), gate)
    stream = runtime.submit(HELLO)
    gate.set()
    with pytest.raises(BadRequest, match="too long"):
        list(stream)


def test_closing_while_it_loads(home: Home) -> None:
    gate, model, before = threading.Event(), FakeModel(), set(threading.enumerate())
    runtime = make_runtime(home, model, gate)
    stream = runtime.submit(HELLO)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(list, stream)
        runtime.close()
        with pytest.raises(AppError, match="ending"):
            answer.result(PATIENCE_S)
    gate.set()
    (load,) = [each for each in {*threading.enumerate()} - before if each.name == "octavo-load"]
    load.join(PATIENCE_S)
    assert model.closed and runtime.status().state == "failed"


def test_closing_closes_the_model(home: Home) -> None:
    model = FakeModel()
    runtime = make_runtime(home, model)
    runtime.close()
    runtime.close()
    assert model.closed


def test_health_is_the_engine_s(home: Home) -> None:
    model = FakeModel()
    runtime = make_runtime(home, model)
    assert runtime.fault() == ""
    model.fault = "a kernel gave NaN"
    assert runtime.fault() == "a kernel gave NaN"
