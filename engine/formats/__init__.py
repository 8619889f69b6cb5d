"""Formats: each checkpoint's quantization types, turned once, at load, into one of the kernels' few.

One module per kind of checkpoint; kernels/weights.py says how the formats lie in memory.
"""

from __future__ import annotations

from .gguf import rope_rows, to_vector, to_weight

__all__ = ["rope_rows", "to_vector", "to_weight"]
