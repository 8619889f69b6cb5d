"""Model files that other programs or the person keep on this machine, to be used where they lie.

    Octavo         models/*.gguf  models/<folder>/     what lies there by hand; below is what was fetched

    Hugging Face   hub/models--<owner>--<name>/snapshots/<revision>/     files, or a folder with config.json
    LM Studio      models/<publisher>/<repository>/*.gguf
    Ollama         models/manifests/<registry>/<owner>/<name>/<tag>      JSON that names one of models/blobs
Looks at names and sizes only; whether the engine can run one is found when it is brought in. What cannot be
read is passed over, and nothing is ever written there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

MOST = 500  # models of one program
MAX_MANIFEST = 1 << 20  # bytes
MODEL_LAYER = "application/vnd.ollama.image.model"
DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
LATER_PART = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class Found:
    """A model of another program."""

    source: str
    name: str
    path: Path
    bytes: int
    repo: str = ""  # of the hub, where its place says so


def find_models(environ: Mapping[str, str], user: Path, own: Path | None = None) -> list[Found]:
    """All that are there, by program and name. `user`: the person's own folder; `own`: Octavo's of models."""
    cache = Path(environ.get("XDG_CACHE_HOME") or user / ".cache")
    hub = environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or cache / "huggingface") / "hub"
    places = (
        *(((_own, own),) if own else ()),
        (_hugging_face, Path(hub)),
        (_lm_studio, user / ".lmstudio" / "models"),
        (_lm_studio, cache / "lm-studio" / "models"),
        (_ollama, Path(environ.get("OLLAMA_MODELS") or user / ".ollama" / "models")),
        (_ollama, Path("/usr/share/ollama/.ollama/models")),  # where Linux runs it as a service
    )
    found: dict[Path, Found] = {}
    for look, place in places:
        with contextlib.suppress(OSError):
            for each in islice(look(place), MOST):
                found.setdefault(each.path.resolve(), each)
    return sorted(found.values(), key=lambda each: (each.source, each.name.lower()))


def _own(models: Path) -> Iterator[Found]:
    yield from _files("Octavo", models, models, "")
    for folder in sorted(each for each in models.glob("[!.]*") if each.is_dir()):
        yield from _repository("Octavo", folder.name, folder, models)


def _repository(source: str, name: str, folder: Path, root: Path, before: str = "") -> Iterator[Found]:
    """A folder as a repository has it, and each GGUF in it."""
    weights = [path for path in folder.glob("*.safetensors") if path.is_file()]
    if weights and (folder / "config.json").is_file():
        yield Found(source, name, folder, sum(map(_size, weights)), before.rstrip("/"))
    yield from _files(source, folder, root, before, before.rstrip("/"))


def _hugging_face(hub: Path) -> Iterator[Found]:
    for repo in sorted(hub.glob("models--*--*")):
        name = repo.name.removeprefix("models--").replace("--", "/", 1)
        snapshots = [path for path in (repo / "snapshots").glob("*") if path.is_dir()]
        with contextlib.suppress(OSError):
            main = (repo / "refs" / "main").read_text("utf-8").strip()
            snapshots = [path for path in snapshots if path.name == main] or snapshots
        for snapshot in sorted(snapshots, key=_time)[-1:]:
            yield from _repository("Hugging Face", name, snapshot, snapshot, f"{name}/")


def _lm_studio(models: Path) -> Iterator[Found]:
    for folder in sorted(path for path in models.glob("*/*") if path.is_dir()):
        yield from _files("LM Studio", folder, models, "", folder.relative_to(models).as_posix())


def _files(source: str, folder: Path, root: Path, before: str, repo: str = "") -> Iterator[Found]:
    """Each GGUF in a folder; one in parts by the first of them."""
    for path in sorted(folder.glob("*.gguf")):
        if not path.is_file() or path.name.startswith("mmproj") or LATER_PART.search(path.name):
            continue
        stem = path.name.replace("-00001-of-", "-*-of-")
        size = sum(map(_size, folder.glob(stem))) if "*" in stem else _size(path)
        yield Found(source, before + path.relative_to(root).as_posix(), path, size, repo)


def _ollama(models: Path) -> Iterator[Found]:
    for path in sorted((models / "manifests").glob("*/*/*/*")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if path.stat().st_size > MAX_MANIFEST:
                continue
            for layer in json.loads(path.read_text("utf-8"))["layers"]:
                match = DIGEST.fullmatch(layer["digest"])  # else it could name any file
                if layer["mediaType"] == MODEL_LAYER and match:
                    blob = models / "blobs" / f"sha256-{match[1]}"
                    if blob.is_file():
                        yield Found("Ollama", f"{path.parent.name}:{path.name}", blob, _size(blob))


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
