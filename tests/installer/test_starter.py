"""The home folder's rule is the program's, and the starter model is asked for once."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from app.settings import Home, program_version
from installer.errors import SetupError
from installer.starter import Starter, compiled, ensure_compiled, ensure_starter, octavo_home, starter
from tests.source_tree import ROOT


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OCTAVO_HOME": ""},
        {"OCTAVO_HOME": "~/books"},
        {"OCTAVO_HOME": "relative"},
        {"OCTAVO_HOME": "/data/octavo", "XDG_DATA_HOME": "/data/xdg"},
        {"XDG_DATA_HOME": "/data/xdg", "LOCALAPPDATA": "/data/local"},
        {"XDG_DATA_HOME": "", "LOCALAPPDATA": ""},
        {"XDG_DATA_HOME": "relative"},
    ],
)
def test_the_home_folder_is_the_program_s(
    system: str, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = octavo_home(environ, system)
    monkeypatch.setattr(sys, "platform", system)
    assert ours == Home.find(environ).path


def test_the_catalogue_names_it() -> None:
    model = starter(ROOT)
    assert model == Starter("models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432)


PULL = "import sys, pathlib; pathlib.Path('asked').write_text(' '.join(sys.argv[1:])); sys.exit({})"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose program fetches nothing, and says that all went well."""
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "__init__.py").touch()  # else an installed `ui` goes before this one
    (tmp_path / "ui" / "__main__.py").write_text(PULL.format(0))
    shutil.copy(ROOT / "models.toml", tmp_path)
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path / "home"))
    return tmp_path


def test_a_missing_one_is_asked_for(root: Path) -> None:
    ensure_starter(root, Path(sys.executable))
    assert (root / "asked").read_text() == "models pull smollm2-135m"


def test_one_that_is_there_is_not(root: Path) -> None:
    path = root / "home" / starter(root).place
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(starter(root).bytes)
    ensure_starter(root, Path(sys.executable))
    assert not (root / "asked").exists()


def test_kernels_are_compiled_once_for_each_version(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "pyproject.toml", root)
    ensure_compiled(root, Path(sys.executable))
    assert (root / "asked").read_text() == "chat Hello --model smollm2-135m --max-tokens 1"
    assert "Compiling" in capsys.readouterr().out
    assert compiled(root) == Home.find().path / "cache" / "numba" / "0.1.0"
    if program_version() != "checkout":
        assert compiled(root) == Home.find().compiled
    compiled(root).mkdir(parents=True)
    (root / "asked").unlink()
    ensure_compiled(root, Path(sys.executable))
    assert not (root / "asked").exists()


def test_a_failure_is_told(root: Path) -> None:
    (root / "ui" / "__main__.py").write_text(PULL.format(1))
    with pytest.raises(SetupError, match="could not be fetched"):
        ensure_starter(root, Path(sys.executable))
