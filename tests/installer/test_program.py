"""What is installed is what a wheel holds, and the installer; its name changes with its content."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from installer.program import ICON, PARTS, copy_program, draft_of, folder_name, program_files, put
from tests.source_tree import ROOT


def test_the_parts_are_the_wheel_s() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = about["tool"]["hatch"]["build"]["targets"]["wheel"]
    project = about["project"]
    needed = {*wheel["packages"], *wheel["force-include"], project["readme"], *project["license-files"]}
    assert needed | {"installer", "pyproject.toml"} == set(PARTS)


def test_no_tests_and_no_leavings() -> None:
    names = {path.as_posix() for path in program_files(ROOT)}
    assert {"models.toml", "ui/assets/mark.svg", "installer/install.py", ICON} <= names
    assert not [name for name in names if name.startswith("tests") or "__pycache__" in name]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A program as small as can be."""
    for part in PARTS:
        path = tmp_path / "checkout" / part
        path.parent.mkdir(parents=True, exist_ok=True)
        if "." in part or part == "LICENSE":
            shutil.copy(ROOT / part, path)
        else:
            path.mkdir()
            (path / "__init__.py").touch()
    return tmp_path / "checkout"


def test_the_name_says_what_is_in_it(root: Path) -> None:
    before = folder_name(root)
    assert before.startswith("0.1.0-") and folder_name(root) == before
    (root / "ui" / "__pycache__").mkdir()
    (root / "ui" / "__pycache__" / "x.pyc").touch()
    assert folder_name(root) == before
    (root / "app" / "new.py").touch()
    with_one_more = folder_name(root)
    (root / "app" / "new.py").rename(root / "ui" / "new.py")
    assert len({before, with_one_more, folder_name(root)}) == 3


def test_copying_makes_good_what_differs(root: Path, tmp_path: Path) -> None:
    (root / "ui" / "page.py").write_bytes(b"print()\r\n\0")
    copy_program(root, tmp_path / "copy")
    (tmp_path / "copy" / "ui" / "page.py").write_text("damaged")
    (tmp_path / "copy" / "app" / "__init__.py").unlink()
    kept = (tmp_path / "copy" / "README.md").stat().st_mtime_ns
    copy_program(root, tmp_path / "copy")
    assert folder_name(tmp_path / "copy") == folder_name(root)
    assert (tmp_path / "copy" / "README.md").stat().st_mtime_ns == kept


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    put(path, b"old", executable=True)
    assert path.stat().st_mode & 0o111

    def fail(source: Path, target: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("installer.program.os.replace", fail)
    with pytest.raises(OSError, match="full"):
        put(path, b"new")
    assert path.read_bytes() == b"old" and draft_of(path).read_bytes() == b"new"
