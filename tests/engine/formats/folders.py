"""Folders with tensors in safetensors and a config.json, for tests of the schemes in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoints import Checkpoint, open_checkpoint


def open_folder(path: Path, tensors: dict[str, Tensor], quantization: dict[str, Any] | None) -> Checkpoint:
    """A new folder at `path`, opened."""
    path.mkdir(exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path / "model.safetensors")
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    if quantization is not None:
        config["quantization_config"] = quantization
    (path / "config.json").write_text(json.dumps(config))
    return open_checkpoint(path)


def pack_words(values: Tensor, bits: int) -> Tensor:
    """Whole numbers [n, m] -> int32 [n, m * bits / 32], the first in a word's lowest bits."""
    per_word = 32 // bits
    words = torch.zeros(len(values), values.shape[1] // per_word, dtype=torch.int64)
    for i in range(per_word):
        words |= values[:, i::per_word].long() << bits * i
    return torch.where(words >= 2**31, words - 2**32, words).int()
