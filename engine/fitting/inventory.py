"""What lies in a checkpoint: its tensors by kind, what they take on disk and in memory, and at what loss.

A kind is a name with its numbers as "*": model.layers.*.mlp.down_proj. Tensors that belong to one matrix, its
integers and their scales, count as one. Looks at headers only, and at the order of GPTQ's groups.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from kernels import Dense

from ..checkpoints import Checkpoint
from ..formats import describe
from ..formats.costs import ENDINGS

VECTOR = "float32"


@dataclass(frozen=True, slots=True)
class Tensors:
    """All tensors of one kind that are stored alike."""

    kind: str
    count: int
    parameters: int
    source: str  # the type on disk
    disk_bytes: int
    format: str  # in memory; "" if this type is not served
    memory_bytes: int
    error: str  # what the conversion costs: "exact", or how far off a value may be


def take_inventory(
    checkpoint: Checkpoint, quantization: str = "none", on_card: bool = False
) -> tuple[Tensors, ...]:
    """Every kind, in the file's order. `quantization`: what unquantized layers are made into; `on_card`:
    memory is a card's, not a processor's.
    """
    stems: dict[str, None] = dict.fromkeys(map(_stem, checkpoint.tensors))
    kinds: dict[tuple[str, str, str], Tensors] = {}
    for stem in stems:
        one = _one(checkpoint, stem, quantization, on_card)
        key = (one.kind, one.source, one.error)
        if (all_of_kind := kinds.get(key)) is not None:
            one = replace(
                one,
                count=all_of_kind.count + 1,
                parameters=all_of_kind.parameters + one.parameters,
                disk_bytes=all_of_kind.disk_bytes + one.disk_bytes,
                memory_bytes=all_of_kind.memory_bytes + one.memory_bytes,
            )
        kinds[key] = one
    return tuple(kinds.values())


def is_unquantized(checkpoint: Checkpoint) -> bool:
    """Whether matrices of its layers could still be quantized."""
    return any(each.format == Dense.__name__ and "*" in each.kind for each in take_inventory(checkpoint))


def _stem(name: str) -> str:
    """A tensor's name without what says which part of a matrix it is."""
    endings = (ending for ending in ENDINGS if ending and name.endswith(ending))
    return name.removesuffix(max(endings, key=len, default=""))


def _one(checkpoint: Checkpoint, stem: str, quantization: str, on_card: bool) -> Tensors:
    """The matrix, stack or vector of that name. Only layers have numbers, and only they are quantized."""
    kind = re.sub(r"\d+", "*", stem)
    stored = [checkpoint.tensors[stem + end] for end in ENDINGS if stem + end in checkpoint.tensors]
    disk_bytes = sum(tensor.nbytes for tensor in stored)
    main = stored[0]
    if len(main.shape) < 2:
        size = math.prod(main.shape)
        return Tensors(kind, 1, size, main.type, disk_bytes, VECTOR, 4 * size, "exact")
    cost = describe(checkpoint, stem, quantization if kind != stem else "none", on_card)
    if cost is None:
        return Tensors(kind, 1, math.prod(main.shape), main.type, disk_bytes, "", 0, "not served")
    parameters = round(disk_bytes * 8 / cost.disk_bits)
    memory_bytes = round(parameters * cost.memory_bits / 8)
    return Tensors(kind, 1, parameters, cost.source, disk_bytes, cost.format, memory_bytes, cost.error)
