"""`octavo perplexity`: a file's text on a real model, through the command as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.commands import commands
from tests.tiny_models import CORPUS, write_tiny_gguf


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.mktemp("home")
    (folder / "settings.toml").write_text('[engine]\nbackend = "reference"\n')
    monkeypatch.setenv("OCTAVO_HOME", str(folder))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", context_length=128).path


def test_figures(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text := tmp_path / "text").write_text("\ufeff" + "\n".join(CORPUS), "utf-8")
    words = ["perplexity", str(model), "--text", str(text)]
    assert commands.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "tiny" and found["text"] == str(text)
    assert found["perplexity"] > 1 and found["window"] == 128
    assert found["num_scored"] == found["num_tokens"] - found["num_windows"]
    assert commands.main(words) == 0
    shown, said = capsys.readouterr()
    assert shown.startswith(f"perplexity {found['perplexity']:.4f}\n{found['num_tokens']:,} tokens, ")
    assert shown.count("\n") == 2 and said == ""


@pytest.mark.parametrize(
    "data, said",
    [
        (None, "text can't be read: No such file or directory."),
        (b"", "text is empty."),
        (b" \n\t ", "text is empty."),
        (b"a", "The text is too short: it has 1 of at least 16 tokens."),
        ("caf\u00e9".encode("latin-1"), "is not text in UTF-8: it breaks off at byte 3."),
    ],
)
def test_bad_texts_are_one_sentence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / "text").write_bytes(data)
    assert commands.main(["perplexity", str(model), "--text", str(tmp_path / "text")]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("octavo: ") and said in err and err.count("\n") == 1


def test_bad_models_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (text := tmp_path / "text").write_text("\n".join(CORPUS), "utf-8")
    for model, said in (("nothing/here.gguf", "There is no file or folder"), ("x", "There is no model 'x'")):
        assert commands.main(["perplexity", model, "--text", str(text)]) == 1
        out, err = capsys.readouterr()
        assert out == "" and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    "command", [["perplexity", "{}", "--text", "{text}"], ["chat", "hi", "--model", "{}"]]
)
def test_a_wish_for_another_edition(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    (text := tmp_path / "text").write_text("\n".join(CORPUS), "utf-8")
    words = [word.format(model, text=text) for word in command]
    assert commands.main([*words, "--quantization", "awq"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "Only a model's own files can be awq" in err and err.count("\n") == 1
    with pytest.raises(SystemExit):
        commands.main([*words, "--quantization", "int3"])
