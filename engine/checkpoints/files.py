"""The files of a checkpoint: found under safe names, mapped, and small ones read as JSON, all within limits.

Nothing that a file says is believed: a name may lead out of the folder, a size may be larger than memory, a
key may stand twice and mean two things to two readers.
"""

from __future__ import annotations

import json
import mmap
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from ..errors import BadCheckpoint

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=@-]{0,199}(?<!\.)")  # safe on every system
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)  # files to Windows
MAX_JSON = 16 << 20  # bytes; a vocabulary's config with 6,000 added tokens has 1.2 MB
MAX_VALUES = 1 << 18  # commas and brackets: what a parsed value costs beside its text


def is_safe_name(name: str) -> bool:
    """Whether any system takes it as a file's name, without any kind of path in it."""
    return bool(NAME.fullmatch(name)) and not DEVICES.fullmatch(name)


def safe_join(root: Path, name: str) -> Path:
    """The file of that name in the folder `root`; the name comes from a stranger. Raises BadCheckpoint.

    Names with any kind of path in them are refused, and so are links that lead out of the folder, except
    into the place where Hugging Face's cache keeps the files of its snapshots.
    """
    if not is_safe_name(name):
        raise BadCheckpoint(f"{root.name} names a file {name[:80]!r}, which no model file may be called.")
    return stays_within(root, root / name)


def stays_within(root: Path, path: Path) -> Path:
    """A file of the folder `root`, whatever its owner called it, unless it is a link that leads out."""
    home = root.resolve()
    allowed = (home, home.parent.parent / "blobs") if home.parent.name == "snapshots" else (home,)
    if path.is_symlink() and Path(os.path.realpath(path)).parent not in allowed:
        raise BadCheckpoint(f"{path.name} in {root.name} is a link to a place outside of that folder.")
    return path


def name_of(path: Path) -> str:
    """What a model is called that has no other name: as its folder, or its file without the ending."""
    try:
        return path.resolve().name if path.is_dir() else path.stem
    except OSError:  # a name that no file can have
        return path.stem


def map_file(path: Path, least: int, kind: str) -> mmap.mmap:
    """A file's bytes, which are read when they are looked at. `least`: how many a `kind` file begins with."""
    try:
        _check_regular(path)
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < least:
                raise BadCheckpoint(
                    f"{path.name} has {size} bytes; a {kind} file begins with {least}. Download it again."
                )
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BadCheckpoint(f"{path.name} cannot be read: {error.strerror}.") from error


def _check_regular(path: Path) -> None:
    """Whoever opens a pipe waits for its other end."""
    if not path.is_file():
        raise BadCheckpoint(f"{path.name} cannot be read: it is no file, or a link that leads to none.")


def read_bytes(root: Path, name: str, most: int) -> bytes | None:
    """A whole file of the folder, None if nothing of that name is there."""
    path = safe_join(root, name)
    if not os.path.lexists(path):
        return None
    try:
        _check_regular(path)
        size = path.stat().st_size
        if size > most:
            raise BadCheckpoint(f"{name} has {size:,} bytes; at most {most:,} are read.")
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise BadCheckpoint(f"{name} cannot be read: {error.strerror}.") from error


def read_json(
    root: Path, name: str, most: int = MAX_JSON, most_values: int = MAX_VALUES
) -> dict[str, Any] | None:
    """A JSON object of the folder, None if it is not there."""
    data = read_bytes(root, name, most)
    return None if data is None else parse_json(data, name, most_values)


def parse_json(data: bytes, name: str, most_values: int = MAX_VALUES) -> dict[str, Any]:
    """An object as RFC 8259 has it: UTF-8, every key once, no NaN. Infinity is let through, as 1e999 is."""

    def bad(what: str) -> NoReturn:
        raise BadCheckpoint(f"{name} is damaged: {printable(what)}. Download it again.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(key for key, _ in pairs)
            bad(f"the key {next(key for key in found if times[key] > 1)!r:.80} is there twice")
        return found

    def constant(text: str) -> float:
        return float(text) if text != "NaN" else bad("it holds NaN, which is no number")

    values = sum(map(data.count, (b",", b"[", b"{")))
    if values > most_values:
        bad(f"it holds about {values:,} values, and at most {most_values:,} are read")
    try:
        value = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=constant)
    except UnicodeDecodeError as error:
        bad(f"it is not UTF-8 at byte {error.start}")
    except RecursionError:
        bad("it is nested too deeply")
    except ValueError as error:
        bad(f"it is not JSON: {error}")
    if not isinstance(value, dict):
        bad(f"it holds a {type(value).__name__}, not an object")
    return value


def printable(text: str) -> str:
    """A text that is safe to show: names from a file may hold anything."""
    return "".join(c if c.isprintable() else "?" for c in text[:400])
