"""What a person sees of a model: one row, wherever it comes from.

Plain data for the page and for commands. Looks at no hub and decides nothing: what fits is fits.py's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from .catalogue import Model, Variant
from .fits import ModelFit, VariantFit
from .hub_search import Hit
from .ids import key
from .installed import Installed, Record
from .model_store import ModelStore, State, bytes_in
from .own_models import OwnModel

Origin = Literal["catalogue", "hub", "yours"]


@dataclass(frozen=True, slots=True)
class VariantRow:
    """One edition. `here`: "" it is not, "ready", "damaged"; `about`: its bytes are computed."""

    key: str
    format: str
    bytes: int
    about: bool
    badge: str
    reason: str
    here: str
    source: str  # repository, "wheels" or path
    yours: bool  # a file that is used where it lies


@dataclass(frozen=True, slots=True)
class Row:
    """A model. Numbers are 0 and texts "" where nobody knows. `choice`: the format to take; `reason`: why."""

    id: str
    name: str
    licence: str
    context: int
    parameters: int
    purposes: tuple[str, ...]
    origin: Origin
    state: State
    gated: bool
    downloads: int
    choice: str
    reason: str
    variants: tuple[VariantRow, ...]


def with_sizes(store: ModelStore, model: Model, here: Sequence[Installed]) -> Model:
    """The model with the true size of what is here of it."""
    sizes = {each.record.format: each.record.bytes for each in here if each.record.id == model.id}
    own = {each.format: store.own_file(key(model.id, each.format)) for each in model.variants}
    sizes |= {format: bytes_in(path, linked=True) for format, path in own.items() if path}
    each = (replace(variant, bytes=sizes.get(variant.format, variant.bytes)) for variant in model.variants)
    return replace(model, variants=tuple(each))


def row(
    store: ModelStore, model: Model, fit: ModelFit, here: Sequence[Installed], origin: Origin, hit: Hit | None
) -> Row:
    """Of a model as the catalogue or the hub describes it."""
    mine = {each.record.format: each for each in here if each.record.id == model.id}
    state = store.state(model)
    whole = {format: "ready" if each.whole else "damaged" for format, each in mine.items()}
    if model.fetched and store.place(model).is_file():
        whole[model.fetched.format] = "damaged" if state == "damaged" else "ready"
    pairs = zip(model.variants, fit.variants)
    variants = tuple(_variant(store, model, each, badge, whole.get(each.format, "")) for each, badge in pairs)
    return Row(
        id=model.id,
        name=model.name,
        licence=model.licence,
        context=model.context,
        parameters=model.parameters,
        purposes=model.purposes,
        origin=origin,
        state=state,
        gated=hit is not None and hit.gated,
        downloads=hit.downloads if hit else 0,
        choice=fit.choice or "",
        reason=fit.reason,
        variants=variants,
    )


def _variant(store: ModelStore, model: Model, variant: Variant, fit: VariantFit, here: str) -> VariantRow:
    id = key(model.id, variant.format)
    own = store.own_file(id)
    return VariantRow(
        id,
        variant.format,
        fit.bytes,
        fit.about,
        fit.badge,
        fit.reason,
        "ready" if own else here,
        str(own) if own else variant.repo or "wheels",
        own is not None,
    )


def own_row(entry: OwnModel, context: int = 0, fit: VariantFit | None = None) -> Row:
    """Of a file or folder that is used where it lies, with what own_fits.py knows of it."""
    path = Path(entry.path)
    format = "folder" if path.is_dir() else "GGUF"
    here = "ready" if path.exists() else "damaged"
    badge, reason = (fit.badge, fit.reason) if fit else ("", "")
    reason = reason if here == "ready" else f"There is no file or folder {path}."
    size = bytes_in(path, linked=True)
    only = VariantRow(entry.id, format, size, False, badge, reason, here, entry.path, yours=True)
    state: State = "ready" if here == "ready" else "missing"
    return Row(
        id=entry.id,
        name=entry.name or entry.id,
        licence="",
        context=context,
        parameters=entry.parameters,
        purposes=(),
        origin="yours",
        state=state,
        gated=False,
        downloads=0,
        choice="",
        reason=reason,
        variants=(only,),
    )


def record_model(records: Sequence[Record]) -> Model:
    """A model that stands in no catalogue, from what was noted when its variants were fetched."""
    first = records[0]
    variants = tuple(Variant(each.format, bytes=each.bytes, repo=each.repo) for each in records)
    facts = (first.id, first.name, first.licence, first.context, first.parameters)
    return Model(*facts, variants, borrowed=first.borrowed)
