"""Whether a file is the one it should be: its SHA-256, computed once and noted beside it.

<file>.verified    bytes, time and hash; good while the file's size and time stay the same
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ..errors import AppError
from ..progress import Progress

CHUNK = 2**20


def note_of(path: Path) -> Path:
    """Where the hash of a file is noted."""
    return path.with_name(path.name + ".verified")


def remember(path: Path, digest: str) -> str:
    """Note the hash of a file as it is now. Not being able to is no error: it is computed again."""
    facts = path.stat()
    note = {"bytes": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": digest}
    try:
        note_of(path).write_text(json.dumps(note), "utf-8")
    except OSError:
        note_of(path).unlink(missing_ok=True)
    return digest


def remembered(path: Path) -> str | None:
    """The hash that was noted; None if the file has changed since, or none was."""
    try:
        note, facts = json.loads(note_of(path).read_text("utf-8")), path.stat()
        if (note["bytes"], note["mtime_ns"]) == (facts.st_size, facts.st_mtime_ns):
            return str(note["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


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
