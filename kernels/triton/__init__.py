"""Kernels in Triton, for cards: `TritonOps` is the contract on them, `target_of` says for which there is one.

Nothing is loaded before a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ops import TritonOps as TritonOps
    from .targets import target_of as target_of

_HOMES = {"TritonOps": "ops", "target_of": "targets"}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernels.triton' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
