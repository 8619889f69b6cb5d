"""The model in memory: loaded in a thread of its own while the page is already there; requests wait for it.

    missing    its file is not on this machine       loading    on its way; what is asked meanwhile waits
    ready      it answers                            failed     it can't be loaded; `message` says why
Knows no chats and no HTTP. The rest of the program sees the engine through the Backend protocol only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from engine import Delta, EngineError, EngineStats, Finish, FinishReason, MemoryPlan, Request, Stream, Usage

from .errors import AppError, LoadFailed, ModelMissing
from .faults import explain
from .model_store import ModelFile, ModelStore, Progress, model_name
from .settings import Settings

State = Literal["missing", "loading", "ready", "failed"]
# what a load goes through -> (in words, where it begins and ends on the way from 0 to 1)
STAGES = {
    "checking": ("its file is checked", 0.0, 0.1),
    "tokenizer": ("reading its vocabulary", 0.1, 0.2),
    "weights": ("reading its weights", 0.2, 0.9),
    "warm-up": ("warming up", 0.9, 1.0),
}


class LoadedModel(Protocol):
    """What a loader gives: an engine.LLM, or whatever stands in for it."""

    @property
    def context_length(self) -> int: ...
    @property
    def plan(self) -> MemoryPlan: ...
    def submit(self, request: Request) -> Stream: ...
    def stats(self) -> EngineStats: ...
    def close(self) -> None: ...


Loader = Callable[[ModelFile, Settings, bytes, Progress], LoadedModel]


def load_llm(file: ModelFile, settings: Settings, secret: bytes, progress: Progress) -> LoadedModel:
    """The real loader; torch and the kernels are imported here and nowhere sooner."""
    from engine import LLM

    packed = settings.home.packed if settings.engine.packed_cache else None
    return LLM.load(
        file.path, settings.engine, name=file.name, secret=secret, packed=packed, on_progress=progress
    )


def find_and_load(
    settings: Settings, models: ModelStore, secret: bytes, progress: Progress, load: Loader = load_llm
) -> LoadedModel:
    """The model that the settings name. Raises AppError or EngineError, whatever goes wrong."""
    try:
        return load(models.find(settings.model, progress), settings, secret, progress)
    except (AppError, EngineError):
        raise
    except MemoryError as error:
        raise LoadFailed("The memory ran out while the model was loaded. Close other programs.") from error
    except Exception as error:
        raise LoadFailed(explain("The model could not be loaded", error)) from error


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """`message` is a sentence for the person, "" when the model is ready; `progress` runs from 0 to 1."""

    model: str
    state: State
    message: str
    progress: float


class Runtime:
    """One model. Any thread may call."""

    def __init__(
        self, settings: Settings, models: ModelStore, secret: bytes = b"", load: Loader = load_llm
    ) -> None:
        self._settings, self._models, self._secret, self._load = settings, models, secret, load
        self._changed = threading.Condition()
        name = model_name(settings.model)
        self._status = RuntimeStatus(name, "loading", "The model is not loaded yet.", 0.0)
        self._model: LoadedModel | None = None
        self._running = self._closed = False

    def start(self) -> None:
        """Load in a thread, unless that is done or under way; again after it failed."""
        with self._changed:
            if self._model or self._closed or self._running:
                return
            self._running = True
            self._set("loading", "The model is loading.")
        threading.Thread(target=self._run, name="octavo-load", daemon=True).start()

    def status(self) -> RuntimeStatus:
        """Where the load stands."""
        return self._status

    @property
    def context_length(self) -> int:
        """The longest conversation in tokens; 0 until the model is ready."""
        return self._model.context_length if self._model else 0

    def stats(self) -> EngineStats | None:
        """How busy the engine is; None until the model is ready."""
        return self._model.stats() if self._model else None

    def fault(self) -> str:
        """Why no tokens can be produced now; "" if they can."""
        stats = self.stats()
        if stats is None:
            return self._status.message
        return "" if stats.healthy else stats.fault or "The engine has not produced a token yet."

    def submit(self, request: Request) -> Stream:
        """Start to answer, at once or when the model is loaded. Raises EngineError or AppError."""
        if self._model is not None:
            return self._model.submit(request)
        if self._status.state != "loading":
            raise AppError(self._status.message)
        return _Waiting(self, request)

    def wait(self, done: Callable[[], bool] = lambda: False) -> RuntimeStatus:
        """Sleep until the load has ended, well or not, or `done` says so after a `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: self._status.state != "loading" or self._closed or done())
            return self._status

    def wake(self) -> None:
        """Let everyone who waits look again."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Cancel what runs and let go of the model's memory."""
        with self._changed:
            self._closed = True
            model, self._model = self._model, None
            self._status = RuntimeStatus(self._status.model, "failed", "Octavo is ending.", 0.0)
            self._changed.notify_all()
        if model:
            model.close()

    def _set(self, state: State, message: str, progress: float = 0.0) -> None:
        with self._changed:
            self._running = state == "loading"
            if not self._closed:
                self._status = RuntimeStatus(self._status.model, state, message, progress)
            self._changed.notify_all()

    def _progress(self, stage: str, part: float) -> None:
        if stage in STAGES:
            words, begin, end = STAGES[stage]
            self._set("loading", f"The model is loading: {words}.", begin + part * (end - begin))

    def _run(self) -> None:
        try:
            model = find_and_load(self._settings, self._models, self._secret, self._progress, self._load)
        except ModelMissing as error:
            return self._set("missing", str(error))
        except (AppError, EngineError) as error:
            return self._set("failed", str(error))
        with self._changed:
            if not self._closed:
                self._model = model
        if self._closed:
            model.close()
        self._set("ready", "", 1.0)


class _Waiting:
    """The stream of a request that came before the model. Iterating raises what submit would have raised."""

    def __init__(self, runtime: Runtime, request: Request) -> None:
        self._runtime, self._request = runtime, request
        self._cancelled = threading.Event()
        self._stream: Stream | None = None

    @property
    def prompt_tokens(self) -> int:
        """See Stream."""
        return self._stream.prompt_tokens if self._stream is not None else 0

    def __iter__(self) -> Iterator[Delta | Finish]:
        self._runtime.wait(self._cancelled.is_set)
        if self._cancelled.is_set():
            yield Finish(FinishReason.CANCELLED, Usage())
            return
        self._stream = self._runtime.submit(self._request)
        if self._cancelled.is_set():  # while it was submitted
            self._stream.cancel()
        yield from self._stream

    def cancel(self) -> None:
        """See Stream."""
        self._cancelled.set()
        self._runtime.wake()
        if self._stream is not None:
            self._stream.cancel()
