"""`python3 -m installer install`: the program under the person's own folder, with all it needs, to be started
by a click or by the word `octavo`. The same word upgrades, and repairs.

    copy, set up, try out     in a folder of the new version's own; the old one runs on meanwhile
    end the running one       only now
    switch                    menu entry and word, one whole file after the other (menu.py)
    remove                    other versions
Stopped anywhere, what was there before works as before, and the next `install` goes on from there. Data is
never touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import replace
from pathlib import Path

from .console import Step, say
from .environment import prepare
from .errors import SetupError
from .lock import locked
from .manifest import Manifest, mind_home, missing_folders, read_manifest, write_manifest
from .menu import Entry, entries, place
from .places import Places, find_places
from .program import copy_program, folder_name
from .running import end_running
from .starter import HELLO, ensure_starter, fault, octavo_home

KEPT = ("python", "uv")  # beside the versions: what a bootstrap script brought


def install(root: Path, options: list[str]) -> int:
    """Install what lies at `root`. Raises SetupError."""
    argparse.ArgumentParser("python3 -m installer install").parse_args(options)
    places = find_places()
    try:
        made = missing_folders(places.program)
        with locked(places.lock):
            mind_home(places.manifest)
            before = read_manifest(places.manifest) or Manifest(folders=tuple(made))
            write_manifest(places.manifest, before)
            version = places.program / folder_name(root)
            with Step(f"Copying the program to {version}"):
                copy_program(root, version)
            _set_up(version)
            _switch(places, version, before)
            _remove_others(places, version)
    except OSError as error:
        raise SetupError(f"{error.filename or places.program} can't be used: {error.strerror}.") from error
    _tell(places)
    return 0


def _set_up(version: Path) -> None:
    """Packages, the starter model, compiled kernels, and a first word as the proof that all of it works."""
    env = prepare(version)
    words = HELLO
    try:
        ensure_starter(version, env.python)
    except SetupError as error:
        say(f"  {error}\n  Octavo is installed without it; its page says how to get one.")
        words = ("models",)
    with Step("Compiling for this processor, and trying it out"):
        problem = fault(version, env.python, words)
    if problem:
        raise SetupError(f"This version does not work here, so nothing was changed:\n{problem}")


def _switch(places: Places, version: Path, before: Manifest) -> None:
    wanted = [entry for entry in entries(places, version) if _is_ours(entry, places, before)]
    files = {*before.files, *(str(_whole(entry, places)) for entry in wanted)}
    folders = [*before.folders, *(name for each in wanted for name in missing_folders(each.path))]
    chosen = str(octavo_home()) if os.environ.get("OCTAVO_HOME") else ""
    noted = Manifest(before.version, chosen, tuple(sorted(files)), tuple(dict.fromkeys(folders)))
    write_manifest(places.manifest, noted)
    if before.version not in ("", version.name):
        end_running(octavo_home())
    with Step("Making the menu entry and the word `octavo`"):
        for entry in wanted:
            place(entry)
        write_manifest(places.manifest, replace(noted, version=version.name))


def _whole(entry: Entry, places: Places) -> Path:
    """What is removed with it: Octavo.app is a folder of ours."""
    return places.menu if places.menu in entry.path.parents else entry.path


def _is_ours(entry: Entry, places: Places, before: Manifest) -> bool:
    path = _whole(entry, places)
    if str(path) in before.files or not os.path.lexists(path):
        return True
    say(f"  {path} is there already and is not from this installer; it stays as it is.")
    return False


def _remove_others(places: Places, version: Path) -> None:
    others = [
        path
        for path in places.program.iterdir()
        if path.is_dir() and path != version and path.name not in KEPT
    ]
    for path in others:
        with Step(f"Removing the version before, {path.name}"):
            shutil.rmtree(path, ignore_errors=True)


def _tell(places: Places) -> None:
    say(f"Octavo is installed in {places.program}. It is in your menu; `octavo` starts it from a terminal.")
    folder = places.word.parent
    if str(folder) not in os.environ.get("PATH", "").split(os.pathsep):
        say(f"  {folder} is not in this terminal's PATH. Many systems add it when you log in next; until")
        say(f"  then, or if yours does not, type {places.word}")
    say("`octavo uninstall` removes it again and asks about your chats; installing again upgrades it.")
