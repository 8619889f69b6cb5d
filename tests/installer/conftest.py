"""A person's folder in which a tiny program is installed: real files, a real Python, no pip and no model."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from installer import install as module
from installer.environment import Environment
from installer.places import Places, find_places
from installer.program import PARTS
from tests.source_tree import ROOT

# Says what it was asked and where its data lies; `chat` is the installer's trial.
PROGRAM = """
import os, sys
print("{version}:", *sys.argv[1:], os.environ.get("OCTAVO_HOME", ""), flush=True)
sys.exit("it does not answer" if {broken} and sys.argv[1] == "chat" else 0)
"""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a folder of their own and a checkout in it."""

    folder: Path
    root: Path

    @property
    def places(self) -> Places:
        return find_places("linux")

    @property
    def data(self) -> Path:
        return self.folder / ".local" / "share" / "octavo"

    def write(self, version: str, broken: bool = False) -> None:
        """The program as it is from now on."""
        text = PROGRAM.format(version=version, broken=broken)
        (self.root / "ui" / "__main__.py").write_text(text, encoding="utf-8")

    def install(self) -> int:
        return module.install(self.root, [])

    def octavo(self, *words: str) -> str:
        """What the word `octavo` answers."""
        done = subprocess.run([self.places.word, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def owns(self) -> set[str]:
        """All that lies in the folder, but for the checkout."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*"))
        return {str(path) for path in found if path.parts[0] != "checkout"}


def set_up(root: Path, extras: tuple[str, ...] = ()) -> Environment:
    """Instead of `prepare`: a real virtual environment that finds the program, without pip."""
    env = Environment(root)
    if not env.python.exists():
        venv.EnvBuilder(symlinks=True).create(env.folder)
        (packages,) = env.folder.glob("lib/python3.*/site-packages")
        (packages / "octavo.pth").write_text(f"{root}\n", encoding="utf-8")
    return env


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    """Their folder has a space, quotes, a dollar and letters beyond ASCII in its name, and is empty."""
    folder = tmp_path / "Ünï 中文 $x'q\"% folder"
    made = Person(folder, folder / "checkout")
    for part in PARTS:
        if "." in part or part == "LICENSE":
            (made.root / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, made.root / part)
        elif part != "installer":
            (made.root / part).mkdir(parents=True)
            (made.root / part / "__init__.py").touch()
    shutil.copytree(ROOT / "installer", made.root / "installer", ignore=shutil.ignore_patterns("__pycache__"))
    made.write("one")
    for name in ("OCTAVO_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{made.places.word.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(module, "prepare", set_up)
    monkeypatch.setattr(module, "ensure_starter", lambda root, python: None)
    monkeypatch.chdir(sys.prefix)  # not a folder from which anything could be imported
    return made
