"""The door: an old Python can read it and is told what to do."""

from __future__ import annotations

import ast

import pytest

from installer.__main__ import unsupported
from tests.source_tree import ROOT


@pytest.mark.parametrize("version", [(3, 11), (3, 12, 4), (3, 14, 0)])
def test_supported(version: tuple[int, ...]) -> None:
    assert unsupported(version) == ""


@pytest.mark.parametrize("version", [(3, 6), (3, 9, 6), (3, 10, 14), (3, 15, 0), (4, 0)])
def test_unsupported(version: tuple[int, ...]) -> None:
    sentence = unsupported(version)
    assert f"this is {version[0]}.{version[1]}." in sentence
    assert "uv run --no-project --python 3.12 -m installer run" in sentence


def test_an_old_python_can_read_what_is_read_before_the_check() -> None:
    for name in ("__init__", "__main__"):
        module = ast.parse((ROOT / "installer" / f"{name}.py").read_text(), feature_version=(3, 6))
        imported = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert {ast.unparse(node) for node in imported} <= {"import sys"}
