"""Whole models with one thing wrong that no header shows: in their weights, or in what the parts say of each
other. Tiny, but for one that is larger than memory, whose file is a hole.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from engine.checkpoints import read_gguf
from tests.engine.checkpoints.malformed_gguf import STRING, array, build, key, tensor, text, u32
from tests.tiny_folders import write_tiny_folder
from tests.tiny_models import write_tiny_gguf

Change = Callable[[Path], None]
Changes = dict[str, tuple[Change, str]]  # name -> (what is done to a sound one, parts of what is said then)
NAN, INFINITY = float("nan"), float("inf")


def tensor_bytes(name: str, data: bytes, at: int = 0) -> Change:
    """Other bytes inside a tensor of a GGUF file."""

    def change(path: Path) -> None:
        with read_gguf(path) as checkpoint:
            begin = checkpoint.tensors[name].offset
        with path.open("r+b") as file:
            file.seek(begin + at)
            file.write(data)

    return change


def swap(old: bytes, new: bytes) -> Change:
    """A part of the file that is there once, replaced by one as long."""

    def change(path: Path) -> None:
        data = path.read_bytes()
        assert data.count(old) == 1 and len(old) == len(new), (old, data.count(old))
        path.write_bytes(data.replace(old, new))

    return change


def number(name: str, old: int, new: int) -> Change:
    """Another value of a key."""
    head = text(name) + u32(4)
    return swap(head + u32(old), head + u32(new))


def kind(name: str, dims: tuple[int, int], old: int, new: int) -> Change:
    """Another type of a tensor."""
    head = text(name) + u32(2) + struct.pack("<2Q", *dims)
    return swap(head + u32(old), head + u32(new))


# of a Q8_0 file: blocks of a float16 scale and 32 numbers
GGUF: Changes = {
    "a gain that is none": (
        tensor_bytes("blk.1.attn_norm.weight", struct.pack("<f", NAN), 40),
        "1 of 64 values of blk.1.attn_norm.weight are no finite numbers",
    ),
    "a gain that is infinite": (
        tensor_bytes("output_norm.weight", struct.pack("<f", -INFINITY)),
        "1 of 64 values of output_norm.weight",
    ),
    "a scale that is none": (tensor_bytes("blk.0.ffn_up.weight", b"\0\x7e"), "no finite numbers"),
    "a scale that is infinite": (tensor_bytes("token_embd.weight", b"\0\x7c", 34), "no finite numbers"),
    "a matrix of NaN": (tensor_bytes("blk.1.ffn_down.weight", b"\xff" * 34 * 4), "no finite numbers"),
    "a layer more than there is": (number("llama.block_count", 2, 3), "block_count is 3; it must be 2"),
    "a thousand layers": (number("llama.block_count", 2, 1000), "block_count is 1000; it must be 2"),
    "2^31 layers": (number("llama.block_count", 2, 2**31), "block_count"),
    "another width": (number("llama.embedding_length", 64, 96), "dimension_count is 16; only 24"),
    "another width of feed-forward": (
        number("llama.feed_forward_length", 128, 96),
        "[64, 128], expected [64, 96]",
    ),
    "more heads than width": (number("llama.attention.head_count", 4, 8), "."),
    "no heads": (number("llama.attention.head_count", 4, 0), "head_count"),
    "heads that do not divide": (number("llama.attention.head_count", 4, 3), "."),
    "more heads of keys than heads": (number("llama.attention.head_count_kv", 2, 8), "."),
    "a matrix is missing": (
        swap(text("blk.0.attn_q.weight"), text("blk.0.attn_x.weight")),
        "blk.0.attn_x.weight",
    ),
    "an unknown architecture": (
        swap(
            key("general.architecture", STRING, text("llama")),
            key("general.architecture", STRING, text("llamb")),
        ),
        "llamb",
    ),
    "an unknown pre-tokenizer": (
        swap(text("smollm"), text("smallm")),
        "The pre-tokenizer 'smallm' is not known; known are",
    ),
    "an unknown kind of tokenizer": (swap(text("gpt2"), text("t5t5")), "'t5t5'"),
    "a type that is known and not served": (kind("blk.0.ffn_up.weight", (64, 128), 8, 24), "I8"),
    "another type that is not served": (kind("blk.0.attn_q.weight", (64, 64), 8, 24), "I8"),
}


def config(**changes: Any) -> Change:
    """Other settings in config.json."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def weights(edit: Callable[[dict[str, torch.Tensor]], object]) -> Change:
    """Other tensors."""

    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        found = load_file(path)
        edit(found)
        save_file(found, path)

    return change


