"""A path to an open checkpoint: a GGUF file, or a folder with config.json and safetensors, or a GGUF, in it.

Formats that can run code when they are read are refused by name.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import BadCheckpoint, UnsupportedModel
from .checkpoint import Checkpoint
from .folder import NEVER_OPENED, PICKLES, read_folder
from .gguf import read_gguf

# Ending -> what to say.
UNSERVED = {
    ".safetensors": "Give the folder that it lies in: config.json and tokenizer.json are needed, too",
    ".json": "Give the folder that it lies in",
    **dict.fromkeys(PICKLES, NEVER_OPENED),
}


def open_checkpoint(path: Path) -> Checkpoint:
    """Raises BadCheckpoint or UnsupportedModel; nothing stays open then."""
    try:
        is_there, is_file, is_folder = path.exists(), path.is_file(), path.is_dir()
    except OSError as error:  # a name that no file can have
        raise BadCheckpoint(f"There is no file or folder {str(path)[:80]}.") from error
    if is_folder:
        return read_folder(path)
    if not is_there:
        raise BadCheckpoint(f"There is no file or folder {path}.")
    if not is_file:
        raise BadCheckpoint(f"{path} is neither a file nor a folder.")
    if path.suffix.lower() in UNSERVED:
        raise UnsupportedModel(f"{path.name} cannot be used as it is. {UNSERVED[path.suffix.lower()]}.")
    return read_gguf(path)
