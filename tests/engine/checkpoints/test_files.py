"""Names from strangers, joined to a folder or refused: by the rules of every system, wherever this runs."""

from __future__ import annotations

import ntpath
import posixpath
from pathlib import Path

import pytest

from engine.checkpoints.files import MAX_VALUES, name_of, parse_json, safe_join
from engine.errors import BadCheckpoint

GOOD = [
    "config.json",
    "model.safetensors",
    "model-00001-of-00163.safetensors",
    "qwen2.5-coder_1.5b+q4@main=x.gguf",
    "README",
    "_x",
    "com.json",
    "console.txt",
]
PARTS = [
    "..",
    ".",
    "...",
    "a/..",
    "../a",
    "..\\a",
    "a\\..\\b",
    "a/b",
    "/a",
    "\\a",
    "//host/a",
    "\\\\host\\a",
    "./a",
]
DRIVES = [
    "C:",
    "C:a",
    "C:\\a",
    "c:/a",
    "D:x.safetensors",
    "\\\\?\\C:\\a",
    "\\\\.\\pipe\\a",
    "a:b",
    "a::$DATA",
]
DEVICES = ["con", "CON", "nul", "NUL.json", "prn.txt", "aux", "com1", "COM9.safetensors", "lpt1.gguf", "lpt0"]
ODD = [
    "",
    " ",
    " a",
    "a ",
    "a.",
    "a. ",
    ".a",
    ".git",
    "~",
    "~/a",
    "$HOME",
    "%TEMP%",
    "-rf",
    "*",
    "?",
    "a|b",
    "<a>",
    '"a"',
]
CHARACTERS = [
    f"a{chr(code)}b" for code in (*range(33), 127, 0x85, 0xA0, 0x202E, 0x2024, 0x2025, 0xFF0E, 0xFF0F, 0x2215)
]
LONG = [
    "a" * 201,
    "a" * 300,
    "é",
    "模型",
    "a\ud800",
    "\ufeffa",
    "%2e%2e%2fa",
    "a&b",
    "a;b",
    "a`b`",
    "a$(b)",
    "a'b",
    "a,b",
]
URLS = ["https://host/a", "file:///etc/passwd", "http:a", "data:,a", "hf://a"]
BAD = [*PARTS, *DRIVES, *DEVICES, *ODD, *CHARACTERS, *LONG, *URLS]
BAD += [
    f"{name}.safetensors" for name in (*PARTS, *DRIVES, *CHARACTERS, *URLS) if name not in (".", "..", "...")
]


def test_there_are_many_names() -> None:
    assert len(set(BAD)) >= 150


@pytest.mark.parametrize("name", GOOD)
def test_plain_names_are_joined(tmp_path: Path, name: str) -> None:
    assert safe_join(tmp_path, name) == tmp_path / name
    for rules in (posixpath, ntpath):
        assert rules.basename(name) == name and not rules.isabs(name) and not rules.splitdrive(name)[0]


@pytest.mark.parametrize("name", BAD, ids=ascii)
def test_all_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadCheckpoint, match="no model file may be called") as raised:
        safe_join(tmp_path, name)
    assert len(str(raised.value)) < 300


def test_values_are_counted_before_they_are_made() -> None:
    assert parse_json(b'{"a":[' + b"0," * (MAX_VALUES - 3) + b"0]}", "x")["a"][-1] == 0
    with pytest.raises(BadCheckpoint, match=r"x is damaged: it holds about 262,145 values"):
        parse_json(b'{"a":[' + b"0," * (MAX_VALUES - 1) + b"0]}", "x")


def test_infinity_passes_as_a_number_too_large_does() -> None:
    assert parse_json(b'{"a":Infinity,"b":1e999}', "x") == {"a": float("inf"), "b": float("inf")}


def test_what_a_model_without_a_name_is_called(tmp_path: Path) -> None:
    assert name_of(tmp_path) == tmp_path.name and name_of(Path("a/b.Q4.gguf")) == "b.Q4"
    assert name_of(Path("x" * 5000 + ".gguf")) == "x" * 5000
