"""The layers are law: who may import whom, read from the source, lazy imports included (DESIGN section 2)."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.source_tree import LAYERS, ROOT, dotted, imports, modules, tree

# Who may import a package that is not Python's own. What is not here, nobody may.
MAY_IMPORT = {
    "torch": ("engine", "kernels"),
    "numpy": ("engine", "kernels"),
    "triton": ("kernels",),
    "transformers": ("engine",),  # where it is installed: models that our decoder does not know
    "numba": ("kernels",),
    "llvmlite": ("kernels",),  # with numba: the vector instructions
    **dict.fromkeys(("tokenizers", "jinja2", "safetensors", "psutil"), ("engine",)),
    **dict.fromkeys(("fastapi", "pydantic", "uvicorn", "httpx", "sqlite_utils"), ("app",)),
    **dict.fromkeys(("huggingface_hub", "tomlkit", "keyring", "pypdf", "docx", "ijson"), ("app",)),
    "starlette": ("app", "ui"),  # in ui: Gradio is a Starlette application, and takes middleware
    "gradio": ("ui",),
}
# The engine's deciding half; whatever these import belongs to it.
DECIDING = (
    *("types", "errors", "config", "fitting.memory_plan", "fitting.abilities", "fitting.choice"),
    *("scheduling.sequence", "scheduling.block_pool", "scheduling.scheduler"),
)
HEAVY = ("torch", "gradio", "transformers", "numba", "triton")
RUNS_CODE = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
SOURCES = modules(*LAYERS)
NAMES = {dotted(path): path for path in SOURCES}


def top(module: str) -> str:
    return module.partition(".")[0]


def outside(path: Path) -> set[str]:
    """The packages that a module takes from elsewhere."""
    known = {*sys.stdlib_module_names, *LAYERS, "installer"}
    return {top(module) for module, _ in imports(path)} - known


def breach(path: Path, module: str, name: str) -> str:
    """What is wrong with an import of another layer, "" if nothing is."""
    layer = path.parts[0]
    if top(module) not in LAYERS or top(module) == layer:
        return ""
    if top(module) not in LAYERS[LAYERS.index(layer) + 1 :][:1]:
        return f"{path} imports {module}, which is not the layer below"
    if module != top(module):
        return f"{path} imports {module}, not from {top(module)}"
    if name and name not in importlib.import_module(module).__all__:
        return f"{path} imports {name}, which {module} does not offer"
    return ""


def test_a_layer_imports_only_the_one_below_and_by_its_door() -> None:
    breaches = [breach(path, module, name) for path in SOURCES for module, name in imports(path)]
    assert not [text for text in breaches if text]


def test_inside_a_layer_imports_are_relative() -> None:
    nodes = [(path, node) for path in SOURCES for node in ast.walk(tree(path))]
    absolute = [(path, n.module) for path, n in nodes if isinstance(n, ast.ImportFrom) and not n.level]
    assert not [f"{path} imports {module}" for path, module in absolute if top(module or "") == path.parts[0]]


def test_who_may_import_what() -> None:
    uses = [(path, name) for path in SOURCES for name in outside(path)]
    assert not [f"{path}: {name}" for path, name in uses if path.parts[0] not in MAY_IMPORT.get(name, ())]


def test_the_installer_needs_only_python() -> None:
    tops = [(path, top(module)) for path in modules("installer") for module, _ in imports(path)]
    allowed = {*sys.stdlib_module_names, "installer"}
    assert not [f"{path}: {name}" for path, name in tops if name not in allowed]


def test_nothing_imports_the_installer_or_the_tests() -> None:
    tops = [(path, top(module)) for path in SOURCES for module, _ in imports(path)]
    assert not [str(path) for path, name in tops if name in ("installer", "tests", "benchmarks")]


def leads_to(path: Path) -> set[str]:
    """The modules of ours that a module imports: `from .x import y` leads to x.y or to x."""
    found = {f"{module}.{name}" if f"{module}.{name}" in NAMES else module for module, name in imports(path)}
    return found & NAMES.keys() - {dotted(path)}


@pytest.mark.parametrize("name", DECIDING)
def test_the_deciding_half_needs_only_python(name: str) -> None:
    reached, ahead = set[str](), {f"engine.{name}"}
    while ahead:
        reached |= ahead
        ahead = {target for module in ahead for target in leads_to(NAMES[module])} - reached
    assert not [f"{module}: {outside(NAMES[module])}" for module in reached if outside(NAMES[module])]


def test_no_cycles() -> None:
    try:
        TopologicalSorter({name: leads_to(path) for name, path in NAMES.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"a cycle: {' -> '.join(error.args[1])}")


def test_importing_the_layers_loads_nothing_heavy() -> None:
    code = "import sys, ui, app, engine, engine.scheduling.scheduler, kernels; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr
    assert not set(HEAVY) & set(done.stdout.split())


@pytest.mark.parametrize("layer", LAYERS)
def test_every_name_at_a_door_is_there(layer: str) -> None:
    door = importlib.import_module(layer)
    assert not [name for name in getattr(door, "__all__", ()) if not hasattr(door, name)]


def test_transformers_does_not_take_ours_for_the_kernels_package() -> None:
    from transformers.utils import is_kernels_available

    assert not is_kernels_available()


def runs_code(node: ast.AST) -> bool:
    """Whether a piece of source may run what a file holds."""
    match node:
        case ast.Attribute(value=ast.Name(id="torch"), attr="load"):
            return True
        case ast.keyword(arg="trust_remote_code"):
            return True
        case ast.Call(func=ast.Name(id="eval" | "exec")):
            return True
        case ast.Import(names=names):
            return any(top(alias.name) in RUNS_CODE for alias in names)
        case ast.ImportFrom(module=str(module)):
            return top(module) in RUNS_CODE
    return False


def test_nothing_runs_code_from_a_file() -> None:
    nodes = [(path, node) for path in SOURCES for node in ast.walk(tree(path))]
    assert not [f"{path}:{getattr(node, 'lineno', 0)}" for path, node in nodes if runs_code(node)]


def reads_environment(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv"):
            return True
        case ast.ImportFrom(module="os", names=names):
            return any(alias.name in ("environ", "getenv") for alias in names)
    return False


def test_environment_variables_are_read_in_one_file() -> None:
    """The helper processes are started with a few of them, unread."""
    readers = {path.as_posix() for path in SOURCES if any(map(reads_environment, ast.walk(tree(path))))}
    assert readers <= {"app/settings.py", "app/documents/reading.py", "engine/text/templates.py"}
