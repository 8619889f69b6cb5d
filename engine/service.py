"""The thread that owns an Engine, and the streams through which others hear from it.

Everything that changes the engine happens on this one thread; other threads put commands into a queue and
read their answer from a queue of their own. What they ask without waiting (counts, what a prompt would cost)
they read as it stands. One request's fault ends that request; a fault of the step
itself ends all of them with its text, and the service takes nothing more.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from .engine import Engine
from .errors import DeviceLost, EngineStopped
from .scheduling.plan import Progress
from .scheduling.sequence import Sequence
from .text.detokenizer import Detokenizer
from .types import Delta, EngineStats, Estimate, Finish, FinishReason, SamplingParams, Usage

log = logging.getLogger("octavo.engine")

T = TypeVar("T")
STALL_S = 60.0  # no step lasts that long: an engine with work and no step since then hangs


@dataclass(slots=True)
class Job:
    """A request on the engine thread: how it is sampled, and where its answer goes."""

    params: SamplingParams
    seed: int
    detokenizer: Detokenizer
    submitted: float
    tokenizer: str  # fingerprint
    num_given: int = 0  # of the prompt's tokens, those that the reply begins with
    answers: queue.SimpleQueue[Delta | Finish] = field(default_factory=queue.SimpleQueue)
    first_token: float = 0.0
    num_answer: int = 0  # tokens sampled, the end token not counted


class JobStream:
    """A Stream: what one caller sees of its job."""

    def __init__(self, sequence: Sequence, cancel: Callable[[], None]) -> None:
        self._job: Job = sequence.request
        self._sequence, self._cancel = sequence, cancel
        self.prompt_tokens = sequence.num_prompt - self._job.num_given

    @property
    def read_tokens(self) -> int:
        """See Stream."""
        return min(self._sequence.num_computed, self.prompt_tokens)

    def __iter__(self) -> Iterator[Delta | Finish]:
        while True:
            part = self._job.answers.get()
            yield part
            if isinstance(part, Finish):
                return

    def cancel(self) -> None:
        """Ask for the end; a Finish(CANCELLED) follows within two steps."""
        self._cancel()


class EngineService:
    """Runs the engine's steps while there is work, and sleeps while there is none."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._open: dict[str, Sequence] = {}
        self._last_step = time.monotonic()  # or the moment when there was nothing to do
        self._fault, self._lost = "", False
        self._closed = False
        self._door = threading.Lock()  # nothing is taken after the last command
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def submit(self, sequence: Sequence) -> JobStream:
        """Take a sequence whose `request` is a Job. Raises PromptTooLong or EngineStopped at once."""
        self._engine.scheduler.admit(sequence)
        self._put(lambda: self._add(sequence))
        # whoever keeps an answer that is over should not keep its model
        this, id = weakref.ref(self), sequence.id

        def cancel() -> None:
            if service := this():
                service._commands.put(partial(service._cancel, id))

        return JobStream(sequence, cancel)

    def estimate(self, sequence: Sequence) -> Estimate:
        """What its prompt would cost; it is not taken."""
        num_cached, seconds = self._engine.foresee(sequence)
        return Estimate(sequence.num_prompt, num_cached, seconds)

    def stats(self) -> EngineStats:
        """Counts as they stand; read from any thread, exact between two steps."""
        now = time.monotonic()
        fault = self._fault
        if not fault and self._engine.has_work() and now - self._last_step > STALL_S:
            fault = f"The engine has not finished a step for {now - self._last_step:.0f} s."
        return self._engine.stats(healthy=not fault and not self._closed, fault=fault, lost=self._lost)

    def between_steps(self, do: Callable[[Engine], T]) -> T:
        """What `do` gives or raises, done on the engine's thread. Raises EngineStopped."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(do(self._engine))
            except Exception as error:
                answer.set_exception(error)

        self._put(run)
        try:
            return answer.result(STALL_S)
        except TimeoutError:
            raise EngineStopped(f"The engine has not finished a step for {STALL_S:.0f} s.") from None

    def _put(self, command: Callable[[], None]) -> None:
        """Hand it to the engine's thread. Raises EngineStopped."""
        with self._door:
            if self._closed or self._fault:
                raise EngineStopped(self._fault or "The engine is closed; it takes nothing more.")
            self._commands.put(command)

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._commands.put(None)
        self._thread.join()

    # From here on: the engine's thread.

    def _run(self) -> None:
        try:
            while self._take_commands():
                self._last_step = time.monotonic()
                for progress in self._engine.step():
                    self._deliver(progress)
        except Exception as error:  # the step itself failed: nobody can be served from this state
            log.exception("the engine stopped")
            with self._door:
                self._lost = isinstance(error, DeviceLost)
                self._fault = (
                    str(error) if self._lost else f"The engine stopped: {type(error).__name__}: {error}"
                )
        reason = FinishReason.ERROR if self._fault else FinishReason.CANCELLED
        while self._open or not self._commands.empty():
            if self._open:
                self._finish(next(iter(self._open.values())), reason, self._fault)
            elif command := self._commands.get():
                command()

    def _take_commands(self) -> bool:
        """Carry out what has been asked; wait while there is nothing to do. False when the service closes."""
        while not self._commands.empty() or not self._engine.has_work():
            nap = self._engine.tidy() if self._commands.empty() else None
            try:
                command = self._commands.get(timeout=nap)
            except queue.Empty:
                continue
            if command is None:
                return False
            command()
        return True

    def _add(self, sequence: Sequence) -> None:
        self._open[sequence.id] = sequence
        self._engine.scheduler.add(sequence, time.monotonic())

    def _cancel(self, sequence_id: str) -> None:
        if sequence := self._open.get(sequence_id):
            self._finish(sequence, FinishReason.CANCELLED)

    def _deliver(self, progress: Progress) -> None:
        sequence, now = progress.sequence, time.monotonic()
        if sequence.id not in self._open:
            return
        job: Job = sequence.request
        if progress.token_ids:
            job.first_token = job.first_token or now
        text, kept = "", []
        for token_id in progress.token_ids:
            if progress.reason is FinishReason.STOP and token_id in sequence.end_ids:
                break
            text += job.detokenizer.push(token_id)
            kept.append(token_id)
            if job.detokenizer.stopped:
                break
        job.num_answer += len(kept)
        if kept:
            job.answers.put(Delta(text, tuple(kept)))
        if job.detokenizer.stopped:
            self._finish(sequence, FinishReason.STOP)
        elif progress.reason:
            self._finish(sequence, progress.reason, progress.error)

    def _finish(self, sequence: Sequence, reason: FinishReason, error: str = "") -> None:
        """The last word of a request, whatever ended it; its blocks go back."""
        job: Job = self._open.pop(sequence.id).request
        self._engine.scheduler.abort(sequence.id)  # no effect where it is finished
        if rest := job.detokenizer.finish():
            job.answers.put(Delta(rest, ()))
        del job.detokenizer  # which knows the whole vocabulary
        job.answers.put(Finish(reason, self._usage(sequence, job), error, job.tokenizer))

    def _usage(self, sequence: Sequence, job: Job) -> Usage:
        now = time.monotonic()
        more, since = job.num_answer - 1, now - job.first_token
        return Usage(
            prompt_tokens=sequence.num_prompt,
            cached_tokens=sequence.num_cached,
            completion_tokens=job.num_answer,
            first_token_s=max(0.0, job.first_token - job.submitted) if job.first_token else 0.0,
            tokens_per_s=more / since if job.first_token and more > 0 and since > 0 else 0.0,
        )
