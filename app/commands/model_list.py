"""What `octavo models` and `octavo models show` print: the catalogue, and how a model would do here.

What fits and which variant is best is for engine/fitting/choice.py to decide; here it becomes words.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import Choice, Fit, choose_variant, detect, in_words, read_speed

from ..models.catalogue import Model
from ..models.fits import Machine, ModelFit, fit_models
from ..models.model_store import ModelStore, bytes_in, missing
from ..settings import Settings
from .terminal import show_json, show_table

HEAD = ("model", "size", "format", "licence", "state", "here")
WORDS = {"fits": "fits", "tight": "tight", "large": "too large", "unserved": "not served"}
LAST = {"missing": 1, "on the hub": 2, "not served": 3}  # states of models that are listed below the others


def list_models(store: ModelStore, settings: Settings, as_json: bool) -> None:
    """All entries: what is here, then what can be fetched, then the rest, shorter."""
    listed = [(model, store.state(model)) for model in store.catalogue.models]
    if as_json:
        others = [{"id": id, "path": str(path)} for id, _, _, _, path in _others(store)]
        show_json({"models": [_entry(store, model, state) for model, state in listed], "others": others})
        return
    models = store.catalogue.models
    fits = dict(zip([model.id for model in models], fit_models(models, Machine(), settings.engine)))
    rows: list[tuple[str, ...]] = []
    for model, state in sorted(listed, key=lambda pair: LAST.get(pair[1], 0)):
        variant = model.fetched
        size = in_words(variant.bytes) if variant else f"{model.parameters / 1e9:.1f} billion"
        formats = variant.format if variant else ", ".join(families(model))
        rows.append((model.id, size, formats, model.licence, state, _word(fits[model.id])))
    mine = [(*each, "ready" if path.exists() else "missing", "") for *each, path in _others(store)]
    show_table([HEAD, *mine, *rows])


def _word(fit: ModelFit) -> str:
    """How the best variant of a model would do."""
    badges = {each.format: each.badge for each in fit.variants}
    return WORDS[badges[fit.choice or fit.variants[0].format]]


def _others(store: ModelStore) -> Iterator[tuple[str, str, str, str, Path]]:
    """What is here and in no catalogue: id, size, format, licence, path."""
    for entry in store.own.entries().values():
        if entry.path:
            yield entry.id, in_words(bytes_in(Path(entry.path), linked=True)), "yours", "", Path(entry.path)
    known = {model.id for model in store.catalogue.models}
    for each in store.installed():
        if each.record.id not in known:
            record = each.record
            yield each.key, in_words(record.bytes), record.format, record.licence, each.path


def known_of(store: ModelStore, chosen: str) -> list[dict[str, Any]]:
    """What is known of something here that the catalogue does not describe."""
    entry = store.own.entries().get(chosen)
    if entry and entry.path:
        path = Path(entry.path)
        size, state = bytes_in(path, linked=True), "ready" if path.exists() else "missing"
        return [{"id": entry.id, "state": state, "bytes": size, "path": str(path)}]
    names = ("name", "licence", "context", "parameters", "format", "repo", "revision", "bytes")
    return [
        {
            "id": each.key,
            "state": "ready" if each.whole else "damaged",
            **{name: getattr(each.record, name) for name in names},
            "path": str(each.path),
        }
        for each in store.installed(chosen.partition("@")[0])
        if chosen in (each.record.id, each.key)
    ]


def show_known(known: list[dict[str, Any]], as_json: bool) -> None:
    """A line for each thing that is known."""
    if as_json:
        return show_json({"models": known})
    for facts in known:
        for name, value in facts.items():
            if value:
                print(f"{name}: {in_words(value) if name == 'bytes' else value}")


def families(model: Model) -> list[str]:
    """bf16, FP8, GGUF ...: its variants' formats, GGUF's and GPTQ's many counted as one."""
    return list(dict.fromkeys(re.split("[ -]", variant.format)[0] for variant in model.variants))


def _entry(store: ModelStore, model: Model, state: str) -> dict[str, Any]:
    first = model.fetched or model.variants[0]
    return {
        "id": model.id,
        "name": model.name,
        "licence": model.licence,
        "context": model.context,
        "parameters": model.parameters,
        "format": first.format,
        "bytes": first.bytes or None,
        "state": state,
        "path": str(store.place(model)) if model.fetched else None,
        "variants": [{"format": each.format, "repo": each.repo or None} for each in model.variants],
    }


def show_model(model: Model, state: str, settings: Settings, as_json: bool) -> None:
    """Every variant as it would do here, which one to take, and why."""
    device = detect()
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
    print(f"{device.reason} {in_words(device.memory_available)} are free on {device.name}.")
    print()
    _variants(model, choice)
    print()
    print(choice.reason)
    print(f"Speeds are estimates: reading {speed / 1e9:.1f} GB/s, as measured now, once for each token.")
    if not model.fetched and not model.unserved:
        print(missing(model, model.id))
    print("Licence, context and shape are from:")
    for page in model.sources:
        print(f"  {page}")
    print(f"Checked at the hub: {model.checked or 'not yet'}")


def _variants(model: Model, choice: Choice) -> None:
    length = choice.fits[0].chat_length
    rows = [
        ("", "variant", "size", "quality (1 is best)", "tokens/s", "context", f"chats of {length:,}", "where")
    ]
    places = {variant.format: variant.repo or "the package index" for variant in model.variants}
    for fit in choice.fits:
        mark = "*" if fit.format == choice.variant else ""
        size = f"{'about ' if fit.about else ''}{in_words(fit.bytes)}"
        speed = f"about {fit.tokens_per_s:.3g}"
        rows.append((mark, fit.format, size, str(fit.quality), speed, *_room(model, fit), places[fit.format]))
    show_table(rows)
    for fit in choice.fits:
        if fit.note and fit.fits:
            print(f"{fit.format}: {fit.note}")
    large = [fit.format for fit in choice.fits if not fit.fits]
    if choice.variant and large:  # where none fits, the reason says so
        print(f"Too large for the memory that is free now: {', '.join(large)}.")


def _room(model: Model, fit: Fit) -> tuple[str, str]:
    if model.unserved:
        return "not served", ""
    if not fit.fits:
        return "does not fit", ""
    if not fit.context_length:
        return "unknown", "unknown"
    return (
        f"{fit.context_length:,}",
        f"{int(fit.chats):,}" if fit.chats >= 10 else f"{int(10 * fit.chats) / 10:g}",
    )
