"""Where models lie, and whether a file is the one it should be.

    models/<id>/<file>            the file of a catalogue entry
    models/<id>/<file>.verified   what its SHA-256 was, good while the file's size and time stay the same
The path of any GGUF file or folder is taken as it is. Fetching is pull.py's, what is inside the engine's.
Models that lie on the hub alone have no place here yet.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from engine import in_words, not_served

from .catalogue import Catalogue, Model
from .errors import AppError, DamagedModel, ModelMissing
from .settings import Home

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
    """The models folder of one home."""

    def __init__(self, home: Home, catalogue: Catalogue) -> None:
        self.folder, self.catalogue = home / "models", catalogue

    def place(self, model: Model) -> Path:
        """Where the file of a model that can be fetched belongs."""
        assert model.fetched
        return self.folder / model.id / model.fetched.file

    def check(self, chosen: str) -> None:
        """Raises AppError for an id that is in no catalogue and a path where nothing is."""
        path = _as_path(chosen)
        if path is None:
            self.catalogue[chosen]
        elif not _is_there(path):
            raise ModelMissing(f"There is no file or folder {path}.")

    def find(self, chosen: str, progress: Progress = lambda stage, part: None) -> ModelFile:
        """The file of an id, verified, or of a path. Raises AppError, mostly ModelMissing or DamagedModel."""
        self.check(chosen)
        if (path := _as_path(chosen)) is not None:
            return ModelFile(model_name(chosen), path)
        model = self.catalogue[chosen]
        if not (variant := model.fetched):
            raise ModelMissing(on_the_hub(model))
        path = self.place(model)
        if not path.is_file():
            raise ModelMissing(
                f"The model {model.id} is not on this machine. "
                f"`octavo models pull {model.id}` fetches it ({in_words(variant.bytes)})."
            )
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

    def state(self, model: Model) -> State:
        """What is known of a model's file without reading it."""
        if not (variant := model.fetched):
            return "not served" if model.unserved else "on the hub"
        path = self.place(model)
        if not path.is_file():
            return "missing"
        digest = self._remembered(path)
        if path.stat().st_size != variant.bytes or digest not in (None, variant.sha256):
            return "damaged"
        return "ready" if digest else "unverified"

    def _remembered(self, path: Path) -> str | None:
        try:
            note, facts = json.loads(_note(path).read_text("utf-8")), path.stat()
            if (note["bytes"], note["mtime_ns"]) == (facts.st_size, facts.st_mtime_ns):
                return str(note["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None


def _as_path(chosen: str) -> Path | None:
    """The path that was chosen; None if it is an id of the catalogue."""
    is_path = chosen.endswith(".gguf") or "/" in chosen or os.sep in chosen
    return Path(os.path.expanduser(chosen)) if is_path else None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that no file can have
        return False


def on_the_hub(model: Model) -> str:
    """Why a model is not here, and what can be done about it."""
    if model.unserved:
        return not_served(model.name, model.unserved)
    repo = next((variant.repo for variant in model.variants if variant.gguf), "")
    what = "a GGUF file" if repo else "the whole folder"
    repo = repo or model.variants[0].repo
    return (
        f"{model.id} lies in {repo} on the Hugging Face hub, where Octavo can't fetch it yet: "
        f"download {what} from there, then `octavo chat --model PATH` takes it."
    )


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
