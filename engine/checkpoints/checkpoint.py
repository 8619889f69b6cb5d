"""An open checkpoint, of whatever kind: named tensors, metadata, and the files that say how text becomes ids.

    GGUF      metadata: its keys           tensors: blk.0.attn_q.weight     types: F32 Q4_K ...
    folder    metadata: config.json        tensors: as in the safetensors   types: F32 BF16 F8_E4M3 ...

Tensors are views of mapped files; nothing is copied. What they and the keys mean is not known here.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies. `shape` is row-major, as torch has it: the innermost dimension last."""

    name: str
    shape: tuple[int, ...]
    type: str  # GGUF: a name in TENSOR_TYPES; safetensors: one in DTYPES
    offset: int  # of its first byte in the file
    nbytes: int
    file: int = 0  # which of the checkpoint's files

    @property
    def end(self) -> int:
        """The byte after its last."""
        return self.offset + self.nbytes


@dataclass(frozen=True, slots=True)
class TextFiles:
    """What a folder says of its text, read and bounded but not understood; a missing file is empty."""

    tokenizer: bytes = b""  # tokenizer.json
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    special_tokens: Mapping[str, Any] = field(default_factory=dict)  # special_tokens_map.json
    generation: Mapping[str, Any] = field(default_factory=dict)  # generation_config.json
    templates: Mapping[str, str] = field(default_factory=dict)  # chat templates by name, mostly "default"


class Checkpoint:
    """Close it, or use it in a `with`; Windows keeps an open file from being deleted.

    path: the file or folder that was opened · files: those with tensors in them · wrapped: the text half of a
    model that also takes images or sound · text: None for GGUF, whose metadata hold the vocabulary.
    """

    def __init__(
        self,
        path: Path,
        source: Literal["gguf", "hf"],
        metadata: Mapping[str, Any],
        tensors: Mapping[str, TensorInfo],
        files: Mapping[Path, mmap.mmap],
        text: TextFiles | None = None,
        wrapped: bool = False,
    ) -> None:
        self.path, self.source, self.metadata, self.tensors = path, source, metadata, tensors
        self.files, self.text, self.wrapped = tuple(files), text, wrapped
        self._data: tuple[mmap.mmap, ...] | None = tuple(files.values())

    def raw(self, name: str) -> np.ndarray:
        """A tensor's bytes, uint8 [*shape[:-1], bytes per row], read-only, straight from the file."""
        assert self._data is not None, f"{self.path.name} is closed"
        tensor = self.tensors[name]
        row = tensor.nbytes // max(1, int(np.prod(tensor.shape[:-1], dtype=np.int64)))
        values = np.frombuffer(self._data[tensor.file], np.uint8, tensor.nbytes, tensor.offset)
        return values.reshape(*tensor.shape[:-1], row)

    def done_with(self, name: str) -> None:
        """A tensor is not needed any more, if there is one of that name: its pages need not be in memory."""
        if self._data is not None and name in self.tensors and hasattr(mmap, "MADV_DONTNEED"):
            tensor, page = self.tensors[name], mmap.PAGESIZE
            begin = -(-tensor.offset // page) * page
            if (end := tensor.end // page * page) > begin:
                self._data[tensor.file].madvise(mmap.MADV_DONTNEED, begin, end - begin)

    def drop_text(self) -> None:
        """Forget what text becomes ids by, once a vocabulary was made of it."""
        self.metadata = {k: v for k, v in self.metadata.items() if not k.startswith("tokenizer.")}
        self.text = self.text and TextFiles()

    def close(self) -> None:
        """Let go of the files. Arrays that `raw` gave stay valid; a mapping ends with the last of them."""
        data, self._data = self._data, None
        for mapped in data or ():
            close_map(mapped)

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def close_map(data: mmap.mmap) -> None:
    """Close a mapping; one that an array still looks at ends with the array."""
    with contextlib.suppress(BufferError):
        data.close()
