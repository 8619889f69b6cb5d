"""Which form of a product runs where: tables by target, format and number of rows.

Nothing is tried out at run time; `python -m benchmarks.gpu_check` measures candidates and writes lines for
these tables. Up to some rows Octavo's own kernel multiplies, weights taken apart on the way; beyond them
weights are expanded once and the vendor's library multiplies, or its units for eight bits do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .parts import CHUNK, ROW, Format, Part
from .targets import Target


@dataclass(frozen=True, slots=True)
class Tile:
    """How `products.multiply` is launched."""

    rows: int  # of x at once: BM
    outputs: int  # BN
    chunks: int  # of 64 inputs in a turn of the loop
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Vector:
    """`products.dot_rows`: no matrix units."""

    outputs: int
    warps: int


Library = Literal["expand", "int8 units", "fp8 units"]
Form = Tile | Vector | Library
Tiles = Mapping[Format, tuple[tuple[int, Tile], ...]]
Vectors = Mapping[Format, tuple[tuple[int, Vector], ...]]

# (up to so many rows, the form), the first that has room. Tiles were chosen by what they compile to
# (docs/GPU.md); the rows from which the library is faster are a guess that benchmarks/gpu_check measures.
NVIDIA: Tiles = {
    "int4": (
        (8, Tile(8, 64, 4, 2, 3)),
        (16, Tile(16, 64, 4, 2, 3)),
        (32, Tile(32, 64, 2, 2, 3)),
        (256, Tile(64, 64, 2, 4, 3)),
    ),
    "int8": (
        (8, Tile(8, 64, 2, 2, 4)),
        (16, Tile(16, 64, 2, 2, 4)),
        (32, Tile(32, 64, 2, 2, 3)),
        (64, Tile(64, 64, 2, 4, 3)),
    ),
    "fp8": (
        (8, Tile(8, 64, 2, 2, 4)),
        (16, Tile(16, 64, 2, 2, 4)),
        (32, Tile(32, 64, 2, 2, 3)),
        (64, Tile(64, 64, 2, 4, 3)),
    ),
    "dense": (
        (8, Tile(8, 64, 1, 2, 5)),
        (16, Tile(16, 64, 1, 2, 5)),
    ),
}
# Tiles of 8 rows are a disaster on AMD: its matrix units have 16.
AMD: Tiles = {
    "int4": ((16, Tile(16, 64, 2, 4, 2)), (64, Tile(64, 64, 1, 4, 2))),
    "int8": ((16, Tile(16, 64, 2, 4, 2)), (64, Tile(64, 64, 1, 4, 2))),
    "fp8": ((16, Tile(16, 64, 2, 4, 2)), (64, Tile(64, 64, 1, 4, 2))),
    "dense": (),
}
# Experts are never expanded: their largest tile serves any number of rows.
EXPERTS: Tiles = {
    **NVIDIA,
    "dense": ((8, Tile(8, 64, 1, 2, 4)), (16, Tile(16, 64, 1, 2, 4)), (64, Tile(64, 64, 1, 4, 3))),
}
AMD_EXPERTS: Tiles = {
    **AMD,
    "dense": ((16, Tile(16, 64, 1, 4, 2)), (64, Tile(64, 64, 1, 4, 2))),
}
# Without matrix units: a row at a time, as long as reading the weights again is cheaper than expanding them.
PLAIN: Vectors = {
    "int4": ((4, Vector(16, 4)),),
    "int8": ((2, Vector(16, 4)),),
    "fp8": ((2, Vector(16, 4)),),
    "dense": (),
}
INTERPRETED: Tiles = {name: ((16, Tile(16, 64, 2, 2, 1)), (64, Tile(64, 64, 2, 2, 1))) for name in NVIDIA}


def form_of(target: Target, part: Part, rows: int) -> Form:
    """How so many rows are multiplied by a part."""
    for most, form in table_of(target)[part.format]:
        if rows <= most:
            return form
    # a scale for each row: checkpoints that were made for activations of eight bits
    sixteenths = part.width % CHUNK == 0 and part.shape[0] % 16 == 0 and rows > 16
    if part.group == ROW and sixteenths and target.matrix and target.name.startswith("sm_"):
        if part.format == "int8":
            return "int8 units"
        if part.format == "fp8" and target.fp8:
            return "fp8 units"
    return "expand"


def table_of(target: Target) -> Tiles | Vectors:
    """A target's tiles."""
    if target.name == "interpreter":
        return INTERPRETED
    if not target.matrix:
        return PLAIN
    return NVIDIA if target.name.startswith("sm_") else AMD


def expert_tile(target: Target, part: Part, rows: float) -> Tile:
    """How experts are multiplied that have about so many rows each. Only for targets with matrix units."""
    assert target.matrix, f"{target.name} has no matrix units"
    if target.name == "interpreter":
        table = INTERPRETED
    else:
        table = EXPERTS if target.name.startswith("sm_") else AMD_EXPERTS
    tiles = table[part.format]
    return next((tile for most, tile in tiles if rows <= most), tiles[-1][1])
