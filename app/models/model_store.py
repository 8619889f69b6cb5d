"""What models lie here, and the id and the name that each goes by.

    models/<id>/<file>            the file of a catalogue entry, from wheels
    models/<id>/<file>.verified   that it is the one it should be (checksums.py)
    models/<id>/<variant>/        what came from the hub (installed.py); checked when it came
A model has one id, which is stored and typed: id@variant, or a word of the person's own models.toml. Without
the variant it is the best one that is here. Any GGUF file or folder goes by its path, too, and is taken as it
is. What people see is its name. Fetching is pull.py's and hub_fetch.py's, what is inside a file the engine's.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine import FORMATS, in_words, not_served

from ..errors import AppError, DamagedModel, ModelMissing
from ..progress import Progress
from ..settings import Home
from .catalogue import Catalogue, Model
from .checksums import note_of, remember, remembered, sha256
from .ids import bare, key
from .installed import Installed, installed
from .own_models import OwnModels

State = Literal["missing", "unverified", "ready", "damaged", "on the hub", "not served"]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that can be loaded."""

    id: str
    name: str
    path: Path  # of a file or a folder


class ModelStore:
    """The models of one home: the catalogue's, those from the hub, the person's own."""

    def __init__(self, home: Home, catalogue: Catalogue) -> None:
        self.folder, self.catalogue, self.own = home / "models", catalogue, OwnModels(home.path)
        self._packed = home.packed

    def place(self, model: Model) -> Path:
        """Where the file of a model that comes in wheels belongs."""
        assert model.fetched
        return self.folder / model.id / model.fetched.file

    def installed(self, id: str = "") -> list[Installed]:
        """What came from the hub, the best quality first; of one model, or all."""
        found = [each for each in installed(self.folder) if id in ("", each.record.id)]
        return sorted(found, key=lambda each: (each.record.id, _quality(each)))

    # ---- what a model goes by

    def resolve(self, chosen: str) -> str:
        """The one way to write what was chosen: its id, or the path of a file that has none. What nobody
        knows stays as it is.
        """
        if self.own_file(chosen):
            return chosen
        if (path := as_path(chosen)) is not None:
            own = (entry for entry in self.own.entries().values() if entry.path)
            return next((entry.id for entry in own if as_path(entry.path) == path), str(path))
        if "@" in chosen:
            return chosen
        if here := self.here(chosen):
            return here[0]
        model = self.catalogue.get(chosen)
        offered = () if not model else (model.fetched,) if model.fetched else model.variants
        return key(chosen, offered[0].format) if len(offered) == 1 else chosen

    def here(self, id: str) -> list[str]:
        """The ids of what lies here of a model, first that which answers where none is named."""
        model = self.catalogue.get(id)
        own = [key(id, each.format) for each in model.variants] if model else []
        own = [each for each in own if self.own_file(each)]
        if model and model.fetched and self.place(model).is_file():
            own.append(key(id, model.fetched.format))
        found = sorted(self.installed(id), key=lambda each: not each.whole)
        return [*own, *(each.key for each in found)]

    def ready(self) -> list[str]:
        """The ids of all that can be loaded, as far as that is known without reading files."""
        own = [id for id in self.own.entries() if (path := self.own_file(id)) and _is_there(path)]
        wheels = [
            key(model.id, model.fetched.format)
            for model in self.catalogue.models
            if model.fetched and self.place(model).is_file() and self.state(model) in ("ready", "unverified")
        ]
        return list(dict.fromkeys([*own, *wheels, *(each.key for each in self.installed() if each.whole)]))

    def id_of(self, chosen: str) -> str:
        """What is stored of who answered: its id; of a file that has none the name, without where it lies."""
        target = self.resolve(chosen)
        path = None if self.own_file(target) else as_path(target)
        if path is None:
            return target
        from engine import name_of  # of a part that loads numpy

        return name_of(path)

    def name(self, id: str) -> str:
        """What people see: Qwen3 8B, FP8. What nobody knows, as what answered elsewhere, is its own name."""
        id = id if as_path(id) else self.resolve(id)  # "openai/gpt-4o" is no path here
        entry, model = self.own.entries().get(id), self.catalogue.get(bare(id))
        if entry and entry.path and (entry.name or not model):
            return entry.name or id
        if model:
            formats = [each.format for each in model.variants if key(model.id, each.format) == id]
            return f"{model.name}, {formats[0]}" if formats and len(model.variants) > 1 else model.name
        known = (each.record for each in self.installed(bare(id)) if each.key == id)
        return next((f"{record.name}, {record.format}" for record in known), id)

    def editions(self) -> set[str]:
        """The ids of all that the catalogue offers, here or not."""
        return {key(model.id, each.format) for model in self.catalogue.models for each in model.variants}

    def own_file(self, id: str) -> Path | None:
        """The person's own file or folder that this id stands for; None if there is none, or no more where
        the catalogue has another.
        """
        entry = self.own.entries().get(id)
        path = as_path(entry.path) if entry and entry.path else None
        return path if path and (_is_there(path) or not self.catalogue.get(bare(id))) else None

    # ---- its files

    def check(self, chosen: str) -> None:
        """Raises AppError for a name that nothing has and a path where nothing is."""
        target = self.resolve(chosen)
        if (path := self._path(target)) is not None:
            if not _is_there(path):
                raise ModelMissing(f"There is no file or folder {path}.")
            return
        id = bare(target)
        here = [each.key for each in self.installed(id)]
        model = self.catalogue.get(id) if here else self.catalogue[id]
        known = dict.fromkeys([*(key(id, each.format) for each in (model.variants if model else ())), *here])
        if target not in (id, *known):
            raise AppError(f"There is no {target}; there are {', '.join(known)}.")

    def known(self, chosen: str) -> str:
        """The same as `resolve`, of what is known. Raises AppError for what is not."""
        self.check(chosen)
        return self.resolve(chosen)

    def find(self, chosen: str, progress: Progress = lambda stage, part: None) -> ModelFile:
        """The files of what was chosen, verified. Raises AppError, mostly ModelMissing or DamagedModel."""
        self.check(chosen)
        target = self.resolve(chosen)
        name = self.name(self.id_of(target))
        if (path := self._path(target)) is not None:
            return ModelFile(self.id_of(target), name, path)
        id = bare(target)
        model = self.catalogue.get(id)
        if model and model.fetched and target == key(id, model.fetched.format):
            return ModelFile(target, name, self._verified(model, progress))
        here = next((each for each in self.installed(id) if each.key == target), None)
        if here is None:
            raise ModelMissing(missing(model, target))
        if here.whole:
            return ModelFile(target, name, here.path)
        raise DamagedModel(
            f"Files of {target} in {here.path} are gone or cut short. `octavo models remove {target}` "
            "takes the rest away, then fetch it again."
        )

    def state(self, model: Model) -> State:
        """What is known of a model without reading its files."""
        here = self.installed(model.id)
        own = any(self.own_file(key(model.id, each.format)) for each in model.variants)
        if own or any(each.whole for each in here):
            return "ready"
        if not (variant := model.fetched):
            return "damaged" if here else "not served" if model.unserved else "on the hub"
        path = self.place(model)
        if not path.is_file():
            return "missing"
        digest = remembered(path)
        if path.stat().st_size != variant.bytes or digest not in (None, variant.sha256):
            return "damaged"
        return "ready" if digest else "unverified"

    def remove(self, chosen: str) -> int:
        """Delete what lies here of a model, or of one variant; the bytes that are free now."""
        id, _, variant = chosen.partition("@")
        gone = [each.path for each in self.installed(id) if chosen in (id, each.key)]
        model = self.catalogue.get(id)
        if model and model.fetched and (not variant or chosen == key(id, model.fetched.format)):
            gone += [path for path in (self.place(model), note_of(self.place(model))) if path.exists()]
        if not gone:
            raise ModelMissing(f"Nothing of {chosen} is on this machine.")
        gone += [path for path in self._packed_files(gone) if path.exists()]
        freed = sum(bytes_in(path) for path in gone)
        for path in gone:
            _delete(path)
        return freed

    def _packed_files(self, models: list[Path]) -> list[Path]:
        """What the engine made of them, to load them quicker."""
        from engine import packed_file

        return [packed_file(self._packed, path) for path in models]

    def _path(self, target: str) -> Path | None:
        """Where it lies, if it is nothing that was fetched."""
        return self.own_file(target) or as_path(target)

    def _verified(self, model: Model, progress: Progress) -> Path:
        variant, path = model.fetched, self.place(model)
        assert variant
        if not path.is_file():
            raise ModelMissing(missing(model, model.id))
        if path.stat().st_size != variant.bytes:
            found, wanted = path.stat().st_size, variant.bytes
            raise DamagedModel(f"{path} has {found} bytes instead of {wanted}. {_remedy(model)}")
        digest = remembered(path) or remember(path, sha256(path, progress))
        if digest != variant.sha256:
            raise DamagedModel(
                f"{path} is not the file of {model.id}: its SHA-256 is {digest} instead of {variant.sha256}. "
                + _remedy(model)
            )
        return path


