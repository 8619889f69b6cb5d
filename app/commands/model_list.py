"""What `octavo models` and `octavo models show` print: what is here, the catalogue, how each would do here.

The rows are the page's (library.py); what fits and which variant is best is for engine/fitting/choice.py to
decide. Here they become words.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import Choice, Fit, choose_variant, detect, in_words, read_speed

from ..models.catalogue import Model
from ..models.first_run import Proposal
from ..models.fits import Machine
from ..models.ids import bare, key
from ..models.library import Library
from ..models.model_rows import Row, VariantRow, own_row
from ..models.model_store import ModelStore, as_path, missing
from ..models.own_fits import OwnFits
from ..models.own_models import OwnModel
from ..settings import Settings
from .terminal import show_json, show_table

HEAD = ("model", "parameters", "size", "format", "licence", "state", "here")
WORDS: dict[str, str] = {"fits": "fits", "tight": "tight", "large": "too large", "unserved": "not served"}
LAST = {"missing": 1, "on the hub": 2, "not served": 3}  # states of models that are listed below the others


def list_models(library: Library, as_json: bool) -> None:
    """What is here, by the id that it is chosen by; then what can be fetched, then the rest, shorter."""
    store = library.store
    if as_json:
        models = [_entry(store, model, store.state(model)) for model in store.catalogue.models]
        recommended = dataclasses.asdict(library.proposal())
        others = [{"id": id, "path": str(path)} for id, path in _others(store)]
        return show_json({"models": models, "others": others, "recommended": recommended})
    rows, best = library.listing()
    here = [_here(row, each, best) for row in rows for each in row.variants if each.here]
    rest = [row for row in rows if not any(each.here for each in row.variants)]
    rest.sort(key=lambda row: LAST.get(row.state, 0))
    show_table([HEAD, *here, *(_offered(row, best) for row in rest)], numbers=(1, 2))
    print()
    print(textwrap.fill(f"Recommended: {best.id}, {best.format}. {best.reason}", 100))


def _here(row: Row, variant: VariantRow, best: Proposal) -> tuple[str, ...]:
    state = row.state if row.origin == "yours" else variant.here
    return _line(variant.key, state, row, variant, best)


def _offered(row: Row, best: Proposal) -> tuple[str, ...]:
    """Of its variants that which suits this machine, else the smallest: what is asked is not which to take
    but whether to.
    """
    suits = (each for each in row.variants if each.format == row.choice)
    variant = next(suits, None) or min(row.variants, key=lambda each: each.bytes)
    return _line(row.id, row.state, row, variant, best)


def _line(id: str, state: str, row: Row, variant: VariantRow, best: Proposal) -> tuple[str, ...]:
    size = f"{'~' if variant.about else ''}{in_words(variant.bytes)}"
    is_best = (row.id, variant.format) == (best.id, best.format)
    mark = "recommended" if is_best else WORDS.get(variant.badge, "")
    return id, _count(row.parameters), size, variant.format, row.licence, state, mark


def _count(parameters: int) -> str:
    """135 M, 1.5 B; "" where nobody knows."""
    if not parameters:
        return ""
    return f"{parameters / 1e9:.1f} B" if parameters >= 999.5e6 else f"{parameters / 1e6:.0f} M"


def _others(store: ModelStore) -> Iterator[tuple[str, Path]]:
    """What is here and in no catalogue: id and path."""
    known = store.editions()
    own = [(entry.id, Path(entry.path)) for entry in store.own.entries().values() if entry.path]
    came = [(each.key, each.path) for each in store.installed()]
    yield from ((id, path) for id, path in own + came if id not in known)


def known_of(store: ModelStore, settings: Settings, chosen: str) -> list[dict[str, Any]]:
    """What is known of something here that the catalogue does not describe."""
    if store.catalogue.get(bare(chosen)):
        return []
    target = store.resolve(chosen)
    entry = store.own.entries().get(target) or OwnModel(
        store.id_of(target), target if as_path(target) else ""
    )
    if entry.path:
        context, fit = OwnFits().look(entry, Machine(), settings.engine)
        row = own_row(entry, context, fit)
        facts = {name: getattr(row, name) for name in ("id", "name", "state", "context", "parameters")}
        return [{**facts, "bytes": row.variants[0].bytes, "path": entry.path, "here": row.variants[0].reason}]
    names = ("name", "licence", "context", "parameters", "format", "repo", "revision", "bytes")
    return [
        {
            "id": each.key,
            "state": "ready" if each.whole else "damaged",
            **{name: getattr(each.record, name) for name in names},
            "path": str(each.path),
        }
        for each in store.installed(bare(chosen))
        if chosen in (each.record.id, each.key)
    ]


def show_known(known: list[dict[str, Any]], as_json: bool) -> None:
    """A line for each thing that is known."""
    if as_json:
        return show_json({"models": known})
    for facts in known:
        for name, value in facts.items():
            if not value:
                continue
            if isinstance(value, int):
                value = in_words(value) if name == "bytes" else f"{value:,}"
            print(f"{name}: {value}")


def _entry(store: ModelStore, model: Model, state: str) -> dict[str, Any]:
    first = model.fetched or model.variants[0]
    return {
        "id": model.id,
        "name": model.name,
        "licence": model.licence,
        "context": model.context,
        "parameters": model.parameters,
        "purposes": model.purposes,
        "format": first.format,
        "bytes": first.bytes or None,
        "state": state,
        "here": store.here(model.id),
        "path": str(store.place(model)) if model.fetched else None,
        "variants": [{"format": each.format, "repo": each.repo or None} for each in model.variants],
    }


def show_model(store: ModelStore, model: Model, settings: Settings, as_json: bool) -> None:
    """Every variant as it would do here, which one to take, and why."""
    state, device = store.state(model), detect()
    speed = read_speed(device.cores)
    variants = [(variant.format, variant.bytes) for variant in model.variants]
    choice = choose_variant(model.facts(), variants, device, speed, settings.engine)
    if as_json:
        show_json(
            {
                **dataclasses.asdict(model),
                "state": state,
                "device": dataclasses.asdict(device),
                "read_speed": round(speed),
                "choice": dataclasses.asdict(choice),
            }
        )
        return
    print(f"{model.name} ({model.id}), {state}")
    print(f"{model.parameters / 1e9:.2f} billion parameters, {model.licence}, context {model.context:,}")
    if model.purposes:
        print(f"for {', '.join(model.purposes)}")
    print(f"{device.reason} {in_words(device.memory_available)} are free on {device.name}.")
    print()
    _variants(store, model, choice)
    print()
    print(choice.reason)
    print(f"Speeds are estimates: reading {speed / 1e9:.1f} GB/s, as measured now, once for each token.")
    if state in ("missing", "on the hub"):
        print(missing(model, model.id))
    print("Licence, context, purposes and shape are from:")
    for page in model.sources:
        print(f"  {page}")
    print(f"Checked at the hub: {model.checked or 'not yet'}")


def _variants(store: ModelStore, model: Model, choice: Choice) -> None:
    length = choice.fits[0].chat_length
    last = ("tokens/s", "context", f"chats of {length:,}", "where")
    rows = [("", "variant", "size", "in memory", "quality (1 is best)", *last)]
    here = store.here(model.id)
    places = {
        each.format: "here" if key(model.id, each.format) in here else each.repo or "the package index"
        for each in model.variants
    }
    for fit in choice.fits:
        mark = "*" if fit.format == choice.variant else ""
        size = f"{'about ' if fit.about else ''}{in_words(fit.bytes)}"
        speed, memory = f"about {fit.tokens_per_s:.3g}", in_words(fit.memory_bytes)
        room = *_room(model, fit), places[fit.format]
        rows.append((mark, fit.format, size, memory, str(fit.quality), speed, *room))
    show_table(rows, numbers=(2, 3, 4, 5, 6, 7))
    for fit in choice.fits:
        if fit.note and (fit.fits or fit.ruled_out):
            print(f"{fit.format}: {fit.note}")
    large = [fit.format for fit in choice.fits if not fit.fits and not fit.ruled_out]
    if choice.variant and large:  # where none fits, the reason says so
        print(f"Too large for the memory that is free now: {', '.join(large)}.")


def _room(model: Model, fit: Fit) -> tuple[str, str]:
    if model.unserved:
        return "not served", ""
    if not fit.fits:
        return "not as set" if fit.ruled_out else "does not fit", ""
    if not fit.context_length:
        return "unknown", "unknown"
    return (
        f"{fit.context_length:,}",
        f"{int(fit.chats):,}" if fit.chats >= 10 else f"{int(10 * fit.chats) / 10:g}",
    )
