"""Models: what an architecture's weights are called and how a token passes through them.

config.py reads a model's shape and refuses what is not served; decoder.py loads and computes it.
"""

from __future__ import annotations

from .config import ModelConfig
from .decoder import Buffers, Decoder, load_decoder

__all__ = ["Buffers", "Decoder", "ModelConfig", "load_decoder"]
