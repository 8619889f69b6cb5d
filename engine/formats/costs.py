"""What it costs to have a matrix in memory: its format, bits a weight on disk and in memory, and the error.

Bits in memory are those of a processor's streams, or a card's (the reference backend keeps true matrices
instead). Errors are a processor's, against what the checkpoint itself means, and leave out the activations: 8
bits, a scale per 32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernels import Dense, Fp8, Int2K, Int3K, Int4, Int4K, Int4T, Int4Z, Int5, Int5K, Int6, Int8

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint
from .stored import quantization_of

EXACT = "exact"
ROUNDED = "at most 1/254 of the largest of 32"
SCALES = "exact; scales that float16 cannot hold are off by at most 1/2048"
POWERS = "exact; scales below 2^-24 are rounded to multiples of it"

# Format -> bits a weight in a processor's streams, scales and minima included (kernels/cpu/layout.py).
MEMORY_BITS: dict[type, float] = {
    **{Int2K: 2.625, Int3K: 3.5625, Int4: 5.0, Int4T: 4.5, Int4Z: 5.0, Int4K: 4.625, Int5: 6.0, Int5K: 5.625},
    **{Int6: 6.5625, Int8: 8.5, Fp8: 8.5, Dense: 8.5},
}
# The same on a card, a scale per 32 inputs (kernels/triton/packing.py); FP8: one per 128.
CARD_BITS: dict[type, float] = {
    **{Int2K: 9.0, Int3K: 9.0, Int4: 5.0, Int4T: 8.5, Int4Z: 5.0, Int4K: 4.625, Int5: 9.0, Int5K: 10.0},
    **{Int6: 9.0, Int8: 8.5, Fp8: 8.25, Dense: 16.0},
}
AS_ON_DISK = ("4-bit integers", "8-bit integers", "FP8")  # a card keeps their groups, however large
# GGUF type -> format and error.
GGUF: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("F32", "F16", "BF16"), (Dense, ROUNDED)),
    **{"Q2_K": (Int2K, EXACT), "Q3_K": (Int3K, EXACT), "Q4_K": (Int4K, EXACT), "Q5_K": (Int5K, EXACT)},
    **{"Q6_K": (Int6, EXACT), "Q8_0": (Int8, EXACT), "Q4_0": (Int4, EXACT), "Q4_1": (Int4, EXACT)},
    **{"Q5_0": (Int5, EXACT), "Q5_1": (Int5, EXACT), "IQ4_NL": (Int4T, EXACT), "IQ4_XS": (Int4T, SCALES)},
    **{"MXFP4": (Int4T, POWERS)},
}
# Scheme of a folder checkpoint -> format and error. Act-order groups inputs by importance, not by place.
FOLDERS: dict[str, tuple[type, str]] = {
    "floats": (Dense, ROUNDED),
    "4-bit integers": (Int4Z, SCALES),
    "8-bit integers": (Int8, SCALES),
    "integers in act-order": (Int8, ROUNDED),
    "FP8": (Fp8, ROUNDED),
    "MXFP4": (Int4T, POWERS),
}
# What unquantized matrices may be made into when they are loaded (quantize.py) -> format and error.
ON_LOAD: dict[str, tuple[type, str]] = {
    "int8": (Int8, ROUNDED),
    "int4": (Int4, "7.4% of a typical weight"),
    "fp8": (Fp8, "2.7% of a typical weight"),
}
# A matrix's tensors by their endings, the one with the weights first.
ENDINGS = (
    *("", ".weight", ".qweight", ".weight_packed", "_blocks"),
    *(".scales", ".qzeros", ".g_idx", ".weight_scale", ".weight_scale_inv", ".weight_zero_point"),
    *(".weight_g_idx", ".weight_shape", ".input_scale", "_scales"),
)
ORDERS = (".g_idx", ".weight_g_idx")


@dataclass(frozen=True, slots=True)
class Cost:
    """One matrix, or a stack of them."""

    source: str  # a GGUF type, or a key of FOLDERS
    format: str  # a class in kernels/weights.py
    disk_bits: float  # a weight, scales included
    memory_bits: float  # a weight
    error: str


def describe(
    checkpoint: Checkpoint, name: str, quantization: str = "none", on_card: bool = False
) -> Cost | None:
    """What the matrix, or stack of them, of that name costs; the name is without ".weight". None: its type is
    not served. `quantization`: what an unquantized one is made into.
    """
    stored = [name + ending for ending in ENDINGS if name + ending in checkpoint.tensors]
    if not stored:
        raise BadCheckpoint(f"{checkpoint.path.name} has no tensor {name}.weight; the file is incomplete.")
    main = checkpoint.tensors[stored[0]]
    table, source, weights = GGUF, main.type, math.prod(main.shape)
    if checkpoint.source == "hf":
        table, (source, weights) = FOLDERS, _scheme(checkpoint, name, stored[0])
    if source not in table:
        return None
    form, error = table[source]
    if form is Dense:
        form, error = ON_LOAD.get(quantization, (form, error))
    bits = {each: checkpoint.tensors[each].nbytes * 8 / weights for each in stored}
    disk_bits, memory_bits = sum(bits.values()), (CARD_BITS if on_card else MEMORY_BITS)[form]
    if on_card and source in AS_ON_DISK:
        memory_bits = min(memory_bits, sum(bits[each] for each in stored if not each.endswith(ORDERS)))
    return Cost(source, form.__name__, disk_bits, memory_bits, error)


def _scheme(checkpoint: Checkpoint, name: str, main: str) -> tuple[str, int]:
    """A key of FOLDERS, or a type that is not served; and how many weights there are."""
    tensor = checkpoint.tensors[main]
    plain = {**dict.fromkeys(("F32", "F16", "BF16"), "floats"), "F8_E4M3": "FP8", "I8": "8-bit integers"}
    if tensor.type in plain:
        return plain[tensor.type], math.prod(tensor.shape)
    if main.endswith("_blocks"):
        return "MXFP4", 2 * tensor.nbytes
    if tensor.type != "I32":
        return tensor.type, math.prod(tensor.shape)
    bits = _bits(checkpoint, name)
    for order in (name + ending for ending in ORDERS):
        if order in checkpoint.tensors and _is_permuted(checkpoint, order):
            return "integers in act-order", tensor.nbytes * 8 // bits
    return f"{bits}-bit integers", tensor.nbytes * 8 // bits


def _bits(checkpoint: Checkpoint, name: str) -> int:
    """Of packed integers: by the shape beside them, or as the checkpoint says."""
    if f"{name}.weight_shape" in checkpoint.tensors:
        kind = {"I32": np.int32, "I64": np.int64}[checkpoint.tensors[f"{name}.weight_shape"].type]
        weights = math.prod(checkpoint.raw(f"{name}.weight_shape").copy().view(kind).tolist())
        return round(checkpoint.tensors[f"{name}.weight_packed"].nbytes * 8 / max(1, weights))
    bits = quantization_of(checkpoint.metadata).get("bits")
    return bits if isinstance(bits, int) and 0 < bits <= 8 else 4


def _is_permuted(checkpoint: Checkpoint, name: str) -> bool:
    """Whether the groups of neighbouring inputs are in another order than their own."""
    kind = {"I32": np.int32, "I64": np.int64}.get(checkpoint.tensors[name].type, np.int32)
    return bool((np.diff(checkpoint.raw(name).copy().view(kind)) < 0).any())
