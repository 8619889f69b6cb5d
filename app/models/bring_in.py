"""A file or folder of the person's own, used where it lies: whether it can be, and what it goes by.

One that the catalogue lists is that model: by its hash, or by the repository of the hub that its place names.
Everything else gets a word of its own, made of its name.
"""

from __future__ import annotations

import itertools
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from engine import EngineError

from ..errors import AppError, ModelMissing
from .catalogue import Variant
from .checksums import sha256
from .hub_files import is_weights
from .ids import key
from .local_models import Found
from .model_store import ModelStore, bytes_in


def bring_in(store: ModelStore, given: Path, found: Sequence[Found]) -> str:
    """Its id, under which it can be used from now on. `found`: what is known of the files of other programs.
    Raises AppError if it can't be used.
    """
    from engine import inspect_checkpoint

    if not given.exists():
        raise ModelMissing(f"There is no file or folder {given}.")
    place = _one_file(given)
    if store.own_file(known := store.resolve(str(place))):
        return known  # it was brought in before
    try:
        inside = inspect_checkpoint(place)
    except EngineError as error:
        whole = str(error).startswith(given.name)  # it names the file itself
        raise AppError(str(error) if whole else f"{given.name} can't be used: {error}") from error
    if inside.problems:
        raise AppError(f"{given.name} can't be used: {inside.problems[0]}")
    lies = next((each for each in found if each.path == place), None)
    if id := _listed(store, place, lies.repo if lies else ""):
        store.own.keep(id, path=str(place))
        return id
    name = lies.name if lies else store.id_of(str(given))
    id = _free_id(store, name)
    store.own.keep(id, path=str(place), name=name, parameters=inside.parameters)
    return id


def as_typed(text: str) -> Path:
    """The path that a person typed or pasted, from the root on: in quotes, as file managers copy it, or with
    ~ for the home folder.
    """
    text = text.strip()
    if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return Path(os.path.expanduser(text)).absolute()


def _one_file(place: Path) -> Path:
    """The GGUF file that is all there is in a folder, or what was given: so that both are one model."""
    if place.is_dir() and not (place / "config.json").exists():
        files = list(place.glob("*.[gG][gG][uU][fF]"))
        return files[0] if len(files) == 1 else place
    return place


def _listed(store: ModelStore, place: Path, repo: str) -> str:
    """Which edition of the catalogue it is; "" if it is none, or one that is here already."""
    for model in store.catalogue.models:
        for variant in model.variants:
            id = key(model.id, variant.format)
            if id not in store.here(model.id) and _is_of(place, variant, repo):
                return id
    return ""


def _is_of(place: Path, variant: Variant, repo: str) -> bool:
    if variant.wheels:
        return (
            place.is_file()
            and bytes_in(place, linked=True) == variant.bytes
            and sha256(place) == variant.sha256
        )
    names = (place.name,) if place.is_file() else (each.name for each in place.iterdir())
    is_of_repo = bool(repo) and variant.repo.lower() == repo.lower()
    return is_of_repo and place.is_file() == bool(variant.gguf) and any(is_weights(n, variant) for n in names)


def _free_id(store: ModelStore, name: str) -> str:
    """A word for it, which no other model has."""
    taken = {*store.own.entries(), *(model.id for model in store.catalogue.models)}
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()  # ü: u
    base = re.sub(r"[^a-z0-9._-]+", "-", plain.lower().removesuffix(".gguf")).strip("-._")[:80] or "model"
    ids = (f"{base}-{number}" if number > 1 else base for number in itertools.count(1))
    return next(id for id in ids if id not in taken)
