"""Tensors in, tensors out: `select(device)` gives a device's Ops (ops.py); weights.py has the formats.

    reference   plain torch, every op: the oracle of the others and the backend where nothing faster runs
    cpu         processors, compiled by Numba

Nothing is loaded before a name is used: `kernels` is also the name of a package that transformers probes
for, and the deciding half of the engine must start without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ops import (
        ForwardBatch as ForwardBatch,
        KVLayer as KVLayer,
        Norm as Norm,
        Ops as Ops,
        Packed as Packed,
        Rope as Rope,
    )
    from .weights import (
        Dense as Dense,
        Int4 as Int4,
        Int4K as Int4K,
        Int6 as Int6,
        Int8 as Int8,
        Weight as Weight,
    )

_HOMES = {
    **dict.fromkeys(("ForwardBatch", "KVLayer", "Norm", "Ops", "Packed", "Rope"), "ops"),
    **dict.fromkeys(("Dense", "Int4", "Int4K", "Int6", "Int8", "Weight"), "weights"),
}
__all__ = [*_HOMES, "select"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernels' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def select(device: str = "cpu", backend: str = "auto", **options: Any) -> Ops:
    """The Ops for a torch device type ("cpu", ...). backend "reference" takes dtype=; "numba" takes
    threads= and portable=, and so does "auto", which leaves them aside where it ends at the reference.
    """
    if device == "cpu" and backend in ("auto", "numba"):
        from .cpu import CpuOps, compiles_here

        if backend == "numba" or compiles_here():
            return CpuOps(**options)
    if backend == "auto":
        options = {}
    from .reference import ReferenceOps

    return ReferenceOps(device=device, **options)
