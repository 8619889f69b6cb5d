"""A model that answers what the test says, when the test says it, behind the same protocol as the engine."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from app.access.keys import Keys
from app.memory.runtime import Runtime
from app.models.catalogue import read_catalogue
from app.models.model_store import ModelFile, ModelStore
from app.progress import Progress
from app.settings import Home, Settings, prepare_process
from engine import (
    Delta,
    EngineStats,
    EngineStopped,
    Estimate,
    Finish,
    FinishReason,
    MemoryPicture,
    Request,
    Usage,
)

PATIENCE_S = 20  # until a test that hangs is given up


class FakeStream:
    """An answer that the test writes. Ids are the code points of its text."""

    prompt_tokens = 10
    read_tokens = 0

    def __init__(self, request: Request) -> None:
        self.request, self.cancelled = request, threading.Event()
        self.tokens = 0
        self._parts: queue.SimpleQueue[Delta | Finish] = queue.SimpleQueue()

    def write(self, text: str) -> None:
        self.tokens += len(text)
        self._parts.put(Delta(text, tuple(map(ord, text))))

    def finish(self, reason: FinishReason = FinishReason.STOP, error: str = "") -> None:
        usage = Usage(self.prompt_tokens, 4, self.tokens, tokens_per_s=50.0, first_token_s=0.25)
        self._parts.put(Finish(reason, usage, error, tokenizer="fake"))

    def cancel(self) -> None:
        self.cancelled.set()
        self.finish(FinishReason.CANCELLED)

    def __iter__(self) -> Iterator[Delta | Finish]:
        while True:
            yield (part := self._parts.get())
            if isinstance(part, Finish):
                return


@dataclass
class FakeModel:
    """`answer` gives the text at once, word by word; None leaves it to the test, through `next_stream`."""

    answer: Callable[[Request], str | None] = lambda request: None
    context_length: int = 2048
    plan: object = None
    refuse: Exception | None = None
    streams: list[FakeStream] = field(default_factory=list)
    new: queue.Queue[FakeStream] = field(default_factory=queue.Queue)
    closed: bool = False
    fault: str = ""
    lost: bool = False
    backend: str = "fake"
    caution: str = ""
    shown: MemoryPicture = field(default_factory=lambda: MemoryPicture((), (), True))
    kept_free: list[int] = field(default_factory=list)
    cached_bytes: int = 0
    forgotten: list[str] = field(default_factory=list)
    cleared: int = 0

    def submit(self, request: Request) -> FakeStream:
        if self.refuse:
            raise self.refuse
        stream = FakeStream(request)
        self.streams.append(stream)
        if request.begin:
            stream.write(request.begin)
        if (text := self.answer(request)) is not None:
            for word in text.split(" "):
                stream.write(word + " ")
            stream.finish()
        self.new.put(stream)
        return stream

    def next_stream(self) -> FakeStream:
        return self.new.get(timeout=PATIENCE_S)

    def estimate(self, request: Request) -> Estimate:
        """A word is a token; all but the last message is cached."""
        *before, last = (count + 4 for count in self.count(tuple(m.content for m in request.messages)))
        return Estimate(sum(before) + last, sum(before), 0.4)

    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(text.split()) for text in texts)

    def stats(self) -> EngineStats:
        counts = dict.fromkeys(("running", "waiting", "used_blocks", "cached_blocks"), 0)
        return EngineStats(**counts, total_blocks=8, healthy=not self.fault, fault=self.fault, lost=self.lost)

    def picture(self) -> MemoryPicture:
        if self.fault:
            raise EngineStopped(self.fault)
        return self.shown

    def free_cached(self) -> int:
        freed, self.cached_bytes = self.cached_bytes, 0
        return freed

    def keep_free(self, num_bytes: int) -> None:
        self.kept_free.append(num_bytes)

    def forget(self, chat: str) -> None:
        self.forgotten.append(chat)

    def clear_disk(self) -> None:
        self.cleared += 1

    def close(self) -> None:
        self.closed = True
        for stream in self.streams:
            stream.cancel()


def echo(request: Request) -> str:
    """Says what was said last."""
    return f"You said: {request.messages[-1].content}"


def fake_loader(model: FakeModel, gate: threading.Event | None = None) -> Callable[..., FakeModel]:
    """A loader that gives `model`, once `gate` is open."""

    def load(file: ModelFile, settings: Settings, secret: bytes, progress: Progress) -> FakeModel:
        progress("weights", 0.5)
        if gate:
            assert gate.wait(PATIENCE_S)
        return model

    return load


def make_home(path: Path) -> Home:
    """A prepared home folder, without touching this process."""
    home = Home(path)
    prepare_process(home, {})
    return home


def model_file(home: Home) -> Path:
    """Something that has a model's name."""
    path = home.path / "fake.gguf"
    path.write_bytes(b"GGUF")
    return path


def make_runtime(home: Home, model: FakeModel, gate: threading.Event | None = None) -> Runtime:
    """A runtime whose model is loaded, unless a gate holds it back."""
    settings = Settings(home, model=str(model_file(home)))
    models = ModelStore(home, read_catalogue())
    runtime = Runtime(settings, models, Keys(home).derive("test"), fake_loader(model, gate))
    runtime.start()
    if gate is None:
        assert runtime.wait().state == "ready"
    return runtime
