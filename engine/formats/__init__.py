"""Formats: each checkpoint's quantization, turned once, at load, into one of the kernels' few formats.

loading.py is the way in; costs.py says what each conversion costs. kernels/weights.py says how formats lie in
memory.
"""

from __future__ import annotations

from .costs import Cost, describe
from .gguf import rope_rows
from .huggingface import check_quantization
from .loading import can_be_cut, check_vector, check_weight, to_tensor, to_vector, to_weight
from .quantize import QUANTIZERS, quantize
from .stored import FLOATS

__all__ = [
    "Cost",
    "FLOATS",
    "QUANTIZERS",
    "can_be_cut",
    "check_quantization",
    "check_vector",
    "check_weight",
    "describe",
    "quantize",
    "rope_rows",
    "to_tensor",
    "to_vector",
    "to_weight",
]
