"""The model in memory, as the rest of the program meets it: one at a time (rota.py says which, and when),
behind the Backend protocol.

    missing    its file is not on this machine       loading    on its way; what is asked meanwhile waits
    ready      it answers                            failed     it can't be loaded; `message` says why
    unloaded   it was let go of, and comes back with the next message
Knows no chats and no HTTP.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial

from engine import (
    BlockStore,
    EngineError,
    EngineStats,
    Estimate,
    MemoryPicture,
    MemoryPlan,
    Request,
    Stream,
    TierPicture,
    disk_picture,
)

from ..errors import AppError
from ..models.model_store import ModelStore
from ..settings import Settings
from .line import Place, Running, Waiting
from .loading import Later, LoadedModel, Loader, load_llm
from .rota import LOADING, Rota, RuntimeStatus

log = logging.getLogger("octavo.memory")


class Runtime:
    """The model in memory, and those that should be. Any thread may call."""

    def __init__(
        self, settings: Settings, models: ModelStore, secret: bytes = b"", load: Loader = load_llm
    ) -> None:
        self._models, self._rota = models, Rota(settings, models, secret, load)
        self._chosen = models.resolve(settings.model)  # by the person: answers where a request names none
        self._targets = {self.next_model: self._chosen}  # id -> what was chosen, which may be a path

    # ---- what is there

    def status(self) -> RuntimeStatus:
        """Which model, and where it stands."""
        return self._rota.status

    @property
    def next_model(self) -> str:
        """What answers where a request names none; another one may still be in memory."""
        return self._models.id_of(self._chosen)

    def id_of(self, chosen: str) -> str:
        """The id of a model, however it is written; "" is the person's choice."""
        return self._models.id_of(self._named(chosen))

    def ids(self) -> list[str]:
        """Of all models that may answer, first what answers where a request names none."""
        return list(dict.fromkeys([self.next_model, *self._models.ready()]))

    def name(self, id: str) -> str:
        """What people see of a model."""
        return self._models.name(id)

    @property
    def context_length(self) -> int:
        """The longest conversation in tokens; 0 until a model was ready."""
        return self._rota.context_length

    @property
    def keep_free(self) -> float:
        """GB that the pool leaves to other programs; 0: as planned."""
        return self._rota.settings.keep_free

    @property
    def plan(self) -> MemoryPlan | None:
        """What memory goes to what; None while no model is in memory."""
        model = self._rota.model
        return model.plan if model else None

    @property
    def backend(self) -> str:
        """The name of the kernels that compute; "" while no model is in memory."""
        model = self._rota.model
        return model.backend if model else ""

    def stats(self) -> EngineStats | None:
        """How busy the engine is; None while no model is in memory."""
        model = self._rota.model
        return model.stats() if model else None

    @property
    def is_lost(self) -> bool:
        """Whether the device failed, so that only a new process gets answers from it."""
        stats = self.stats()
        return stats is not None and stats.lost

    def fault(self) -> str:
        """Why no tokens can be produced now; "" if they can."""
        stats, status = self.stats(), self.status()
        if stats is None:
            return "" if status.state == "unloaded" else status.message
        return "" if stats.healthy else stats.fault or "The engine has not produced a token yet."

    def picture(self) -> MemoryPicture | None:
        """Who holds which block; None while no model is in memory. Raises EngineError."""
        model = self._rota.model
        return model.picture() if model else None

    def free_cached(self) -> int:
        """Let go of what no answer uses now; the bytes that other programs have more. Raises EngineError."""
        model = self._rota.model
        return model.free_cached() if model else 0

    # ---- what chats left behind, in memory and on the disk

    def disk(self) -> TierPicture:
        """How much is on the disk, of all models."""
        settings = self._rota.settings
        return disk_picture(settings.home.blocks, settings.cache_bytes)

    def forget(self, chat: str) -> None:
        """A chat was deleted: what only it left behind goes."""
        if model := self._rota.model:
            with suppress(EngineError):  # it has stopped
                return model.forget(chat)
        try:
            self._blocks.forget(chat)
        except (OSError, sqlite3.Error, ValueError) as error:
            log.warning("What a chat left behind is removed at the next start: %s", error)

    def forget_others(self, chats: Iterable[str]) -> None:
        """What none of these chats left on the disk goes."""
        try:
            self._blocks.keep_only(chats)
        except (OSError, sqlite3.Error, ValueError) as error:
            log.warning("What deleted chats left behind could not be removed: %s", error)

    def clear_disk(self) -> None:
        """Remove all of it from the disk. Raises EngineError or AppError."""
        model = self._rota.model
        try:
            if model is None:
                self._blocks.clear()
            else:
                model.clear_disk()
                self._blocks.clear()  # it may keep nothing on the disk by now
        except OSError as error:
            raise AppError(f"{self._blocks.folder} can't be used: {error.strerror}.") from error

    @property
    def _blocks(self) -> BlockStore:
        return BlockStore(self._rota.settings.home.blocks)

    # ---- asking

    def submit(self, request: Request | Later) -> Stream:
        """Start to answer, at once or when its model is in memory. Raises EngineError or AppError."""
        rota = self._rota
        with rota.changed:
            target, model = self._named(request.model), rota.model
            if model is None or target != rota.turned_to or rota.line:
                is_stuck = rota.status.state in ("missing", "failed") and target == rota.turned_to
                if rota.closed or is_stuck:
                    raise AppError(rota.status.message)
                submit = partial(self._submit_at, request)
                return Waiting(rota.enter(target), self._wait_at, self.wake, submit)
            answer = rota.begun()
        return self._hand(model, request, answer)

    def _submit_at(self, request: Request | Later, place: Place) -> Stream:
        """Start to answer whoever has waited at this place. Raises EngineError or AppError."""
        with self._rota.changed:
            model, answer = self._rota.model, place.answer
            if model is None or answer is None:
                raise AppError(self._rota.status.message)
        return self._hand(model, request, answer)

    def _hand(self, model: LoadedModel, request: Request | Later, answer: Running) -> Stream:
        try:
            written = request.write(model) if isinstance(request, Later) else request
            return answer.over(model.submit(written))
        except BaseException:
            self._rota.ended(answer)
            raise

    def estimate(self, request: Request) -> Estimate:
        """What answering would cost. Raises EngineError, or AppError while its model is not in memory."""
        return self._ready(request.model).estimate(request)

    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """How many tokens each text has. Raises AppError while no model is in memory."""
        return self._ready("").count(texts)

    def _named(self, name: str) -> str:
        """What to load for a model, however it is written; "" is the person's choice."""
        if not name:
            return self._chosen
        return self._targets.get(name) or self._models.resolve(name)

    def _ready(self, name: str) -> LoadedModel:
        rota = self._rota
        with rota.changed:
            if rota.model is None or (name and self._named(name) != rota.turned_to):
                raise AppError(rota.status.message or "Its model is not in memory.")
            return rota.model

    # ---- which model

    def start(self) -> None:
        """Load what should be in memory, unless that is done or under way; again after it failed."""
        rota = self._rota
        with rota.changed:
            if rota.closed:
                return
            self._chosen = self._models.resolve(self._chosen)  # of which nothing may have been here before
            if rota.model is None and not rota.line.wants(self._chosen):
                rota.status = rota.stands(self._chosen, "loading", LOADING, rota.status.progress)
                rota.enter(self._chosen, is_choice=True)
            rota.start()

    def check(self, chosen: str) -> None:
        """Raises AppError for a model that nobody knows."""
        self._models.check(chosen)

    def load(self, chosen: str) -> None:
        """Have this model answer from now on: an id or a path. Raises AppError if nobody knows it."""
        self.check(chosen)
        with self._rota.changed:
            self._chosen = self._models.resolve(chosen)
            self._targets[self.next_model] = self._chosen
            self._rota.choose(self._chosen)
        self.start()

    def unload(self) -> None:
        """Let go of the model when the answers that run have ended; it comes back with the next message."""
        with self._rota.changed:
            if self._rota.model is not None:
                self._rota.enter("", is_choice=True)

    def adopt(self, settings: Settings) -> None:
        """Follow new settings: how long a model stays and what stays free at once, all else from the next
        load on.
        """
        rota = self._rota
        with rota.changed:
            changed = rota.settings.keep_free != settings.keep_free
            rota.settings = settings
            model = rota.model if changed else None
            rota.changed.notify_all()
        if model:
            rota.follow(model)

    # ---- waiting and ending

    def wait(self, done: Callable[[], bool] = lambda: False) -> RuntimeStatus:
        """Sleep until the load has ended, well or not, or `done` says so after a `wake`."""
        rota = self._rota
        with rota.changed:
            rota.changed.wait_for(lambda: rota.status.state != "loading" or rota.closed or done())
            return rota.status

    def _wait_at(self, place: Place, done: Callable[[], bool]) -> None:
        """Sleep until this place's turn has come, or `done`. Raises what kept its model from loading."""
        rota = self._rota
        with rota.changed:
            rota.changed.wait_for(lambda: place.answer or place.error or rota.closed or done())
            rota.line.leave(place)
            if rota.model:
                rota.tell()
        if place.error:
            raise place.error

    def wake(self) -> None:
        """Let everyone who waits look again."""
        with self._rota.changed:
            self._rota.changed.notify_all()

    def close(self) -> None:
        """Cancel what runs and let go of the model's memory."""
        rota = self._rota
        with rota.changed:
            rota.closed = True
            model, rota.model = rota.model, None
            rota.status = replace(rota.status, state="failed", message="Octavo is ending.", next="")
            rota.changed.notify_all()
        if model:
            model.close()
