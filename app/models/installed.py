"""What was fetched from the hub: a folder for each variant, and in it a record of what it is and whence.

    models/<id>/<variant>/octavo.json    repository, revision, and of each file its bytes and hash
    models/<id>/<variant>/...            the files
    models/<id>/.<variant>.draft/        the same while it is fetched; it becomes <variant> in one step
A folder without a record that can be read is none of ours. Fetching is hub_fetch.py's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .catalogue import Model
from .ids import key, slug

RECORD = "octavo.json"


@dataclass(frozen=True, slots=True)
class Record:
    """A variant at one revision. `files`: (name, bytes, hash)."""

    id: str
    name: str
    licence: str
    context: int
    parameters: int
    format: str
    repo: str
    revision: str
    files: tuple[tuple[str, int, str], ...] = field(default=())
    borrowed: str = ""  # as the catalogue's Model has it

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(size for _, size, _ in self.files)


@dataclass(frozen=True, slots=True)
class Installed:
    """A variant that was fetched, and where it lies."""

    record: Record
    path: Path  # the folder

    @property
    def key(self) -> str:
        """What it is chosen by."""
        return key(self.record.id, self.record.format)

    @property
    def whole(self) -> bool:
        """Its files are there, in full length."""
        try:
            return all((self.path / name).stat().st_size == size for name, size, _ in self.record.files)
        except OSError:
            return False


def make_record(
    model: Model, format: str, repo: str, revision: str, files: tuple[tuple[str, int, str], ...]
) -> Record:
    """Of a model as the catalogue or the hub describes it."""
    facts = (model.id, model.name, model.licence, model.context, model.parameters)
    return Record(*facts, format, repo, revision, files, model.borrowed)


def write_record(folder: Path, record: Record) -> None:
    """Last of all files, on disk before the folder gets its name."""
    with open(folder / RECORD, "w", encoding="utf-8") as file:
        json.dump(asdict(record), file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def read_record(folder: Path) -> Record | None:
    """What a folder holds; None if it can't be known."""
    from engine import is_safe_name  # of a part that loads numpy

    try:
        values: dict[str, Any] = json.loads((folder / RECORD).read_text("utf-8"))
        values["files"] = tuple((str(name), int(size), str(digest)) for name, size, digest in values["files"])
        record = Record(**values)
        sound = all(is_safe_name(name) for name, _, _ in record.files)
        named = (record.id, record.name, record.licence, record.format)
        texts = (*named, record.repo, record.revision, record.borrowed)
        numbers = (record.context, record.parameters)
        typed = all(type(text) is str for text in texts) and all(type(number) is int for number in numbers)
        return record if sound and typed else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def installed(models: Path) -> Iterator[Installed]:
    """All of them, in the models folder."""
    for path in sorted(models.glob(f"*/*/{RECORD}")):
        folder = path.parent
        # a record tells what it is, its place what it is called: nothing may pass for another model
        if (record := read_record(folder)) and (record.id, slug(record.format)) == folder.parts[-2:]:
            yield Installed(record, folder)
