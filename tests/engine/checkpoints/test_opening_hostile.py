"""Every bad file and folder, and repositories that mean harm, under an audit hook and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.checkpoints import (
    malformed_folders,
    malformed_gguf,
    malformed_models,
    malformed_safetensors,
)
from tests.engine.checkpoints.malformed_folders import (
    GOOD_FOLDER,
    INDEX,
    dump,
    index,
    tokenizer,
    write_folder,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="measures itself in /proc")
EVIL = b"import pathlib\npathlib.Path(__file__).with_name('ran').touch()\n"
CODE: dict[str, Any] = {
    "AutoConfig": "evil.Config",
    "AutoModelForCausalLM": "evil.Model",
    "AutoTokenizer": ["evil.T"],
}
SECRET = {
    "__reduce__": ["os.system", ["touch ran"]],
    "py/object": "evil.Config",
    "!!python/object": "evil.Config",
}


def config(**more: Any) -> dict[str, bytes | None]:
    return {"config.json": dump({"model_type": "llama", **more}), "evil.py": EVIL, "modeling_evil.py": EVIL}


# name -> files of a folder; each ends in a sentence, as tiny as its tensors are
REPOSITORIES: dict[str, dict[str, bytes | None]] = {
    "auto_map": config(auto_map=CODE, trust_remote_code=True),
    "auto_map of another repository": config(auto_map={"AutoConfig": "owner/repo--evil.Config"}),
    "auto_map everywhere": config(
        text_config={"auto_map": CODE, "model_type": "llama", "trust_remote_code": True},
        vision_config={"auto_map": CODE},
        quantization_config={"auto_map": CODE, "quant_method": "gptq"},
    ),
    "an attention from elsewhere": config(
        _attn_implementation="owner/evil",
        _attn_implementation_internal="owner/evil",
        attn_implementation="evil",
    ),
    "an architecture of its own": config(model_type="evil", architectures=["Evil"], auto_map=CODE),
    "a model type that is a path": config(model_type="../../evil", architectures=["../evil.Model"]),
    "a model type that is a module": config(model_type="os", architectures=["os.system"]),
    "a quantizer from elsewhere": config(
        quantization_config={"quant_method": "owner/evil", "modules": ["evil"]}
    ),
    "bitsandbytes": config(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
    "pickled keys": config(**SECRET, model_type="llama"),
    "custom pipelines": config(custom_pipelines={"x": {"impl": "evil.P"}}, pipeline_tag="evil"),
    "kernels to fetch": config(use_kernels=True, kernel_config={"norm": "owner/evil:Norm"}),
    "a tokenizer class of its own": config()
    | {
        "tokenizer_config.json": dump(
            {"tokenizer_class": "evil.T", "auto_map": {"AutoTokenizer": ["evil.T", None]}}
        )
    },
    "a tokenizer file elsewhere": config()
    | {"tokenizer_config.json": dump({"tokenizer_file": "/etc/passwd", "name_or_path": "/etc"})},
    "a processor of its own": config()
    | {"processor_config.json": dump({"auto_map": {"AutoProcessor": "evil.P"}}), "processing_evil.py": EVIL},
    "a generation of its own": config() | {"generation_config.json": dump({"custom_generate": "owner/evil"})},
    "a package": config()
    | {"__init__.py": EVIL, "setup.py": EVIL, "conftest.py": EVIL, "sitecustomize.py": EVIL},
    "pickles beside": config() | {"pytorch_model.bin": b"\x80\x04cos\nsystem\n", "optimizer.pt": b"PK\3\4"},
    "a template that wants out": config()
    | {"chat_template.jinja": b"{{ ''.__class__.__mro__[1].__subclasses__() }}{% include '/etc/passwd' %}"},
    "a template bomb": config()
    | {"chat_template.jinja": b"{% for i in range(10**12) %}{{ 'a' * 10**9 }}{% endfor %}"},
    "templates by the thousand": config()
    | {
        "tokenizer_config.json": dump(
            {"chat_template": [{"name": f"{i}", "template": "x"} for i in range(5000)]}
        )
    },
    "a pickle called safetensors": config()
    | {"model.safetensors": b"\x80\x04cos\nsystem\n(S'touch ran'\ntR."},
    "a zip called safetensors": config()
    | {"model.safetensors": b"PK\3\4" + bytes(4000) + b"PK\5\6" + bytes(18)},
    "a huge index": config()
    | {
        "model.safetensors": None,
        INDEX: index(
            {f"model.layers.{i}.mlp.experts.7.down_proj.weight": "m.safetensors" for i in range(200_000)}
        ),
    },
    "an index of one name": config()
    | {"model.safetensors": None, INDEX: index({"a" * 1_000_000: "m.safetensors"})},
    "a vocabulary of long words": config()
    | {"tokenizer.json": tokenizer({"vocab": {"a": 0, "b": 1, "ab": 2, "x" * 4_000_000: 4}})},
    "a pattern that never ends": config()
    | {
        "tokenizer.json": tokenizer(
            pre_tokenizer={
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": "(a+)+b"},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": False,
                        "trim_offsets": True,
                        "use_regex": False,
                    },
                ],
            }
        )
    },
}
Place = Callable[[Path], object]
# name -> what is put in place of the weights or the config
PLACES: dict[str, tuple[str, Place]] = {
    "weights a pipe": ("model.safetensors", os.mkfifo),
    "config a pipe": ("config.json", os.mkfifo),
    "weights a folder": ("model.safetensors", os.mkdir),
    "tokenizer a folder": ("tokenizer.json", os.mkdir),
    "weights a link to a device": ("model.safetensors", lambda path: path.symlink_to("/dev/zero")),
    "config a link to a device": ("config.json", lambda path: path.symlink_to("/dev/zero")),
    "tokenizer a link to a secret": ("tokenizer.json", lambda path: path.symlink_to("/etc/passwd")),
    "weights a link above": ("model.safetensors", lambda path: path.symlink_to("../outside")),
    "weights a link to itself": ("model.safetensors", lambda path: path.symlink_to(path.name)),
    "weights a link to nothing": ("model.safetensors", lambda path: path.symlink_to("none")),
    "template a link above": ("chat_template.jinja", lambda path: path.symlink_to("../../outside")),
}


def write_all(root: Path) -> tuple[list[str], dict[str, str]]:
    """Every case in a numbered folder; their names in that order, and what some say. A file is called m.*, a
    folder m.
    """
    names: list[str] = []

    def place(name: str) -> Path:
        names.append(name)
        folder = root / str(len(names) - 1)
        folder.mkdir()
        return folder

    def write(name: str, files: dict[str, bytes | None]) -> Path:
        folder = place(name) / "m"
        folder.mkdir()
        return write_folder(folder, files)

    for name, (data, _) in malformed_gguf.BAD.items():
        (place(f"GGUF, {name}") / "m.gguf").write_bytes(data)
    for size in range(0, len(malformed_gguf.GOOD), 7):
        (place(f"GGUF, {size} bytes") / "m.gguf").write_bytes(malformed_gguf.GOOD[:size])
    for name, (data, _) in malformed_safetensors.BAD.items():
        write(f"safetensors, {name}", {"model.safetensors": data})
    for size in range(0, len(malformed_safetensors.GOOD), 7):
        write(f"safetensors, {size} bytes", {"model.safetensors": malformed_safetensors.GOOD[:size]})
    for name, (files, _) in malformed_folders.BAD.items():
        write(name, files)
    for name, files in REPOSITORIES.items():
        write(name, files)
    for name, (file, make) in PLACES.items():
        make(write(name, {file: None}) / file)
    return names, malformed_models.write_all(root.parent / "sound", place)


@linux
def test_nothing_happens_but_a_sentence(tmp_path: Path) -> None:
    root = tmp_path / "cases"
    root.mkdir()
    names, words = write_all(root)
    sound = str(tmp_path / "sound")
    command = [sys.executable, "-m", "tests.engine.checkpoints.hostile", sound, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(names) >= 500, f"it ended after {names[len(results)]}: {done.stderr[-2000:]}"
    for name, result in zip(names, results, strict=True):
        assert not result["found"], f"{name}: {result['found']}"
        assert result["said"].endswith(".") and result["said"].isprintable(), f"{name}: {result['said']!r}"
        assert len(result["said"]) < 900, f"{name}: {result['said']}"
        assert all(part in result["said"] for part in words.get(name, "").split("|")), f"{name}: {result}"
    assert not list(root.rglob("ran"))
    print(f"\n{len(names)} cases, {max(result['seconds'] for result in results):.2f} s at most")


def test_the_folder_is_good_when_nothing_is_wrong() -> None:
    """Else every case above would say something."""
    assert GOOD_FOLDER.keys() == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
        "special_tokens_map.json",
    }
