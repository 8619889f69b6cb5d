"""What an installer put where, in `installed.json`, so that an uninstaller removes exactly that.

It is written before anything is put outside the program's folder, and removed last: whatever is stopped half
way can be undone. Knows nothing of what the files are for.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from .program import put


@dataclass(frozen=True, slots=True)
class Manifest:
    """Paths as text, absolute."""

    version: str = ""  # the folder, below the program's, of the version that is in use; "": none is yet
    home: str = ""  # the data folder, where the person chose one at the installation
    files: tuple[str, ...] = ()  # also folders that are ours as a whole, as Octavo.app
    folders: tuple[str, ...] = ()  # made on the way; they go when they are empty


def read_manifest(path: Path) -> Manifest | None:
    """None: nothing is installed."""
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return Manifest(**{**fields, "files": tuple(fields["files"]), "folders": tuple(fields["folders"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_manifest(path: Path, manifest: Manifest) -> None:
    """In place of what was there."""
    put(path, json.dumps(asdict(manifest), indent=2).encode())


def mind_home(path: Path) -> None:
    """Set OCTAVO_HOME to what it was at the installation, unless it says another now."""
    manifest = read_manifest(path)
    if manifest and manifest.home:
        os.environ.setdefault("OCTAVO_HOME", manifest.home)


def missing_folders(path: Path) -> list[str]:
    """The folders above `path` that are not there yet, the outermost first."""
    return [str(folder) for folder in reversed(path.parents) if not folder.exists()]
