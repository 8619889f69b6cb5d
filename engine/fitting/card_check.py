"""Whether a card computes rightly: each kernel once against plain torch, on the card, when it is first used.

The check runs in a process of its own, for a kernel that goes wrong may take the process with it. What it
found is kept, by card, driver, torch, Triton, compiler and kernels: nobody waits twice. A card that failed is
left alone, and the sentence that says so is shown wherever the device is.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import kernels
from kernels import cache_folder

from .abilities import Card

CODE = "from kernels.triton.self_test import main; main()"
PATIENCE_S = 300.0  # every kernel is compiled for it once
NAME = "octavo-cards.json"
DRIVER = Path("/proc/driver/nvidia/version")
NO_MEMORY = "OutOfMemoryError"

Run = Callable[[], str]


def fault_of(card: Card, run: Run | None, folder: Path | None = None) -> str:
    """Why a card is not used, as the end of a sentence; "" if it may be. `run` makes the check where none was
    made; None: what is not known is taken to be sound.
    """
    place = (folder or cache_folder()) / NAME
    known, key = _read(place), _key(card)
    if key not in known and run:
        known[key] = run()
        if NO_MEMORY in known[key]:  # others had it: the next time it may be free
            return known[key]
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return str(known.get(key, ""))


def check(patience_s: float = PATIENCE_S, code: str = CODE) -> str:
    """Run the check; what is wrong, as the end of a sentence, "" if nothing is."""
    command = [sys.executable, "-c", code]
    root = Path(kernels.__path__[0]).parent
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=patience_s)
    except subprocess.TimeoutExpired:
        return f"its check did not end within {patience_s:.0f} s"
    except OSError as error:
        return f"its check could not be started: {error}"
    if done.returncode == 0:
        return done.stdout.strip().rpartition("\n")[2]
    last = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
    return f"its check broke off ({last[:200]})"


def _read(place: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(place.read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    return {}


def _key(card: Card) -> str:
    """All that a verdict depends on."""
    driver = ""
    with contextlib.suppress(OSError):
        driver = DRIVER.read_text(encoding="utf-8").partition("\n")[0]
    sources = blake2b(digest_size=8)
    for file in sorted(Path(kernels.__path__[0], "triton").glob("*.py")):
        sources.update(file.read_bytes())
    capability = ".".join(map(str, card.capability))
    versions = _version("torch"), _version("triton"), _compiler()
    parts = card.name, card.architecture or capability, driver, *versions
    return " | ".join((*parts, sources.hexdigest()))


def _compiler() -> str:
    """Whether there is what Triton has its launchers compiled with: a card that failed without gets another
    chance.
    """
    header = Path(sysconfig.get_path("include"), "Python.h")
    return "gcc" if header.is_file() and any(map(shutil.which, ("gcc", "clang"))) else "none"


def _version(package: str) -> str:
    with contextlib.suppress(PackageNotFoundError):
        return f"{package} {version(package)}"
    return f"no {package}"
