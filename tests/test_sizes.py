"""Small rooms (STYLE rules 5, 7, 8): how long a file, a function and a line may be, and that each module says
what it is.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.source_tree import LAYERS, ROOT, files, modules, tree

FILE, KERNEL_FILE, FUNCTION, LINE = 300, 450, 50, 110
DOCSTRING = range(2, 11)
JUNK = {"utils", "util", "common", "helpers", "helper", "misc", "tools", "stuff"}
SOURCES = modules(*LAYERS, "installer", "benchmarks")
TESTS = modules("tests")


def lines(path: Path) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


def docstring_length(path: Path) -> int:
    return len((ast.get_docstring(tree(path)) or "").splitlines())


def functions(path: Path) -> list[tuple[str, int]]:
    """(where, how many lines) of each function."""
    nodes = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [(f"{path}:{n.lineno} {n.name}", (n.end_lineno or n.lineno) - n.lineno + 1) for n in nodes]


def test_files_are_short() -> None:
    lengths = [(len(lines(path)), path) for path in SOURCES]
    assert not [
        f"{path}: {length}"
        for length, path in lengths
        if length > (KERNEL_FILE if path.parts[0] == "kernels" else FILE)
    ]


def test_lines_are_short() -> None:
    numbered = [(path, at, line) for path in SOURCES + TESTS for at, line in enumerate(lines(path), 1)]
    assert not [f"{path}:{at}" for path, at, line in numbered if len(line) > LINE]


def test_functions_are_short() -> None:
    """The bodies of compiled kernels, in kernels/cpu and kernels/triton, are as long as they must be."""
    compiled = {("kernels", "cpu"), ("kernels", "triton")}
    checked = [path for path in SOURCES + TESTS if path.parts[:2] not in compiled]
    assert not [where for path in checked for where, length in functions(path) if length > FUNCTION]


def test_modules_open_by_saying_what_they_are() -> None:
    spoken = [path for path in SOURCES if tree(path).body]
    assert not [str(path) for path in spoken if docstring_length(path) not in DOCSTRING]


def test_tests_say_what_they_prove() -> None:
    spoken = [path for path in TESTS if tree(path).body]
    assert not [str(path) for path in spoken if not 1 <= docstring_length(path) <= max(DOCSTRING)]


def test_no_junk_rooms() -> None:
    assert not [str(path) for path in files() if JUNK & {part.split(".")[0] for part in path.parts}]
