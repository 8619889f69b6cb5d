"""Checkpoints: a model's files on disk, read as named tensors and metadata. One module per kind of file.

They are data that nobody vouches for: a file is sound, or ends in a BadCheckpoint that says what is wrong.
"""

from __future__ import annotations

from .checkpoint import Checkpoint, TensorInfo, TextFiles
from .folder import read_folder
from .gguf import read_gguf
from .opening import open_checkpoint

__all__ = ["Checkpoint", "TensorInfo", "TextFiles", "open_checkpoint", "read_folder", "read_gguf"]
