"""The page of models: what is on this machine, what other programs keep here, the catalogue, what the hub
has; downloads with their progress, and how each model is to be used. Also an empty chat's first day.

A frame is plain data; the list of models comes only when it is another than the page has seen. Drawn by
assets/models/models.js with model_card.js and model_asks.js; the first day's card by first.js.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
import time
from collections.abc import Sequence
from typing import Any

from app import AppError, Library, Runtime, Services

from .acts import act, served
from .shell import part

FRESH_S = 10.0  # what fits changes with the memory that other programs take


class ModelsPage:
    """One object for all tabs."""

    def __init__(self, services: Services) -> None:
        self.library: Library = services.library
        self.runtime: Runtime = services.runtime
        self._lock = threading.Lock()
        self._made, self._listed = 0.0, dict[str, Any]()
        self._sign: object = None

    def build(self) -> None:
        """All of it is one part."""
        scripts = ("models/model_asks", "models/model_card", "models/models", "models/first")
        part("models", *scripts, server_functions=served(ACTS, self), elem_classes=["leaf"])

    def frame(self, data: Any) -> dict[str, Any]:
        """What there is to see; the list only if it is another than the one that the page has `seen`."""
        downloads = [dataclasses.asdict(each) for each in self.library.underway()]
        listed = self._list([each["key"] for each in downloads])
        seen = hashlib.blake2b(json.dumps(listed).encode(), digest_size=12).hexdigest()
        content = {
            "seen": seen,
            "downloads": downloads,
            "runtime": dataclasses.asdict(self.runtime.status()),
            "disk": {**dataclasses.asdict(disk := self.library.disk()), "room": disk.room},
            "token": self.library.token.place,
            "offline": self.library.hub.offline,
        }
        unchanged = isinstance(data, dict) and data.get("seen") == seen
        return content if unchanged else {**content, **listed}

    def _list(self, underway: Sequence[str]) -> dict[str, Any]:
        """The models here, in the catalogue and of other programs. Looked up anew now and then, and at once
        when a download has begun or ended or something was done.
        """
        with self._lock:
            own = self.library.store.own
            here = tuple(each.key for each in self.library.store.installed())
            sign = (tuple(underway), here, tuple(own.entries()), own.problem)
            if sign != self._sign or time.monotonic() - self._made > FRESH_S:
                listed, best = self.library.listing()
                self._listed = {
                    "rows": rows(listed),
                    "found": [
                        {**dataclasses.asdict(each), "path": str(each.path)} for each in self.library.found()
                    ],
                    "proposal": dataclasses.asdict(best),
                    "problem": own.problem,
                }
                self._made, self._sign = time.monotonic(), sign
            return self._listed

    def changed(self) -> None:
        """Look everything up anew."""
        self._sign = None

    # ---- acts

    def start(self, key: str, use: bool) -> dict[str, Any]:
        """Fetch a variant; `use`: and have it answer when it is here."""
        started = ""

        def then() -> None:
            self.changed()
            if use:
                self.library.load(started)

        started = self.library.start(key, then)
        return {"key": started}

    def remove(self, key: str) -> dict[str, Any]:
        """Delete a variant, or forget a file that stays where it is."""
        freed = self.library.remove(key)
        self.changed()
        return {"freed": freed}

    def first(self) -> dict[str, Any]:
        """What an empty chat says where there is nothing but the starter, or not even that."""
        first = dataclasses.asdict(self.library.first())
        wanted = {first["proposal"]["id"], first["starter"]["id"]}
        underway = [each for each in self.library.underway() if each.id in wanted]
        downloads = [dataclasses.asdict(each) for each in underway]
        return {**first, "downloads": downloads, "runtime": dataclasses.asdict(self.runtime.status())}

    def usage(self, id: str) -> dict[str, Any]:
        """How a model is used: what the person wrote, and what counts where that is silent."""
        return self.library.usage(id)

    def use(self, id: str, changes: dict[str, Any]) -> None:
        """Keep how it is to be used."""
        if unknown := set(changes) - {"system_prompt", "context", "sampling"}:
            raise AppError(f"A model has no {sorted(unknown)[0]}.")
        self.library.use(id, **changes)
        self.changed()


def rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    """As the page gets them."""
    return [dataclasses.asdict(each) for each in found]


ACTS = {
    "search": act(lambda page, text: {"rows": rows(page.library.search(text))}, text=str),
    "look": act(lambda page, id: {"row": rows([page.library.look(id)])[0]}, id=str),
    "start": act(ModelsPage.start, key=str, use=bool),
    "pause": act(lambda page, key: page.library.downloads.pause(key), key=str),
    "resume": act(lambda page, key: page.library.downloads.resume(key), key=str),
    "cancel": act(lambda page, key: {"freed": page.library.downloads.cancel(key)}, key=str),
    "remove": act(ModelsPage.remove, key=str),
    "load": act(lambda page, key: page.library.load(key), key=str),
    "unload": act(lambda page: page.runtime.unload()),
    "bring": act(lambda page, path: {"id": page.library.bring_in(path)}, path=str),
    "token": act(lambda page, token: {"place": page.library.token.keep(token)}, token=str),
    "forget": act(lambda page: page.library.token.forget()),
    "first": act(ModelsPage.first),
    "usage": act(ModelsPage.usage, id=str),
    "use": act(ModelsPage.use, id=str, changes=dict),
}
