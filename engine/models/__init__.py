"""Models: what a family's weights are called and how a token passes through them.

families.py   which are served, and how they differ      rope.py     how fast pairs turn
config.py     the shape of one model                     loader.py   a checkpoint's parts, packed
reading.py    metadata to a shape: gguf_config.py, hf_config.py; keys.py asks and checks
decoder.py    the forward pass
"""

from __future__ import annotations

from .config import ModelConfig
from .decoder import Buffers, Decoder
from .loader import load_decoder
from .reading import read_config

__all__ = ["Buffers", "Decoder", "ModelConfig", "load_decoder", "read_config"]
