"""The processor backend, compiled by Numba: int4 to int8 weights times int8 activations, in recorded steps.

    ops.py       CpuOps: buffers, records, what each op appends to a record
    packing.py   canonical formats -> streams, which layout.py draws; streams.py and plain_packing.py do it
    record.py    a forward pass taken down; walk.py how threads walk it; threads.py the threads
    rows.py      one token's work, norms.py more of it; attend.py attention; experts.py mixtures
    tiles.py     the matrix product; dots.py its dot products; sampling.py tokens drawn
    emit.py      vector instructions from Python; machine.py addresses, barrier, disk cache

Nothing is imported before a name is used. NUMBA_CACHE_DIR says where compiled kernels are kept.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .machine import compiles_here as compiles_here
    from .ops import CpuOps as CpuOps

_HOMES = {"CpuOps": "ops", "compiles_here": "machine"}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
