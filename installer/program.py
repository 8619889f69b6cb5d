"""The program as files: what of a checkout is installed, under which name, and copying it.

An installed version is a folder of its own, a checkout without its tests, so `.venv` is made in it as in any
other. Its name says what is in it: `0.1.0-3f2a91c4` is the version and a hash of all files.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path

# What a wheel is made of, and the installer that starts, upgrades and removes it.
PARTS = (
    *("app", "engine", "kernels", "ui", "installer"),
    *("models.toml", "pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY.md"),
)
ICON = "installer/icon.png"


def program_files(root: Path) -> list[Path]:
    """The files in the checkout at `root`, relative to it, in a fixed order."""
    found: list[Path] = []
    for part in PARTS:
        below = (root / part).rglob("*") if (root / part).is_dir() else [root / part]
        found += [path.relative_to(root) for path in below if not path.is_dir()]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def folder_name(root: Path) -> str:
    """Another for every other content."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    digest = hashlib.sha256()
    for path in program_files(root):
        content = (root / path).read_bytes()
        digest.update(f"{path.as_posix()}\0{len(content)}\0".encode() + content)
    return f"{project['version']}-{digest.hexdigest()[:8]}"


def copy_program(root: Path, folder: Path) -> None:
    """Make the files below `folder` as they are at `root`. Stopped half way, it goes on the next time."""
    for path in program_files(root):
        content, target = (root / path).read_bytes(), folder / path
        if not target.is_file() or target.read_bytes() != content:
            put(target, content)


def put(path: Path, content: bytes, executable: bool = False) -> None:
    """Write a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(path)
    draft.write_bytes(content)
    if executable:
        draft.chmod(0o755)
    os.replace(draft, path)


def draft_of(path: Path) -> Path:
    """What a file is written as; it stays only where writing was stopped."""
    return path.with_name(f".{path.name}.new")
