"""Tensors in, tensors out: `select(device)` gives a device's Ops (ops.py); weights.py has the formats.

    reference   plain torch, every op: the oracle of the others and the backend where nothing faster runs
    cpu         processors, compiled by Numba
    triton      cards (CUDA and ROCm), compiled by Triton

Nothing is loaded before a name is used: `kernels` is also the name of a package that transformers probes
for, and the deciding half of the engine must start without torch.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cores import physical_cores as physical_cores
    from .ops import (
        Activation as Activation,
        Draw as Draw,
        Experts as Experts,
        ForwardBatch as ForwardBatch,
        KVLayer as KVLayer,
        Norm as Norm,
        Ops as Ops,
        Packed as Packed,
        Rope as Rope,
        Sampler as Sampler,
        Storage as Storage,
        Stored as Stored,
    )
    from .pages import head_bytes as head_bytes, read_pool as read_pool
    from .transfer import fetch as fetch, send as send
    from .triton.cache import cache_folder as cache_folder
    from .weights import (
        Dense as Dense,
        Fp8 as Fp8,
        Int2K as Int2K,
        Int3K as Int3K,
        Int4 as Int4,
        Int4K as Int4K,
        Int4T as Int4T,
        Int4Z as Int4Z,
        Int5 as Int5,
        Int5K as Int5K,
        Int6 as Int6,
        Int8 as Int8,
        Matrix as Matrix,
        Pieces as Pieces,
        Weight as Weight,
        pack_nibbles as pack_nibbles,
    )

_NAMES = {
    "ops": "Activation Draw Experts ForwardBatch KVLayer Norm Ops Packed Rope Sampler Storage Stored",
    "weights": "Dense Fp8 Int2K Int3K Int4 Int4K Int4T Int4Z Int5 Int5K Int6 Int8 Matrix Pieces Weight "
    "pack_nibbles",
    "pages": "head_bytes read_pool",
    "transfer": "fetch send",
    "cores": "physical_cores",
    "triton.cache": "cache_folder",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
# what each backend may be told
OPTIONS = {
    "numba": ("threads", "portable", "kv_dtype"),
    "triton": ("dtype", "kv_dtype"),
    "reference": ("dtype", "kv_dtype"),
}
__all__ = [*_HOMES, "select"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernels' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def select(device: str = "cpu", backend: str = "auto", **options: Any) -> Ops:
    """The Ops for a torch device type ("cpu", ...). OPTIONS says what each backend takes; "auto" takes all,
    and leaves aside what is not for its choice.
    """
    chosen = _best(device) if backend == "auto" else backend
    if backend == "auto":
        options = {name: value for name, value in options.items() if name in OPTIONS[chosen]}
    if chosen == "numba":
        from .cpu import CpuOps

        return CpuOps(**options)
    if chosen == "triton":
        from .triton import TritonOps

        return TritonOps(device, **options)
    from .reference import ReferenceOps

    return ReferenceOps(device=device, **options)


def _best(device: str) -> str:
    """The quickest backend that works here."""
    if device == "cpu":
        from .cpu import compiles_here

        return "numba" if compiles_here() else "reference"
    return "triton" if device == "cuda" and _triton_compiles(device) else "reference"


def _triton_compiles(device: str) -> bool:
    """Whether Triton is there, and compiles for the card that is there."""
    if find_spec("triton") is None:
        return False
    import torch

    from .triton import target_of

    return target_of(torch.device(device)) is not None
