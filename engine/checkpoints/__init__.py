"""Checkpoints: a model's files on disk, read as named tensors and metadata. One module per kind of file.

They are data that nobody vouches for: a file is sound, or ends in a BadCheckpoint that says what is wrong.
"""

from __future__ import annotations

from .gguf import GgufFile, read_gguf
from .gguf_header import TensorInfo

__all__ = ["GgufFile", "TensorInfo", "read_gguf"]
