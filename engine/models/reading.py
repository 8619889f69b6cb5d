"""From a checkpoint's metadata to a ModelConfig: which reader, and the check that both share.

Knows neither keys nor families.
"""

from __future__ import annotations

from ..checkpoints import Checkpoint
from .config import ModelConfig
from .gguf_config import read_gguf_config
from .hf_config import read_hf_config

READERS = {"gguf": read_gguf_config, "hf": read_hf_config}


def read_config(checkpoint: Checkpoint) -> ModelConfig:
    """Raises UnsupportedModel for what is not served, BadCheckpoint for what makes no sense."""
    config = READERS[checkpoint.source](checkpoint)
    if not config.borrowed:
        config.check(checkpoint)
    return config
