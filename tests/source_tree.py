"""The repository's own files, for the tests that hold laws over them: which there are, what they import."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("ui", "app", "engine", "kernels")  # each imports only the next
SKIPPED = {".git", ".venv", "__pycache__", "build", "dist"}


@cache
def files() -> tuple[Path, ...]:
    """Every file that belongs to the repository, relative to its root; without git, every file that could."""
    git = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        found = [Path(name) for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
    kept = (path for path in found if not SKIPPED & set(path.parts) and not path.parts[0].startswith(".m"))
    return tuple(sorted(path for path in kept if (ROOT / path).is_file()))


def modules(*folders: str) -> list[Path]:
    """The Python files below these folders of the root."""
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in folders]


@cache
def tree(path: Path) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def dotted(path: Path) -> str:
    """engine/formats/gguf.py -> engine.formats.gguf; a package's __init__ is the package."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """(module, name) of every import, lazy ones and those for the type checker too.

    Relative ones are made absolute; for `import module` the name is "".
    """
    package = path.parent.parts
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((module, alias.name) for alias in node.names)
