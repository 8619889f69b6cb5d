"""Where models lie, and whether a file is the one it should be.

    models/<id>/<file>            the file of a catalogue entry, from wheels
    models/<id>/<file>.verified   what its SHA-256 was, good while the file's size and time stay the same
    models/<id>/<variant>/        what came from the hub (installed.py); checked when it came
A model is chosen by its id, by id@variant, by a word of the person's own models.toml, or by the path of any
GGUF file or folder, which is taken as it is. Fetching is pull.py's and hub_fetch.py's, what is inside a file
the engine's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine import FORMATS, in_words, not_served

from ..errors import AppError, DamagedModel, ModelMissing
from ..settings import Home
from .catalogue import Catalogue, Model
from .installed import Installed, installed, key
from .own_models import OwnModels

Progress = Callable[[str, float], None]  # what is being done, and how far it is, from 0 to 1
CHUNK = 2**20
State = Literal["missing", "unverified", "ready", "damaged", "on the hub", "not served"]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that can be loaded."""

    name: str
    path: Path  # of a file or a folder


def model_name(chosen: str) -> str:
    """What a model is called: its id, or the name of its folder, or its file's without the ending."""
    path = _as_path(chosen)
    if path is None:
        return chosen
    return path.resolve().name if path.is_dir() else path.stem


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

    def check(self, chosen: str) -> None:
        """Raises AppError for a name that nothing has and a path where nothing is."""
        path = self._path(chosen)
        if path is None:
            id = chosen.partition("@")[0]
            if not self.installed(id):
                self.catalogue[id]
        elif not _is_there(path):
            raise ModelMissing(f"There is no file or folder {path}.")

    def find(self, chosen: str, progress: Progress = lambda stage, part: None) -> ModelFile:
        """The files of what was chosen, verified. Raises AppError, mostly ModelMissing or DamagedModel."""
        self.check(chosen)
        if (path := self._path(chosen)) is not None:
            return ModelFile(model_name(chosen), path)
        id = chosen.partition("@")[0]
        if self._is_wheels(chosen):
            return self._verified(self.catalogue[id], progress)
        here = [each for each in self.installed(id) if chosen in (id, each.key)]
        if not here:
            raise ModelMissing(missing(self.catalogue[id] if not self.installed(id) else None, chosen))
        for each in here:
            if each.whole:
                return ModelFile(chosen, each.path)
        raise DamagedModel(
            f"Files of {chosen} in {here[0].path} are gone or cut short. `octavo models remove {chosen}` "
            "takes the rest away, then fetch it again."
        )

    def state(self, model: Model) -> State:
        """What is known of a model without reading its files."""
        here = self.installed(model.id)
        if any(each.whole for each in here):
            return "ready"
        if not (variant := model.fetched):
            return "damaged" if here else "not served" if model.unserved else "on the hub"
        path = self.place(model)
        if not path.is_file():
            return "missing"
        digest = self._remembered(path)
        if path.stat().st_size != variant.bytes or digest not in (None, variant.sha256):
            return "damaged"
        return "ready" if digest else "unverified"

    def remove(self, chosen: str) -> int:
        """Delete what lies here of a model, or of one variant; the bytes that are free now."""
        id, _, variant = chosen.partition("@")
        gone = [each.path for each in self.installed(id) if chosen in (id, each.key)]
        model = next((model for model in self.catalogue.models if model.id == id), None)
        if model and model.fetched and (not variant or chosen == key(id, model.fetched.format)):
            gone += [path for path in (self.place(model), _note(self.place(model))) if path.exists()]
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

    def _path(self, chosen: str) -> Path | None:
        """The path that was chosen, as such or by a word of one's own; None if it is an id."""
        entry = self.own.entries().get(chosen)
        return Path(os.path.expanduser(entry.path)) if entry and entry.path else _as_path(chosen)

    def _is_wheels(self, chosen: str) -> bool:
        """Whether the file from wheels is meant: it alone is offered, or it is here, or it is named."""
        id, _, variant = chosen.partition("@")
        model = next((model for model in self.catalogue.models if model.id == id), None)
        if not model or not model.fetched:
            return False
        if variant:
            return chosen == key(id, model.fetched.format)
        return self.place(model).is_file() or not self.installed(id)

    def _verified(self, model: Model, progress: Progress) -> ModelFile:
        variant, path = model.fetched, self.place(model)
        assert variant
        if not path.is_file():
            raise ModelMissing(missing(model, model.id))
        if path.stat().st_size != variant.bytes:
            found, wanted = path.stat().st_size, variant.bytes
            raise DamagedModel(f"{path} has {found} bytes instead of {wanted}. {_remedy(model)}")
        digest = self._remembered(path) or remember(path, sha256(path, progress))
        if digest != variant.sha256:
            raise DamagedModel(
                f"{path} is not the file of {model.id}: its SHA-256 is {digest} instead of {variant.sha256}. "
                + _remedy(model)
            )
        return ModelFile(model.id, path)

    def _remembered(self, path: Path) -> str | None:
        try:
            note, facts = json.loads(_note(path).read_text("utf-8")), path.stat()
            if (note["bytes"], note["mtime_ns"]) == (facts.st_size, facts.st_mtime_ns):
                return str(note["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None


def _quality(each: Installed) -> int:
    known = FORMATS.get(each.record.format)
    return known.quality if known else len(FORMATS)


def _as_path(chosen: str) -> Path | None:
    """The path that was chosen; None if it is an id of the catalogue."""
    is_path = chosen.endswith(".gguf") or "/" in chosen or os.sep in chosen
    return Path(os.path.expanduser(chosen)) if is_path else None


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


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def remember(path: Path, digest: str) -> str:
    """Note the hash of a file as it is now. Not being able to is no error: it is computed again."""
    facts = path.stat()
    note = {"bytes": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": digest}
    try:
        _note(path).write_text(json.dumps(note), "utf-8")
    except OSError:
        _note(path).unlink(missing_ok=True)
    return digest


def sha256(path: Path, progress: Progress = lambda stage, part: None) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest, done = hashlib.sha256(), 0
    try:
        size = path.stat().st_size
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                done += len(chunk)
                progress("checking", done / size)
    except OSError as error:
        raise AppError(f"{path} can't be read: {error.strerror}.") from error
    return digest.hexdigest()


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
