"""`octavo inspect`: real files and folders, sound and broken, through the command as a person types it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from app.commands import commands
from engine.checkpoints import open_checkpoint
from tests.tiny_folders import write_tiny_folder
from tests.tiny_models import write_tiny_gguf


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_HOME", str(tmp_path_factory.mktemp("home")))


def test_a_gguf_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf", quantization="Q4_K").path
    assert commands.main(["inspect", str(path)]) == 0
    shown = capsys.readouterr().out
    for part in ("llama", "2 x", "Q4_K", "Int4K", "exact", "512 tokens", "roles: user, assistant, system"):
        assert part in shown, shown
    assert "problem" not in shown


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_tiny_folder(tmp_path / "some model", dtype=torch.bfloat16, shards=True)
    assert commands.main(["inspect", "--json", str(tmp_path / "some model")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert found["disk_bytes"] == 2 * found["parameters"]
    assert (found["source"], found["architecture"], found["num_layers"]) == ("hf", "llama", 2)
    assert len(found["files"]) > 3 and found["context_length"] == 512
    assert found["special_tokens"] == {"bos": "<s>", "eos": "<|im_end|>"} and found["starts_with_bos"]
    assert set(found["end_tokens"]) == {"<|im_end|>", "</s>"}
    assert found["template_roles"] == ["user", "assistant", "system"] and found["problems"] == []
    kinds = {each["kind"]: each for each in found["tensors"]}
    assert kinds["model.layers.*.mlp.down_proj"]["count"] == 2
    assert kinds["model.layers.*.mlp.down_proj"]["source"] == "floats"
    assert kinds["model.norm"]["format"] == "float32"


def test_an_embedding_that_is_stored_again_as_the_head_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def parameters(path: Path) -> int:
        assert commands.main(["inspect", "--json", str(path)]) == 0
        return int(json.loads(capsys.readouterr().out)["parameters"])

    tied = parameters(write_tiny_gguf(tmp_path / "tied.gguf").path)
    path = write_tiny_gguf(tmp_path / "head.gguf", tied=False).path
    with open_checkpoint(path) as checkpoint:
        embedding, head = (checkpoint.tensors[f"{name}.weight"] for name in ("token_embd", "output"))
    assert parameters(path) == tied + math.prod(head.shape)
    data = np.memmap(path, np.float32, "r+")
    values = data[embedding.offset // 4 : embedding.end // 4]
    data[head.offset // 4 : head.end // 4] = np.round(values, 2)  # as near as another type would be
    data.flush()
    assert parameters(path) == tied


def test_the_text_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_folder(tmp_path, wrapped=True)
    assert commands.main(["inspect", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "llama, the half that reads text" in shown and "vision" not in shown


def test_problems_are_all_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": "mamba9"}))
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('not for chats') }}")
    assert commands.main(["inspect", str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert "mamba9" in shown and "not for chats" in shown and shown.count("problem: ") == 2
    assert "model.layers.*.mlp.down_proj" in shown


@pytest.mark.parametrize(
    "name, data, said",
    [
        ("a.gguf", b"GGUF" + bytes(100), "GGUF version 0"),
        ("a.gguf", b"PK\3\4" + bytes(100), "is not a GGUF file"),
        ("a.bin", b"PK\3\4" + bytes(100), "can hold programs"),
        ("a.gguf", None, "There is no file or folder"),
    ],
)
def test_bad_files_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes | None, said: str
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    assert commands.main(["inspect", str(tmp_path / name)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("octavo: ") and said in err and err.count("\n") == 1