def value(name: str, value: float) -> Change:
    """One number of a tensor."""
    return weights(lambda found: found[name].view(-1)[3].fill_(value))


def other(name: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Change:
    """A tensor in place of another."""
    return weights(lambda found: found.update({name: torch.ones(shape, dtype=dtype)}))


def quantized(**settings: Any) -> Change:
    return config(quantization_config=settings)


def packed(method: str, bits: int, *shapes: tuple[int, int] | None, **more: Any) -> Change:
    """One matrix as integers, scales and zeros of these shapes; None: without."""
    parts = zip(
        ("qweight", "scales", "qzeros"), shapes, (torch.int32, torch.float16, torch.int32), strict=True
    )
    found = {
        Q.replace("weight", part): torch.ones(shape, dtype=dtype) for part, shape, dtype in parts if shape
    }
    store = weights(lambda all_of_them: (all_of_them.pop(Q), all_of_them.update(found)))
    settings = {"quant_method": method, "bits": bits, "group_size": 32, "version": "gemm"} | more

    def change(folder: Path) -> None:
        quantized(**settings)(folder)
        store(folder)

    return change


Q, UP = "model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight"
GAIN = "model.layers.1.input_layernorm.weight"
FOLDERS: Changes = {
    "a gain that is none": (value(GAIN, NAN), "no finite numbers"),
    "a weight that is none": (value(Q, NAN), "no finite numbers"),
    "a weight that is infinite": (value(UP, INFINITY), "no finite numbers"),
    "an embedding that is none": (value("model.embed_tokens.weight", NAN), "no finite numbers"),
    "another shape": (other(UP, (5, 64)), f"{UP}|[5, 64]"),
    "a shape turned": (weights(lambda found: found.update({UP: found[UP].T.contiguous()})), UP),
    "a matrix that is a vector": (other(Q, (64,)), Q),
    "a gain of another length": (other(GAIN, (63,)), f"{GAIN} is [63], expected [64]"),
    "a gain that is a matrix": (other(GAIN, (64, 64)), GAIN),
    "a matrix of integers": (other(Q, (64, 64), torch.int32), "I32"),
    "a matrix of complex numbers": (other(Q, (64, 64), torch.complex64), "C64"),
    "a matrix is missing": (weights(lambda found: found.pop(Q)), Q),
    "all layers are missing": (
        weights(lambda found: [found.pop(name) for name in list(found) if "layers" in name]),
        "num_hidden_layers is 2; it must be 0",
    ),
    "a layer that nobody asks for": (
        other("model.layers.2.self_attn.q_proj.weight", (64, 64)),
        "num_hidden_layers is 2; it must be 3",
    ),
    "an unknown architecture": (config(model_type="llamb", architectures=["Llamb"]), "llamb"),
    "a vocabulary smaller than the tokenizer's": (config(vocab_size=50), "vocab_size is 50; it must be"),
    "a vocabulary larger than the embedding": (
        config(vocab_size=100_000),
        "vocab_size is 100000; it must be",
    ),
    "no context": (config(max_position_embeddings=0), "max_position_embeddings"),
    "a million layers": (config(num_hidden_layers=10**6), "num_hidden_layers"),
    "bitsandbytes": (quantized(quant_method="bitsandbytes", load_in_4bit=True), "bitsandbytes"),
    **{
        method: (quantized(quant_method=method), method)
        for method in ["hqq", "aqlm", "quip", "eetq", "vptq", "spqr", "higgs", "quanto", "torchao"]
    },
    "a method that is a number": (quantized(quant_method=7), "7"),
    "GPTQ of 3 bits": (packed("gptq", 3, (6, 64), (2, 64), (2, 6)), "3 bits"),
    "GPTQ without scales": (packed("gptq", 4, (8, 64), None, (2, 8)), "q_proj.scales"),
    "GPTQ of another shape": (packed("gptq", 4, (9, 64), (2, 64), (2, 8)), "9 words for 64 inputs"),
    "GPTQ with scales of another shape": (
        packed("gptq", 4, (8, 64), (3, 64), (2, 8)),
        "qzeros is [2, 8], expected [3, 8]",
    ),
    "GPTQ with zeros of another shape": (packed("gptq", 4, (8, 64), (2, 64), (2, 9)), "[2, 9]"),
    "AWQ of 8 bits": (packed("awq", 8, (64, 16), (2, 64), (2, 16)), "8"),
    "AWQ in another layout": (packed("awq", 4, (64, 8), (2, 64), (2, 8), version="gemv"), "gemv"),
    "compressed tensors of a format to come": (
        quantized(quant_method="compressed-tensors", format="tomorrow", config_groups={}),
        "tomorrow",
    ),
}


def larger_than_memory(path: Path) -> None:
    """25 GB of float16 in one layer; on the disk the file is a hole."""
    width, wide = 4096, 2**20
    shapes = {
        "token_embd.weight": (width, 4),
        "output_norm.weight": (width,),
        "blk.0.attn_norm.weight": (width,),
        "blk.0.ffn_norm.weight": (width,),
        **{f"blk.0.attn_{part}.weight": (width, width) for part in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{part}.weight": (width, wide) for part in ("gate", "up")},
        "blk.0.ffn_down.weight": (wide, width),
    }
    sizes = {
        "block_count": 1, "context_length": 512, "embedding_length": width, "feed_forward_length": wide,
        "attention.head_count": 32, "attention.head_count_kv": 32,
    }  # fmt: skip
    keys = (
        key("general.architecture", STRING, text("llama")),
        *(key(f"llama.{name}", 4, u32(size)) for name, size in sizes.items()),
        key("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
        key("tokenizer.ggml.model", STRING, text("gpt2")),
        key("tokenizer.ggml.pre", STRING, text("smollm")),
        array("tokenizer.ggml.tokens", STRING, 4, b"".join(map(text, ("a", "b", "ab", "<|im_end|>")))),
        array("tokenizer.ggml.token_type", 5, 4, struct.pack("<4i", 1, 1, 1, 3)),
        array("tokenizer.ggml.merges", STRING, 1, text("a b")),
        key("tokenizer.ggml.eos_token_id", 4, u32(3)),
    )
    tensors, end = [], 0
    for name, dims in shapes.items():
        tensors.append(tensor(name, dims, int(len(dims) > 1), end))
        end += int(np.prod(dims)) * (2 if len(dims) > 1 else 4)
    header = build(keys=keys, tensors=tuple(tensors), data=0)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + end)


def write_good(root: Path) -> tuple[Path, Path]:
    """A sound file and a sound folder, which everything here is made from."""
    path, folder = root / "m.gguf", root / "m"
    folder.mkdir()
    write_tiny_folder(folder)
    return write_tiny_gguf(path, quantization="Q8_0").path, folder


def write_all(root: Path, place: Callable[[str], Path]) -> dict[str, str]:
    """Each in a folder that `place` makes for its name; names and parts of what is said of them."""
    root.mkdir()
    path, folder = write_good(root)
    said = {}
    for name, (change, words) in GGUF.items():
        shutil.copy(path, copy := place(f"model, {name}") / "m.gguf")
        change(copy)
        said[f"model, {name}"] = words
    for name, (change, words) in FOLDERS.items():
        shutil.copytree(folder, copy := place(f"folder, {name[:40]}") / "m")
        change(copy)
        said[f"folder, {name[:40]}"] = words[:40]
    larger_than_memory(place("larger than memory") / "m.gguf")
    return said | {"larger than memory": "51.81 GB|can be used now"}
