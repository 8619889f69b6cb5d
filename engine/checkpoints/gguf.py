"""A GGUF checkpoint as named tensors and metadata: the file is mapped, its header checked (gguf_header.py).

Tensors are views of the mapped file; nothing is copied. What they and the keys mean is not known here.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadCheckpoint
from .gguf_header import GgufHeader, TensorInfo


class GgufFile:
    """An open checkpoint. Close it, or use it in a `with`; Windows keeps an open file from being deleted."""

    def __init__(
        self, path: Path, data: mmap.mmap, metadata: dict[str, Any], tensors: dict[str, TensorInfo]
    ) -> None:
        self.path, self.metadata, self.tensors = path, metadata, tensors
        self._data: mmap.mmap | None = data

    def raw(self, name: str) -> np.ndarray:
        """A tensor's bytes, uint8 [rows, bytes per row], read-only, straight from the file."""
        assert self._data is not None, f"{self.path.name} is closed"
        tensor = self.tensors[name]
        rows = math.prod(tensor.shape[:-1])
        return np.frombuffer(self._data, np.uint8, tensor.nbytes, tensor.offset).reshape(rows, -1)

    def close(self) -> None:
        """Let go of the file. Arrays that `raw` gave stay valid; the mapping ends with the last of them."""
        data, self._data = self._data, None
        if data is not None:
            _close(data)

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_gguf(path: Path) -> GgufFile:
    """Map a file and read its header. Raises BadCheckpoint or UnsupportedModel; nothing stays open then."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 24:
                raise BadCheckpoint(
                    f"{path.name} has {size} bytes; a GGUF file begins with 24. Download it again."
                )
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BadCheckpoint(f"{path.name} cannot be read: {error.strerror}.") from error
    try:
        metadata, tensors = GgufHeader(data, path.name).read()
    except BaseException:
        _close(data)
        raise
    return GgufFile(path, data, metadata, tensors)


def _close(data: mmap.mmap) -> None:
    with contextlib.suppress(BufferError):  # an array still looks at it; the mapping ends with the array
        data.close()