def _quality(each: Installed) -> int:
    known = FORMATS.get(each.record.format)
    return known.quality if known else len(FORMATS)


def as_path(chosen: str) -> Path | None:
    """The path that was chosen, from the root on; None if it is an id."""
    is_path = chosen.endswith(".gguf") or "/" in chosen or os.sep in chosen
    return Path(os.path.expanduser(chosen)).absolute() if is_path else None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False


def missing(model: Model | None, chosen: str) -> str:
    """Why a model is not here, and what can be done about it."""
    if model is None:
        return f"Nothing of {chosen} is on this machine."
    if model.unserved:
        return not_served(model.name, model.unserved)
    size = f" ({in_words(model.fetched.bytes)})" if model.fetched else ""
    return f"The model {chosen} is not on this machine. `octavo models pull {model.id}` fetches it{size}."


def _remedy(model: Model) -> str:
    return f"Delete it and run `octavo models pull {model.id}`."


def bytes_in(path: Path, linked: bool = False) -> int:
    """Of a file, or of all files in a folder, or of what they link to; 0 where nothing is."""
    try:
        files = [each for each in path.rglob("*") if not each.is_dir()] if path.is_dir() else [path]
        return sum(each.stat(follow_symlinks=linked).st_size for each in files)
    except OSError:
        return 0


def _delete(path: Path) -> None:
    """A folder first gives up its name, so that a half deleted model is none."""
    try:
        if not path.is_dir():
            return path.unlink()
        grave = path.with_name(f".{path.name}.deleted")
        shutil.rmtree(grave, ignore_errors=True)
        os.replace(path, grave)
        shutil.rmtree(grave)
    except OSError as error:
        raise AppError(f"{path} can't be deleted: {error.strerror}.") from error
