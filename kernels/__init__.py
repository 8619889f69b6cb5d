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
    from .ops import ForwardBatch as ForwardBatch
    from .ops import KVLayer as KVLayer
    from .ops import Norm as Norm
    from .ops import Ops as Ops
    from .ops import Packed as Packed
    from .ops import Rope as Rope
    from .weights import Dense as Dense
    from .weights import Int4 as Int4
    from .weights import Int4K as Int4K
    from .weights import Int6 as Int6
    from .weights import Int8 as Int8
    from .weights import Weight as Weight

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
    threads= and portable=.
    """
    if backend == "auto":
        backend = "numba" if device == "cpu" else "reference"
    if backend == "numba":
        from .cpu import CpuOps

        return CpuOps(**options)
    from .reference import ReferenceOps

    return ReferenceOps(device=device, **options)
