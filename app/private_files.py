"""Files that only this user can read, written in one step: whoever reads sees the old content or the new one.

The content goes to a draft beside the file, and to the disk, before it takes the file's name. The draft of a
program that was killed is removed at the next write of the same file. What an error means says the caller.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

DRAFT_S = 60.0  # nobody takes that long to write one


def write_private(path: Path, content: bytes, replace: bool = True) -> None:
    """Make `content` the file's; without `replace`, only where there is none yet. A link stays one.

    Raises OSError; the file is then what it was. Several processes may write at once.
    """
    path = Path(os.path.realpath(path))
    _remove_drafts(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.draft")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if replace or not _link(draft, path):
            os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _link(draft: Path, path: Path) -> bool:
    """Whether there is a file now, which none that another process just wrote had to give way to."""
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        return False
    return True


def _remove_drafts(path: Path) -> None:
    for found in path.parent.glob(".*.draft"):
        if found.name.startswith(f".{path.name}."):
            with contextlib.suppress(OSError):
                if time.time() - found.stat().st_mtime > DRAFT_S:
                    found.unlink()
