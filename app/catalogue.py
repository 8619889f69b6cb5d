"""The models a person can pick: models.toml, read and checked.

A variant is one file, joined in order from the members of wheels on the package index. Which of them are on
this machine is model_store.py's to know.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from .errors import AppError, BadCatalogue

T = TypeVar("T")
# in a wheel the file lies beside this module, in a checkout at the root
PLACES = (Path(__file__).with_name("models.toml"), Path(__file__).parent.parent / "models.toml")
SAFE = {  # what becomes a file's name or an argument of pip
    "id": re.compile(r"[a-z0-9][a-z0-9._-]{0,99}"),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.gguf"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "package": re.compile(r"[a-z0-9][a-z0-9._-]{0,99}"),
    "version": re.compile(r"[0-9][0-9A-Za-z.]{0,49}"),
}


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package on the index, and the member of its wheel that is wanted."""

    package: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        """As pip spells it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Variant:
    """One downloadable edition of a model: a file of `bytes` bytes."""

    file: str
    format: str
    bytes: int
    sha256: str
    wheels: tuple[Wheel, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """An entry. `context` in tokens."""

    id: str
    name: str
    licence: str
    context: int
    parameters: int
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All entries, in the file's order."""

    models: tuple[Model, ...]

    def __getitem__(self, id: str) -> Model:
        for model in self.models:
            if model.id == id:
                return model
        known = ", ".join(model.id for model in self.models)
        raise AppError(f"There is no model '{id}'. There are {known}, and any GGUF file by its path.")


def read_catalogue(*paths: Path) -> Catalogue:
    """The program's own catalogue, or the given files joined. Raises BadCatalogue naming entry and key."""
    models: list[Model] = []
    for path in paths or (next((place for place in PLACES if place.exists()), PLACES[0]),):
        try:
            entries = tomllib.loads(path.read_text("utf-8")).get("models", [])
            models += (_model(entry) for entry in _list(entries, "models"))
        except (OSError, ValueError, BadCatalogue) as error:
            raise BadCatalogue(f"{path}: {error}") from error
    ids = [model.id for model in models]
    if len(set(ids)) < len(ids):
        raise BadCatalogue(f"An id stands twice in the catalogue: {', '.join(ids)}.")
    return Catalogue(tuple(models))


def _model(entry: Any) -> Model:
    where = f"model {entry.get('id', '?')!r}" if isinstance(entry, dict) else "a model"
    variants = tuple(_variant(each, where) for each in _list(_get(entry, "variants", where), where))
    return _build(Model, {**entry, "variants": variants}, where)


def _variant(entry: Any, where: str) -> Variant:
    wheels = tuple(_build(Wheel, each, where) for each in _list(_get(entry, "wheels", where), where))
    return _build(Variant, {**entry, "wheels": wheels}, where)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise BadCatalogue(f"{where}: a list with at least one entry is needed, not {value!r}.")
    return value


def _get(entry: Any, key: str, where: str) -> Any:
    if not isinstance(entry, dict) or key not in entry:
        raise BadCatalogue(f"{where}: {key} is missing.")
    return entry[key]


def _build(kind: type[T], entry: dict[str, Any], where: str) -> T:
    """The dataclass `kind` of an entry that has its fields, no others, each of the right type."""
    known = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    for key in known:
        value = _get(entry, key, where)
        sound = {"str": isinstance(value, str) and value != "", "int": type(value) is int and value > 0}
        if not sound.get(known[key], True) or (key in SAFE and not SAFE[key].fullmatch(str(value))):
            raise BadCatalogue(f"{where}: {key} can't be {value!r}.")
    if extra := sorted(set(entry) - set(known)):
        raise BadCatalogue(f"{where}: {extra[0]} is not a key; there are {', '.join(known)}.")
    return kind(**entry)
