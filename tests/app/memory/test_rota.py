"""Several models, one place in memory: who waits for whom, what is let go of, what is said meanwhile."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from app.errors import AppError, LoadFailed
from app.memory.loading import find_and_load
from app.memory.runtime import Runtime
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelFile, ModelStore
from app.models.own_models import OwnModels
from app.settings import Home, Settings
from engine import EngineError, Finish, FinishReason, Message, Request, Stream
from tests.app.fakes import PATIENCE_S, FakeModel, make_home

HELLO = Request((Message("user", "hello"),))


@dataclass
class Shelf:
    """Two models on the disk, and what was loaded of them."""

    home: Home
    broken: set[str] = field(default_factory=set)
    loaded: list[str] = field(default_factory=list)
    models: list[FakeModel] = field(default_factory=list)
    free: list[float] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def load(self, file: ModelFile, settings: Settings, *_: object) -> FakeModel:
        self.loaded.append(file.name)
        self.arrived.release()
        if file.name in self.broken:
            raise LoadFailed(f"{file.name} is broken.")
        self.free.append(settings.keep_free)
        self.models.append(FakeModel())
        return self.models[-1]

    def path(self, name: str) -> str:
        return str(self.home / f"{name}.gguf")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(make_home(tmp_path))
    for name in ("verso", "recto"):
        Path(shelf.path(name)).write_bytes(b"GGUF")
    return shelf


@pytest.fixture
def runtime(shelf: Shelf) -> Iterator[Runtime]:
    settings = Settings(shelf.home, model=shelf.path("verso"))
    runtime = Runtime(settings, ModelStore(shelf.home, read_catalogue()), b"", shelf.load)
    runtime.start()
    assert runtime.wait().state == "ready"
    yield runtime
    runtime.close()


def until(runtime: Runtime, state: str, model: str = "verso") -> None:
    """Wait for a status; the runtime tells of each change."""
    with runtime._rota.changed:
        assert runtime._rota.changed.wait_for(
            lambda: (runtime.status().state, runtime.status().model) == (state, model), PATIENCE_S
        ), runtime.status()


def named(shelf: Shelf, name: str) -> Request:
    return replace(HELLO, model=shelf.path(name))


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what nobody names any more is let go of."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_model_is_gone_before_the_next_is_loaded(shelf: Shelf, no_collector: None) -> None:
    models, held = list[weakref.ref[FakeModel]](), list[int]()

    def load(*_: object) -> FakeModel:
        held.append(sum(model() is not None for model in models))
        models.append(weakref.ref(model := FakeModel(lambda request: "yes")))
        return model

    settings = Settings(shelf.home, model=shelf.path("verso"))
    runtime = Runtime(settings, ModelStore(shelf.home, read_catalogue()), b"", load)
    runtime.start()
    for name in ("verso", "recto", "verso"):
        list(runtime.submit(named(shelf, name)))
    runtime.unload()
    until(runtime, "unloaded")
    list(runtime.submit(named(shelf, "recto")))
    assert held == [0, 0, 0, 0]
    runtime.close()


def test_a_load_that_failed_holds_nothing(shelf: Shelf, no_collector: None) -> None:
    weights = list[weakref.ref[FakeModel]]()

    def read() -> None:
        own = FakeModel()
        weights.append(weakref.ref(own))
        raise ValueError("NaN")

    def load(*_: object) -> FakeModel:
        own = FakeModel()
        weights.append(weakref.ref(own))
        try:
            read()
        except ValueError as error:
            raise EngineError("The weights are no numbers.") from error
        return own

    settings, store = Settings(shelf.home, model="verso"), ModelStore(shelf.home, read_catalogue())
    with pytest.raises(EngineError, match="no numbers") as failed:
        find_and_load(settings, store, b"", lambda stage, part: None, load, shelf.path("verso"))
    assert failed.value and [own() for own in weights] == [None, None]


def test_another_model_waits_until_running_answers_have_ended(shelf: Shelf, runtime: Runtime) -> None:
    running = runtime.submit(HELLO)
    other = runtime.submit(named(shelf, "recto"))
    status = runtime.status()
    assert (status.model, status.state, status.next) == ("verso", "ready", "recto")
    assert status.message == "When the answers that run have ended, recto is loaded."
    again = runtime.submit(HELLO)  # behind the other: nobody is kept out for ever
    verso = shelf.models[0]
    assert len(verso.streams) == 1 and shelf.loaded == ["verso"]
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(list, stream) for stream in (running, other, again)]
        verso.next_stream().finish()
        assert answers[0].result(PATIENCE_S)[-1].reason is FinishReason.STOP
        until(runtime, "ready", "recto")
        assert verso.closed
        shelf.models[1].next_stream().finish()
        assert answers[1].result(PATIENCE_S)[-1].reason is FinishReason.STOP
        until(runtime, "ready", "verso")
        shelf.models[2].next_stream().finish()
        assert answers[2].result(PATIENCE_S)[-1].reason is FinishReason.STOP
    assert shelf.loaded == ["verso", "recto", "verso"]
    assert runtime.status().message == "" and runtime.status().next == ""


def test_what_should_be_known_of_a_model_is_said_while_it_is_ready(shelf: Shelf, runtime: Runtime) -> None:
    shelf.models[0].caution = "It was never taught to chat."
    running = runtime.submit(HELLO)
    runtime.submit(named(shelf, "recto"))
    assert runtime.status().caution == "It was never taught to chat."
    shelf.models[0].next_stream().finish()
    list(running)
    until(runtime, "ready", "recto")
    assert runtime.status().caution == ""


def test_a_name_is_as_good_as_the_path_it_came_from(shelf: Shelf, runtime: Runtime) -> None:
    runtime.load(shelf.path("recto"))
    until(runtime, "ready", "recto")
    runtime.submit(replace(HELLO, model="recto"))
    shelf.models[1].next_stream().finish()
    stream = runtime.submit(replace(HELLO, model="verso"))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(list, stream)
        until(runtime, "ready", "verso")
        shelf.models[2].next_stream().finish()
        answer.result(PATIENCE_S)
    assert runtime.submit(HELLO) is not None  # names none: the one that was chosen, recto
    until(runtime, "ready", "recto")


def test_a_model_that_fails_leaves_the_old_one_within_reach(shelf: Shelf, runtime: Runtime) -> None:
    shelf.broken = {"recto"}
    runtime.load(shelf.path("recto"))
    until(runtime, "failed", "recto")
    assert runtime.status().message == "recto is broken."
    for request in (HELLO, named(shelf, "recto")):
        with pytest.raises(AppError, match="recto is broken"):
            runtime.submit(request)
    stream = runtime.submit(named(shelf, "verso"))
    until(runtime, "ready", "verso")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(list, stream)
        shelf.models[1].next_stream().finish()
        answer.result(PATIENCE_S)
    shelf.broken = set()
    runtime.load(shelf.path("recto"))
    until(runtime, "ready", "recto")


def test_whoever_waits_for_a_model_that_fails_is_told(shelf: Shelf, runtime: Runtime) -> None:
    shelf.broken = {"recto"}
    stream = runtime.submit(named(shelf, "recto"))
    with pytest.raises(AppError, match="recto is broken"):
        list(stream)


def test_a_choice_can_be_taken_back(shelf: Shelf, runtime: Runtime) -> None:
    running = runtime.submit(HELLO)
    runtime.load(shelf.path("recto"))
    assert runtime.status().next == "recto"
    runtime.load(shelf.path("verso"))
    assert (runtime.status().next, runtime.status().message) == ("", "")
    runtime.load(shelf.path("recto"))
    waits = runtime.submit(named(shelf, "recto"))  # who waits for it still does
    runtime.load(shelf.path("verso"))
    assert runtime.status().next == "recto"
    waits.cancel()
    list(waits)
    shelf.models[0].next_stream().finish()
    list(running)
    list_again = runtime.submit(HELLO)
    shelf.models[0].next_stream().finish()
    list(list_again)
    assert shelf.loaded == ["verso"] and not runtime._rota.line


def test_a_choice_can_be_taken_back_while_a_model_loads(shelf: Shelf) -> None:
    gates = {"verso": threading.Event(), "recto": threading.Event()}

    def load(file: ModelFile, *_: object) -> FakeModel:
        assert gates[file.name].wait(PATIENCE_S)
        return shelf.load(file, settings)

    settings = Settings(shelf.home, model=shelf.path("verso"))
    runtime = Runtime(settings, ModelStore(shelf.home, read_catalogue()), b"", load)
    runtime.start()
    until(runtime, "loading")
    runtime.load(shelf.path("recto"))
    runtime.load(shelf.path("verso"))
    gates["verso"].set()
    until(runtime, "ready")
    assert runtime.status().next == "" and not runtime._rota.line and shelf.loaded == ["verso"]
    running = runtime.submit(HELLO)
    runtime.unload()
    runtime.load(shelf.path("verso"))  # it is wanted after all
    shelf.models[0].next_stream().finish()
    list(running)
    assert not runtime._rota.line and not shelf.models[0].closed
    runtime.close()


def test_unload_and_back_with_the_next_message(shelf: Shelf, runtime: Runtime) -> None:
    running = runtime.submit(HELLO)
    runtime.unload()
    assert runtime.status().state == "ready"
    shelf.models[0].next_stream().finish()
    list(running)
    until(runtime, "unloaded")
    assert shelf.models[0].closed and runtime.stats() is None and runtime.picture() is None
    assert runtime.fault() == "" and "next message" in runtime.status().message
    assert runtime.context_length == 2048  # pages go on showing how much a chat may hold
    stream = runtime.submit(HELLO)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(list, stream)
        until(runtime, "ready")
        shelf.models[1].next_stream().finish()
        assert isinstance(answer.result(PATIENCE_S)[-1], Finish)


def test_an_idle_model_is_let_go_of(shelf: Shelf, runtime: Runtime) -> None:
    runtime.adopt(Settings(shelf.home, model=shelf.path("verso"), keep_alive=1e-9))
    until(runtime, "unloaded")
    runtime.start()
    until(runtime, "unloaded")  # and again
    assert shelf.loaded == ["verso", "verso"]


def test_a_model_that_answers_is_not_idle(shelf: Shelf, runtime: Runtime) -> None:
    running = runtime.submit(HELLO)
    runtime.adopt(Settings(shelf.home, model=shelf.path("verso"), keep_alive=1e-9))
    assert runtime.status().state == "ready" and not shelf.models[0].closed
    shelf.models[0].next_stream().finish()
    list(running)
    until(runtime, "unloaded")


def test_an_answer_nobody_listens_to_any_more_keeps_nobody_out(shelf: Shelf, runtime: Runtime) -> None:
    dropped: Stream | None = runtime.submit(HELLO)
    runtime.load(shelf.path("recto"))
    assert runtime.status().model == "verso"
    del dropped
    until(runtime, "ready", "recto")


def test_a_waiting_request_that_is_cancelled_leaves_the_line(shelf: Shelf, runtime: Runtime) -> None:
    running = runtime.submit(HELLO)
    other = runtime.submit(named(shelf, "recto"))
    other.cancel()
    assert [part.reason for part in other] == [FinishReason.CANCELLED]  # type: ignore[union-attr]
    assert runtime.status().next == ""
    shelf.models[0].next_stream().finish()
    list(running)
    list_again = runtime.submit(HELLO)
    shelf.models[0].next_stream().finish()
    list(list_again)
    assert shelf.loaded == ["verso"]


def test_keep_free_is_told_to_the_model_that_is_there_and_to_the_next(shelf: Shelf, runtime: Runtime) -> None:
    settings = Settings(shelf.home, model=shelf.path("verso"), keep_free=1.5)
    runtime.adopt(settings)
    assert shelf.models[0].kept_free == [1_500_000_000]
    runtime.load(shelf.path("recto"))
    until(runtime, "ready", "recto")
    assert shelf.models[1].kept_free == [1_500_000_000] and shelf.free == [0.0, 1.5]
    runtime.adopt(replace(settings, keep_free=0.0))
    assert shelf.models[1].kept_free[-1] == 0


def test_what_is_kept_free_is_what_was_said_last(
    shelf: Shelf, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the model takes to follow what was said before."""
    model, begun, go_on = shelf.models[0], threading.Event(), threading.Event()

    def slowly(num_bytes: int) -> None:
        if num_bytes:
            begun.set()
            assert go_on.wait(PATIENCE_S)
        model.kept_free.append(num_bytes)

    monkeypatch.setattr(model, "keep_free", slowly)
    settings = Settings(shelf.home, model=shelf.path("verso"), keep_free=1.5)
    changes = [
        threading.Thread(target=runtime.adopt, args=[each])
        for each in (settings, replace(settings, keep_free=0.0))
    ]
    changes[0].start()
    assert begun.wait(PATIENCE_S)
    changes[1].start()
    changes[1].join(0.1)
    go_on.set()
    for change in changes:
        change.join(PATIENCE_S)
    assert model.kept_free[-1] == 0


def test_a_model_is_the_same_however_it_is_written(shelf: Shelf, runtime: Runtime) -> None:
    OwnModels(shelf.home.path).keep("mine", path=shelf.path("recto"), name="My model")
    runtime.load(shelf.path("recto"))
    until(runtime, "ready", "mine")
    assert runtime.status().name == "My model" and runtime.id_of(shelf.path("recto")) == "mine"
    runtime.load("mine")
    for name in ("mine", shelf.path("recto"), ""):
        runtime.submit(replace(HELLO, model=name))
    assert shelf.loaded == ["verso", "My model"] and not runtime._rota.line


def test_an_unknown_model_is_refused(runtime: Runtime) -> None:
    with pytest.raises(AppError):
        runtime.load("no-such-model")
    stream = runtime.submit(replace(HELLO, model="no-such-model"))
    with pytest.raises(AppError, match="no-such-model"):
        list(stream)
