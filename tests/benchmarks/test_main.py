"""`python -m benchmarks`: who takes part, which file is meant, what check says and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import Home
from benchmarks import guard
from benchmarks.__main__ import check, find_model, opponents
from tests.source_tree import ROOT

NAME = "decode | tokens_per_s | m.gguf | llama.cpp"


@pytest.mark.parametrize(
    "name, asked, expected",
    [
        ("prefill", [], []),
        ("prefill", ["vllm"], ["vllm"]),
        ("batch", ["llama.cpp"], ["llama.cpp-q4_0", "llama.cpp"]),
        ("decode", ["llama.cpp", "vllm"], ["read", "llama.cpp-q4_0", "llama.cpp", "vllm"]),
        ("load", ["llama.cpp"], ["llama.cpp"]),
    ],
)
def test_who_takes_part(name: str, asked: list[str], expected: list[str]) -> None:
    assert opponents(name, asked) == expected


def test_a_model_is_a_file_or_a_folder_of_the_home(tmp_path: Path) -> None:
    file = tmp_path / "models" / "small" / "a.gguf"
    file.parent.mkdir(parents=True)
    file.touch()
    home = Home(tmp_path)
    assert find_model("small", home) == find_model(str(file), home) == file.resolve()
    with pytest.raises(SystemExit, match="neither a file nor a model"):
        find_model("large", home)


def test_check_fails_when_a_ratio_fell_and_keeps_what_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, log = tmp_path / "ratios.json", tmp_path / "log"
    monkeypatch.setattr(guard.keep, "__defaults__", (kept,))
    monkeypatch.setattr(guard.read_kept, "__defaults__", (kept,))
    row = {"name": "decode", "figure": "tokens_per_s", "model": "m.gguf", "against": "llama.cpp"}
    log.write_text(json.dumps({**row, "ratio": 2.0}))
    assert check([log], keep=True, tolerance=0.1) == 0
    log.write_text(json.dumps({**row, "ratio": 1.0}))
    assert check([log], keep=False, tolerance=0.1) == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"{NAME}: 1.000, kept is 2.000; that is 50% less"
    assert check([log], keep=False, tolerance=0.6) == 0


def test_the_words_are_explained() -> None:
    command = [sys.executable, "-m", "benchmarks", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(word in done.stdout for word in ("--peer", "--chats", "quality", "restart", "check"))


def test_options_stand_anywhere(tmp_path: Path) -> None:
    (log := tmp_path / "log").touch()
    command = [sys.executable, "-m", "benchmarks", "check", "--tolerance", "0.2", str(log)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0 ratios, none fell by more than 20%.\n")
