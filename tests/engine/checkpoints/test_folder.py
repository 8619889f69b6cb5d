"""Folders as Hugging Face has them: read as one model, or refused in a sentence with what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import pytest

from engine.checkpoints import Checkpoint, open_checkpoint
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.text.tokenizer import Tokenizer
from tests.engine.checkpoints.malformed_folders import (
    BAD,
    FIRST,
    GOOD_FOLDER,
    SECOND,
    SHARDED,
    dump,
    write_folder,
)
from tests.engine.checkpoints.malformed_safetensors import build, entry


def test_there_are_many_bad_folders() -> None:
    assert len(BAD) >= 100


@pytest.mark.parametrize("name", BAD)
def test_bad_folder(name: str, tmp_path: Path) -> None:
    changes, expected = BAD[name]
    with pytest.raises((BadCheckpoint, UnsupportedModel)) as raised:
        Tokenizer.of(open_checkpoint(write_folder(tmp_path, changes)))
    said = str(raised.value)
    assert all(part in said for part in expected.split("|")), said
    assert said.isprintable() and len(said) < 800 and said.endswith(".")


def test_the_good_folder_is_good(tmp_path: Path) -> None:
    """What the bad ones are made from."""
    with open_checkpoint(write_folder(tmp_path, {})) as checkpoint:
        assert (checkpoint.source, checkpoint.wrapped) == ("hf", False)
        assert checkpoint.metadata == {"model_type": "llama", "vocab_size": 4}
        tokenizer = Tokenizer.of(checkpoint)
        assert tokenizer.encode("abba<|end|>", special=True) == [2, 1, 0, 3]
        assert (tokenizer.vocab_size, tokenizer.eos_ids, tokenizer.bos_id) == (4, {3}, None)


def test_shards_are_one_set_of_tensors(tmp_path: Path) -> None:
    with open_checkpoint(write_folder(tmp_path, SHARDED)) as checkpoint:
        assert [(t.name, t.file) for t in checkpoint.tensors.values()] == [("a", 0), ("b", 1)]
        assert [path.name for path in checkpoint.files] == [FIRST, SECOND]
        assert checkpoint.raw("b").shape == (8,)


@pytest.mark.parametrize("name", ["gptq_model-4bit-128g", "模型 (1)", "Ünï.v2", "-x"])
def test_a_single_file_of_any_name(tmp_path: Path, name: str) -> None:
    files = {"model.safetensors": None, f"{name}.safetensors": GOOD_FOLDER["model.safetensors"]}
    with open_checkpoint(write_folder(tmp_path, files)) as checkpoint:
        assert len(checkpoint.tensors) == 2


@pytest.mark.parametrize("name, method", [("quantize_config.json", "gptq"), ("quant_config.json", "awq")])
def test_quantization_in_a_file_of_its_own(tmp_path: Path, name: str, method: str) -> None:
    with open_checkpoint(write_folder(tmp_path, {name: b'{"bits": 4}'})) as checkpoint:
        assert checkpoint.metadata["quantization_config"] == {"quant_method": method, "bits": 4}
    inside = {"config.json": b'{"quantization_config": {"bits": 8}}'}
    with open_checkpoint(write_folder(tmp_path, inside)) as checkpoint:
        assert checkpoint.metadata["quantization_config"] == {"bits": 8}


WRAPPED = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "eos_token_id": [3],
    "image_token_index": 7,
    "quantization_config": {"quant_method": "fp8"},
    "vision_config": {"hidden_size": 5, "model_type": "siglip"},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 64},
}
LAYOUTS = {
    "llava": [
        "language_model.model.a",
        "language_model.lm_head.a",
        "vision_tower.a",
        "multi_modal_projector.a",
    ],
    "new": ["model.language_model.a", "lm_head.a", "model.vision_tower.a", "model.multi_modal_projector.a"],
    "qwen": ["model.a", "lm_head.a", "visual.a", "model.image_newline"],
    "idefics": ["model.text_model.a", "lm_head.a", "model.vision_model.a", "model.connector.a"],
    "sound": ["model.language_model.a", "lm_head.a", "model.audio_tower.a", "model.embed_vision.a"],
}


def tensors(names: list[str]) -> bytes:
    return build({n: entry("U8", (1,), (i, i + 1)) for i, n in enumerate(names)}, len(names))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_wrapped_model_is_its_text_half(tmp_path: Path, layout: str) -> None:
    files = {"config.json": dump(WRAPPED), "model.safetensors": tensors(LAYOUTS[layout])}
    with open_checkpoint(write_folder(tmp_path, files)) as checkpoint:
        assert checkpoint.wrapped
        assert list(checkpoint.tensors) == ["model.a", "lm_head.a"]
        assert checkpoint.tensors["model.a"].name == "model.a"
        assert checkpoint.metadata == {
            "model_type": "gemma3_text",
            "architectures": ["Gemma3ForConditionalGeneration"],
            "eos_token_id": [3],
            "image_token_index": 7,
            "quantization_config": {"quant_method": "fp8"},
            "hidden_size": 64,
        }


def test_what_is_neither_text_nor_known_stays_to_be_refused(tmp_path: Path) -> None:
    files = {"config.json": dump(WRAPPED), "model.safetensors": tensors(["model.a", "model.talker.a"])}
    with open_checkpoint(write_folder(tmp_path, files)) as checkpoint:
        assert "model.talker.a" in checkpoint.tensors


def test_two_names_for_one_tensor(tmp_path: Path) -> None:
    files = {
        "config.json": dump(WRAPPED),
        "model.safetensors": tensors(["model.a", "model.language_model.a"]),
    }
    with pytest.raises(BadCheckpoint, match=r"the tensor model\.a under two names"):
        open_checkpoint(write_folder(tmp_path, files))


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"],
)
def test_links_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "model"
    folder.mkdir()
    outside.write_bytes(GOOD_FOLDER.get(name) or b"{}")
    (write_folder(folder, {name: None}) / name).symlink_to(outside)
    with pytest.raises(BadCheckpoint, match=f"{name} in model is a link to a place outside"):
        open_checkpoint(folder)


def test_the_cache_of_hugging_face_is_made_of_links(tmp_path: Path) -> None:
    blobs, folder = tmp_path / "models--x" / "blobs", tmp_path / "models--x" / "snapshots" / "0123"
    blobs.mkdir(parents=True)
    folder.mkdir(parents=True)
    for n, (name, data) in enumerate(GOOD_FOLDER.items()):
        (blobs / f"{n}").write_bytes(data or b"")
        (folder / name).symlink_to(os.path.join("..", "..", "blobs", f"{n}"))
    with open_checkpoint(folder) as checkpoint:
        assert len(checkpoint.tensors) == 2


def test_links_inside_the_folder_are_fine(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path, {"model.safetensors": None, "real.safetensors": GOOD_FOLDER["model.safetensors"]}
    )
    (folder / "model.safetensors").symlink_to("real.safetensors")
    with open_checkpoint(folder) as checkpoint:
        assert len(checkpoint.tensors) == 2


def test_templates_come_from_three_places(tmp_path: Path) -> None:
    def templates(changes: dict[str, bytes | None]) -> dict[str, str]:
        with open_checkpoint(write_folder(tmp_path, changes)) as checkpoint:
            assert checkpoint.text is not None
            return dict(checkpoint.text.templates)

    assert templates({}) == {}
    assert templates({"tokenizer_config.json": b'{"chat_template": "one"}'}) == {"default": "one"}
    several = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "tools"}]
    config = dump({"chat_template": several})
    assert templates({"tokenizer_config.json": config}) == {"default": "one", "tool_use": "tools"}
    assert templates({"chat_template.json": b'{"chat_template": "two"}'})["default"] == "two"
    found: Checkpoint = open_checkpoint(write_folder(tmp_path, {"chat_template.jinja": "drei ü".encode()}))
    assert Tokenizer.of(found).chat_template == "drei ü"


POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes, and links only for administrators")


def write_gguf(path: Path) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("a", np.ones((2, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_folder_of_gguf(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"neither a config\.json nor a GGUF file"):
        open_checkpoint(tmp_path)
    write_gguf(tmp_path / "one.gguf")
    with open_checkpoint(tmp_path) as checkpoint:
        assert (checkpoint.source, checkpoint.path.name) == ("gguf", "one.gguf")
    write_gguf(tmp_path / "two.gguf")
    with pytest.raises(BadCheckpoint, match=r"2 GGUF files; name one of them: one\.gguf, two\.gguf"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("name", ["通义.gguf", "ünï (1).gguf", "a,b & c.gguf", "$x.gguf"])
def test_a_file_of_gguf_is_called_as_its_owner_likes(tmp_path: Path, name: str) -> None:
    (tmp_path / "模型").mkdir()
    write_gguf(tmp_path / "模型" / name)
    with open_checkpoint(tmp_path / "模型") as checkpoint:
        assert checkpoint.path.name == name


@POSIX
def test_a_folder_s_gguf_is_no_link_that_leads_out(tmp_path: Path) -> None:
    write_gguf(tmp_path / "one.gguf")
    (tmp_path / "模型").mkdir()
    (tmp_path / "模型" / "通义.gguf").symlink_to(tmp_path / "one.gguf")
    with pytest.raises(BadCheckpoint, match=r"通义\.gguf in 模型 is a link to a place outside"):
        open_checkpoint(tmp_path / "模型")


@pytest.mark.parametrize(
    "name, said",
    [
        ("pytorch_model.bin", "can hold programs and are never opened"),
        ("model.PT", "can hold programs"),
        ("model.pkl", "can hold programs"),
        ("model.safetensors", "Give the folder"),
        ("config.json", "Give the folder"),
    ],
)
def test_files_that_are_not_opened_alone(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(UnsupportedModel, match=said):
        open_checkpoint(tmp_path / name)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="There is no file or folder"):
        open_checkpoint(tmp_path / "none")
    for name in ("x" * 300, "/".join(["x" * 200] * 30)):
        with pytest.raises(BadCheckpoint, match="There is no file or folder"):
            open_checkpoint(tmp_path / name)


OPTIONAL = [
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "config.json",
]


@POSIX
@pytest.mark.parametrize("name", OPTIONAL)
@pytest.mark.parametrize("kind", ["dangling", "looping", "folder", "pipe"])
def test_what_is_there_and_no_file_is_not_left_out_in_silence(tmp_path: Path, name: str, kind: str) -> None:
    path = write_folder(tmp_path, {name: None}) / name
    make = {"dangling": lambda: path.symlink_to("none"), "looping": lambda: path.symlink_to(name)}
    (make | {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path)})[kind]()
    with pytest.raises(BadCheckpoint, match=f"^{name} cannot be read: it is no file, or a link"):
        open_checkpoint(tmp_path)


@POSIX
@pytest.mark.parametrize("name", ["y.gguf", "y-00001-of-00002.gguf"])
def test_a_pipe_is_no_gguf(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(BadCheckpoint, match=f"{name} cannot be read: it is no file"):
        open_checkpoint(tmp_path)
