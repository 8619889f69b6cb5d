"""Models: what a family's weights are called and how a token passes through them.

families.py   which are served, and how they differ      rope.py     how fast pairs turn
config.py     the shape of one model                     loader.py   a checkpoint's parts, packed
                                                         shape_check.py   do they fit, before any is read
reading.py    metadata to a shape: gguf_config.py, hf_config.py; keys.py asks and checks
decoder.py    the forward pass
fallback.py   transformers' own in its place, where fallback_check.py finds that it can be
"""

from __future__ import annotations

from .config import ModelConfig
from .decoder import Buffers, Decoder
from .fallback import Fallback, alone
from .loader import load_decoder
from .reading import read_config
from .shape_check import check_shapes

Model = Decoder | Fallback

__all__ = [
    "Buffers",
    "Decoder",
    "Fallback",
    "Model",
    "ModelConfig",
    "alone",
    "check_shapes",
    "load_decoder",
    "read_config",
]
