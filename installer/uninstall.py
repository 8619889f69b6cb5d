"""`octavo uninstall`, or `python3 -m installer uninstall`: remove exactly what was installed (manifest.py),
and the data only if the person says so.

The list is removed last: what was stopped half way goes on the next time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .console import Step, say, size
from .errors import SetupError
from .lock import locked
from .manifest import Manifest, mind_home, read_manifest
from .places import Places, find_places
from .program import draft_of
from .running import end_running
from .starter import octavo_home

ANSWERS = {"k": "keep", "keep": "keep", "": "keep", "d": "delete", "delete": "delete"}


def uninstall(options: list[str]) -> int:
    """Remove it. Raises SetupError."""
    parser = argparse.ArgumentParser("octavo uninstall")
    parser.add_argument(
        "--data", choices=("keep", "delete"), help="chats, models, settings; asks if not given"
    )
    places, data = find_places(), parser.parse_args(options).data
    mind_home(places.manifest)
    manifest, home = read_manifest(places.manifest) or Manifest(), octavo_home()
    if not places.program.exists():
        say("Octavo is not installed for this user.")
    data = data or _ask(home)
    try:
        end_running(home)
        freed = _remove_data(home) if data == "delete" else 0
        freed += _remove_program(places, manifest) if places.program.exists() else 0
    except OSError as error:
        raise SetupError(f"{error.filename} can't be removed: {error.strerror}.") from error
    say(f"{size(freed)} freed.")
    if home.exists():
        say(f"Your data stays in {home}.")
    return 0


def _ask(home: Path) -> str:
    """keep or delete; where nobody can answer, keep."""
    if not home.exists() or not sys.stdin or not sys.stdin.isatty():
        return "keep"
    answer = None
    while answer is None:
        say(f"Your chats, models and settings lie in {home}, {size(used(home))}.")
        try:
            answer = ANSWERS.get(input("[k]eep them, or [d]elete them for ever? ").strip().lower())
        except EOFError:  # Ctrl-D
            return "keep"
    return answer


def used(path: Path) -> int:
    """Bytes that removing it frees; what other names lead to as well, or links lead to, stays."""
    files = [path] if not path.is_dir() or path.is_symlink() else list(path.rglob("*"))
    found = (file.lstat() for file in files if file.is_symlink() or file.is_file())
    return sum(about.st_size for about in found if about.st_nlink == 1)


def _remove(path: Path) -> int:
    freed = used(path) if os.path.lexists(path) else 0
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return freed


def _remove_program(places: Places, manifest: Manifest, system: str = sys.platform) -> int:
    files, last = [Path(name) for name in manifest.files], (places.manifest, places.lock)
    with locked(places.lock), Step(f"Removing the program from {places.program}"):
        freed = sum(_remove(path) for file in files for path in (file, draft_of(file)))
        if system == "win32":  # where this very Python can't be removed while it runs
            freed += used(places.program)
            _remove_soon(places.program)
        else:
            freed += sum(map(_remove, sorted(places.program.iterdir(), key=last.__contains__)))
            places.program.rmdir()
    for name in reversed(manifest.folders):
        if Path(name).is_dir() and not any(Path(name).iterdir()):
            Path(name).rmdir()
    return freed


def _remove_soon(folder: Path) -> None:
    """By another program, when this one has ended."""
    quoted = "'" + str(folder).replace("'", "''") + "'"
    script = f"Start-Sleep 3; Remove-Item -Recurse -Force -LiteralPath {quoted}"
    command = ["powershell", "-NoProfile", "-WindowStyle", "Hidden", "-Command", script]
    subprocess.Popen(command, cwd=folder.parent)


def _remove_data(home: Path) -> int:
    """Only where Octavo chose the place: in a folder that a person chose, other things may lie."""
    chosen = os.environ.get("OCTAVO_HOME")
    if chosen or home.is_symlink():
        say(f"You chose the folder {home} yourself, so it is yours to delete.")
        return 0
    with Step(f"Removing your chats, models and settings from {home}"):
        return _remove(home)
