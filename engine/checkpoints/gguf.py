"""A GGUF checkpoint: one file, or several that llama.cpp's gguf-split made of one, as one set of tensors.

The parts are called NAME-00001-of-00003.gguf and so on; the first has the keys, each has its own tensors and
says which part it is (split.no, split.count, split.tensors.count). Headers are gguf_header.py's.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import BadCheckpoint
from .checkpoint import Checkpoint, TensorInfo, close_map
from .files import map_file
from .gguf_header import GgufHeader

PART = re.compile(r"(.*)-([0-9]{5})-of-([0-9]{5})(\.gguf)", re.DOTALL)
MAX_PARTS = 500  # mapped at once


def read_gguf(path: Path) -> Checkpoint:
    """Map a file, and its other parts, and read the headers. A name of any part opens all of them.

    Raises BadCheckpoint or UnsupportedModel; nothing stays open then.
    """
    files: dict[Path, mmap.mmap] = {}
    try:
        paths = _parts(path)
        tensors: dict[str, TensorInfo] = {}
        metadata: Mapping[str, Any] = {}
        for number, part in enumerate(paths):
            if not part.exists():
                which = f"; all {len(paths)} parts must lie in one folder" if len(paths) > 1 else ""
                raise BadCheckpoint(f"There is no {part.name}{which}.")
            files[part] = map_file(part, 4, "GGUF")
            keys, found = GgufHeader(files[part], part.name).read()
            metadata = metadata or keys
            _check_part(part, keys, number, len(paths))
            for name, tensor in found.items():
                if name in tensors:
                    raise BadCheckpoint(f"{part.name} is damaged: tensor {name} is in an earlier part, too.")
                tensors[name] = replace(tensor, file=number)
        wanted = metadata.get("split.tensors.count", len(tensors))
        if wanted != len(tensors):
            raise BadCheckpoint(
                f"{path.name} is damaged: it names {wanted!r:.40} tensors, its parts have {len(tensors)}."
            )
    except BaseException:
        for data in files.values():
            close_map(data)
        raise
    whole = {key: value for key, value in metadata.items() if not key.startswith("split.")}
    return Checkpoint(path, "gguf", whole, tensors, files)


def _parts(path: Path) -> list[Path]:
    """All files of the checkpoint that this name belongs to."""
    found = PART.fullmatch(path.name)
    count = int(found[3]) if found else 1
    if found is None or count <= 1:
        return [path]
    if count > MAX_PARTS:
        raise BadCheckpoint(f"{path.name} says that it is in {count} parts; at most {MAX_PARTS} are taken.")
    return [path.with_name(f"{found[1]}-{n:05}-of-{found[3]}{found[4]}") for n in range(1, count + 1)]


def _check_part(path: Path, keys: Mapping[str, Any], number: int, count: int) -> None:
    """A part says the same as its name; a whole file says nothing, or that it is one part."""
    said = (keys.get("split.no", 0), keys.get("split.count", 1))
    if said != (number, count) and said != (number, 0):
        shown = f"part {said[0]!r:.20} (from 0) of {said[1]!r:.20}"
        ending = f"; such files are called NAME-{number + 1:05}-of-00000.gguf" if count == 1 else ""
        raise BadCheckpoint(f"{path.name} says that it is {shown}, not {number} of {count}{ending}.")
