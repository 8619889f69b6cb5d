"""A checkout of a tiny program with the real installer in it, set up by the real pip without a network.

Its torch is an empty wheel in a folder, its build backend lies in the checkout, its `ui` says what it was
asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.source_tree import ROOT

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "tiny"
version = "0.1"
dependencies = ["torch"]
"""
BACKEND = """
import pathlib, zipfile

def get_requires_for_build_editable(config_settings=None):
    return []

def build_editable(folder, config_settings=None, metadata_directory=None):
    about = "Metadata-Version: 2.1\\nName: tiny\\nVersion: 0.1\\nRequires-Dist: torch\\n"
    with zipfile.ZipFile(pathlib.Path(folder) / "tiny-0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny-0.1.dist-info/METADATA", about)
        wheel.writestr("tiny-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-0.1.dist-info/RECORD", "")
    return "tiny-0.1-py3-none-any.whl"
"""
MODELS = """
[[models]]
id = "smollm2-135m"
variants = [{ file = "tiny.gguf", bytes = 4 }]
"""
PROGRAM = """
import os, pathlib, sys
if sys.argv[1:3] == ["models", "pull"]:
    folder = pathlib.Path(os.environ["OCTAVO_HOME"], "models", sys.argv[3])
    folder.mkdir(parents=True)
    (folder / "tiny.gguf").write_bytes(b"GGUF")
elif sys.argv[1] == "chat":
    pathlib.Path(os.environ["OCTAVO_HOME"], "cache", "numba", "0.1").mkdir(parents=True)
else:
    print("asked:", *sys.argv[1:], flush=True)
    sys.exit(7)
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """The folder, and the way to run its installer as a person would."""

    root: Path
    environ: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`python -m installer WORDS` in it."""
        command = [sys.executable, "-m", "installer", *words]
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environ,
            text=True,
            encoding="utf-8",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Its exit code and all that it wrote."""
        with self.start(*words) as process:
            written = process.communicate()[0]
        return process.returncode, written

    @property
    def log(self) -> str:
        """What pip was asked so far."""
        return (self.root / ".venv" / "installer.log").read_text(encoding="utf-8")


def make(folder: Path) -> Checkout:
    """A fresh one in a folder whose name has a space and letters beyond ASCII."""
    root, wheels = folder / "Bücher 八開", folder / "wheels"
    shutil.copytree(ROOT / "installer", root / "installer", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "ui").mkdir()
    wheels.mkdir()
    contents = {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "models.toml": MODELS}
    for name, text in {**contents, "ui/__main__.py": PROGRAM, "ui/__init__.py": ""}.items():
        (root / name).write_text(text, encoding="utf-8")
    with zipfile.ZipFile(wheels / "torch-2.13.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            "torch-2.13.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
        )
        wheel.writestr("torch-2.13.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("torch-2.13.0.dist-info/RECORD", "")
    nowhere = "http://127.0.0.1:9"  # where nothing listens
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": wheels.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    home = {"OCTAVO_HOME": str(folder / "hömé"), "https_proxy": nowhere, "HTTPS_PROXY": nowhere}
    return Checkout(root, {**os.environ, **pip, **home, "PYTHONUTF8": "1"})
