"""Models take turns in memory, in a thread of its own: who is there, who waits, who comes next.

Whoever wants another model stands in a line (line.py): when the answers that run have ended, the models
change places. A model that nobody has used for `keep_alive` minutes is let go of; while `keep_free` is set,
the pool of the loaded one follows what other programs leave.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from dataclasses import dataclass, replace
from typing import Literal
from weakref import WeakSet

from engine import EngineError, trim

from ..errors import AppError, ModelMissing
from ..models.model_store import ModelStore
from ..models.model_usage import settings_for
from ..settings import Settings
from .line import Line, Place, Running
from .loading import STAGES, LoadedModel, Loader, find_and_load

State = Literal["missing", "loading", "ready", "failed", "unloaded"]
LOADING = "The model is loading."
UNLOADED = "The model is not in memory; it is loaded with the next message."
FOLLOW_S = 5.0  # between two looks at what other programs leave free
LOOK_S = 0.2  # between two looks at answers that run, while somebody waits for their end


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """`message` is a sentence for the person, mostly "" when the model is ready; `progress` runs from 0 to 1;
    `next` is the model that comes when the running answers have ended, or "". Models are ids; `name` is what
    people see of the first; `caution` is what should be known of a ready one before it is asked.
    """

    model: str
    state: State
    message: str
    progress: float
    next: str = ""
    name: str = ""
    caution: str = ""


class Rota:
    """Who is in memory. Whoever looks at or calls anything here holds `changed`, unless it says otherwise."""

    def __init__(self, settings: Settings, models: ModelStore, secret: bytes, load: Loader) -> None:
        self.settings, self.closed = settings, False
        self.changed, self._following = threading.Condition(), threading.Lock()
        self.model: LoadedModel | None = None
        self.turned_to = models.resolve(settings.model)  # in memory, or the last that should have been
        self.context_length = 0  # of the last model that was ready
        self.line, self.answers = Line(), WeakSet[Running]()
        self.used = time.monotonic()  # when somebody last asked for something
        self._models, self._secret, self._load = models, secret, load
        self.status = self.stands(self.turned_to, "loading", "The model is not loaded yet.")
        self._thread: threading.Thread | None = None

    def stands(
        self, target: str, state: State, message: str, progress: float = 0.0, next_: str = ""
    ) -> RuntimeStatus:
        """How things stand with a model."""
        id = self._models.id_of(target)
        return RuntimeStatus(id, state, message, progress, next_, self._models.name(id))

    def start(self) -> None:
        """Begin to let them take turns."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="octavo-load", daemon=True)
            self._thread.start()

    def enter(self, target: str, is_choice: bool = False) -> Place:
        """Stand in the line for a model; for none with ""."""
        place = self.line.enter(target, is_choice)
        if self.model is not None:
            self.tell()
        elif self.status.state == "unloaded":
            self.status = replace(self.status, state="loading", message=LOADING)
        self.changed.notify_all()
        return place

    def choose(self, target: str) -> None:
        """The person's choice, which comes in its turn; what was chosen before it need not any more."""
        self.line.drop_choice()
        if self.model and target != self.turned_to:
            self.enter(target, is_choice=True)
        elif self.model:
            self.tell()

    def begun(self) -> Running:
        """An answer that keeps its model in memory until it has ended, or nobody knows of it any more."""
        self.answers.add(answer := Running(self.ended))
        return answer

    def ended(self, answer: Running) -> None:
        """It needs its model no more. Takes the lock by itself."""
        with self.changed:
            self.answers.discard(answer)
            self.used = time.monotonic()
            self.changed.notify_all()

    def tell(self) -> None:
        """The model in memory is ready; say which one comes next, if another one does."""
        target = self.line.first if self.line else ""
        next_ = self._models.id_of(target) if target and target != self.turned_to else ""
        name = self._models.name(next_)
        words = f"When the answers that run have ended, {name} is loaded." if next_ else ""
        status = self.stands(self.turned_to, "ready", words, 1.0, next_)
        self.status = replace(status, caution=self.model.caution if self.model else "")
        self.changed.notify_all()

    # From here on: the thread, which takes the lock by itself.

    def _run(self) -> None:
        while (target := self._next()) is not None:
            self._turn_to(target)

    def _next(self) -> str | None:
        """Sleep until the model in memory should be another; which one, "" for none. None: the end."""
        followed = time.monotonic()
        while True:
            with self.changed:
                if self.closed:
                    return None
                if self.model and self.line and self.line.first == self.turned_to:
                    self._serve()
                if self.line and not self.answers:
                    return self.line.first
                patience = self._patience()
                if patience is not None and patience <= 0:
                    return ""
                model, follows = self.model, self.settings.keep_free_bytes > 0
                naps = [patience, FOLLOW_S if model and follows else None, LOOK_S if self.line else None]
                self.changed.wait(min((nap for nap in naps if nap is not None), default=None))
            if model and follows and time.monotonic() - followed >= FOLLOW_S:
                followed = time.monotonic()
                self.follow(model)

    def follow(self, model: LoadedModel) -> None:
        """Have it leave as much memory free as the settings say now. Of several threads the last says it."""
        with self._following, contextlib.suppress(EngineError):  # it has stopped; whoever asks it is told why
            model.keep_free(self.settings.keep_free_bytes)

    def _patience(self) -> float | None:
        """Seconds until an idle model is let go of; None: never."""
        if not self.settings.keep_alive or self.model is None:
            return None
        if self.answers:
            self.used = time.monotonic()
        return max(self.used + 60 * self.settings.keep_alive - time.monotonic(), 0.0)

    def _turn_to(self, target: str) -> None:
        """Let go of what is in memory and load `target`, "" for nothing."""
        with self.changed:
            model, self.model = self.model, None
            if target:
                self.turned_to = target
                self.status = self.stands(target, "loading", LOADING)
            else:
                self.status = self.stands(self.turned_to, "unloaded", UNLOADED)
                self.line.serve("")
            self.changed.notify_all()
        if model:
            model.close()
            del model  # its memory is wanted for the next one
            trim()
        if target:
            self._load_now(target)

    def _load_now(self, target: str) -> None:
        model: LoadedModel | None = None
        error: Exception | None = None
        settings = settings_for(target, self.settings)
        try:
            model = find_and_load(settings, self._models, self._secret, self._progress, self._load, target)
            if settings.keep_free:
                self.follow(model)
        except (AppError, EngineError) as failed:
            error = failed
            gc.collect()  # a load breaks off anywhere, and what it had made may stand in circles
            trim()
        with self.changed:
            closed = self.closed
            if model and not closed:
                self.model, self.context_length = model, model.context_length
                self.used = time.monotonic()
                self._serve()
            elif error and not closed:
                state: State = "missing" if isinstance(error, ModelMissing) else "failed"
                self.status = self.stands(target, state, str(error))
                for place in self.line.serve(target):
                    place.error = error
            self.changed.notify_all()
        if model and closed:
            model.close()

    def _serve(self) -> None:
        """Whoever waits for the model in memory has it now."""
        for place in self.line.serve(self.turned_to):
            place.answer = self.begun()
        self.tell()

    def _progress(self, stage: str, part: float) -> None:
        words, begin, end = STAGES.get(stage, ("", 0.0, 0.0))
        with self.changed:
            if words and not self.closed:
                message, progress = f"The model is loading: {words}.", begin + part * (end - begin)
                self.status = replace(self.status, message=message, progress=progress)
            self.changed.notify_all()
