"""What of products.py and of the kernels around it is shipped: each tile of configs.py with each form of
weights that packing.py makes, for the targets whose table has the tile. Tests compile all of it ahead of
time. Computes nothing and is not needed to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import triton.language as tl

from . import configs, experts, int8, products, sampling
from .configs import Tile
from .parts import CHUNK, ROW, Format, Mode
from .targets import EVERYWHERE, MATRIX, NVIDIA, Shipped

Constants = dict[str, Any]
NVIDIA_MATRIX = tuple(name for name in NVIDIA if name in MATRIX)
AMD = tuple(name for name in EVERYWHERE if name not in NVIDIA)
AROUND = 16  # registers that may be spilled: a few are, before and after the loop, never in it
SIXTEENTHS = ("N", "K", "V", "E", "X", "out_stride")  # always multiples of 16
# The Triton types of arguments that have the same in all kernels.
TYPES = {
    **dict.fromkeys(
        ("rows", "tiles", "splits", "N", "K", "V", "E", "X", "out_stride", "first", "count"), "i32"
    ),
    **{
        "factor": "fp32",
        "cap": "fp32",
        "BIAS": "*fp32",
        "PARTIAL": "*fp32",
        "TICKET": "*i32",
        "COARSE": "*fp16",
    },
    **{
        "CHOSEN": "*i32",
        "ORDER": "*i32",
        "TILES": "*i32",
        "SHARES": "*fp32",
        "WHERE": "*i64",
        "ROWS": "*i64",
    },
    **{"SCORES": "*fp32", "HIDDEN": "*fp32", "LOGITS": "*fp32", "COUNTS": "*i32", "NUMBER": "*fp32"},
    **{
        "WHOLE": "*i32",
        "PEAKS": "*fp32",
        "BESTS": "*i32",
        "SUMS": "*fp32",
        "GROUPS": "*fp32",
        "KEYS": "*i64",
    },
    "FOUND": "*i32",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """What packing.py makes of a checkpoint's matrices."""

    format: Format
    mode: Mode = "centred"
    group: int = ROW
    scale: str = "*fp16"  # of scale and offset

    @property
    def name(self) -> str:
        return f"{self.format} {self.mode} {self.group or 'row'}"

    def constants(self, assembly: bool) -> Constants:
        return {"FORMAT": self.format, "MODE": self.mode, "GROUP": self.group, "ASM": assembly}

    def types(self, dtype: str) -> dict[str, str]:
        values = f"*{dtype}" if self.format == "dense" else "*u8"
        return {"X": f"*{dtype}", "W": values, "SCALE": self.scale, "OFFSET": self.scale}


KINDS = (
    Kind("int4", "zero", 128),
    Kind("int4", "zero", 32),
    Kind("int4", "centred", 128),
    Kind("int4", "centred", 32),
    Kind("int4", "minimum", 32),
    Kind("int4", "two_level", 32, "*u8"),
    Kind("int8", "centred", 32),
    Kind("int8", "centred", ROW),
    Kind("int8", "minimum", 32, "*fp32"),
    Kind("fp8", "centred", ROW, "*fp32"),
    Kind("fp8", "centred", 128, "*fp32"),
    Kind("dense"),
)
EXPERT_KINDS = (
    Kind("int4", "zero", 128),
    Kind("int4", "two_level", 32, "*u8"),
    Kind("int8", "centred", 32),
    Kind("dense"),
)


def ship(name: str, kernel: Any, constants: Constants, types: dict[str, str] = TYPES, **rest: Any) -> Shipped:
    """With the usual types, where `types` has no others."""
    signature = {arg: types.get(arg) or TYPES[arg] for arg in kernel.arg_names if arg not in constants}
    aligned = tuple(arg for arg in signature if arg in SIXTEENTHS)
    return Shipped(name, kernel, signature, constants, aligned=aligned, **rest)


def product(kind: Kind, tile: Tile, targets: tuple[str, ...], use: str) -> Shipped:
    """`use`: "gate", of gate and up; "add", by several programs to the residual stream; or a route to
    experts.
    """
    assembly = targets[0] in NVIDIA
    gate, add = use in ("gate", "pairs", "sorted"), use in ("add", "slots")
    route = use if use in ("pairs", "slots", "sorted") else ""
    constants = {
        **kind.constants(assembly), "EVEN_K": True,
        "BM": tile.rows, "BN": tile.outputs, "CHUNKS": tile.chunks,
        "SPLIT": add, "GATE": "silu" if gate else "", "ADD": add, "BIASED": False, "CAPPED": False,
        "ROUTE": route, "TOP_K": 8 if route else 1,
    }  # fmt: skip
    name = f"{kind.name} {tile.rows}x{tile.outputs} {use}{'' if assembly else ' amd'}"
    return ship(
        name, products.multiply, constants, kind.types("bf16") | {"OUT": "*bf16" if gate else "*fp32"},
        targets=targets, warps=tile.warps, stages=tile.stages, matrix="half", wide_loads=assembly,
        loop_units=tile.outputs * tile.chunks * CHUNK, spills=dict.fromkeys(targets, AROUND),
    )  # fmt: skip


def product_kernels() -> Iterator[Shipped]:
    for kind in KINDS:
        for _, tile in configs.NVIDIA[kind.format]:
            if tile.rows == 8 or tile.rows > 32:
                yield product(kind, tile, NVIDIA_MATRIX, "gate")
            if tile.rows <= 32:
                yield product(kind, tile, NVIDIA_MATRIX, "add")
        for _, tile in configs.AMD[kind.format]:
            yield product(kind, tile, AMD, "gate")
    for kind in EXPERT_KINDS:
        for table, targets in ((configs.EXPERTS, NVIDIA_MATRIX), (configs.AMD_EXPERTS, AMD)):
            few, *_, many = (tile for _, tile in table[kind.format])
            for tile, use in ((few, "pairs"), (few, "slots"), (many, "sorted")):
                yield product(kind, tile, targets, use)


def vector_kernels() -> Iterator[Shipped]:
    """Without matrix units."""
    for kind in KINDS:
        for _, vector in configs.PLAIN[kind.format]:
            constants = {
                **kind.constants(True), "EVEN_K": True, "BN": vector.outputs, "GATE": "", "ADD": True,
                "BIASED": False, "CAPPED": False,
            }  # fmt: skip
            yield ship(
                f"vector {kind.name}", products.dot_rows, constants, kind.types("fp16") | {"OUT": "*fp32"},
                targets=("sm_75",), warps=vector.warps, wide_loads=False, loop_units=vector.outputs * CHUNK,
            )  # fmt: skip


def other_kernels() -> Iterator[Shipped]:
    """What is launched beside products."""
    for kind in KINDS:
        for targets, dtype in ((NVIDIA_MATRIX, "bf16"), (("sm_75",), "fp16"), (AMD, "bf16")):
            number = tl.bfloat16 if dtype == "bf16" else tl.float16
            constants = kind.constants(targets[0] in NVIDIA) | {"DT": number, "BN": 64, "PICK": False}
            yield ship(
                f"expand {kind.name} {targets[0]}", products.expand, constants,
                kind.types(dtype) | {"OUT": f"*{dtype}"}, targets=targets, wide_loads=False,
            )  # fmt: skip
    for gate, integers in (("silu", False), ("", True)):
        constants = {"BN": 1024, "GATE": gate, "ADD": integers, "BIASED": False, "CAPPED": False}
        yield ship(
            f"finish {gate or 'integers'}", products.finish, constants | {"INTEGERS": integers},
            {"Y": "*i32" if integers else "*bf16", "X_SCALE": "*fp32", "SCALE": "*fp16", "OUT": "*fp32"},
            wide_loads=integers,
        )  # fmt: skip
    constants = {"KP": 4096, "LARGEST": 127.0, "SWAPPED": True}
    yield ship(
        "quantize rows", int8.quantize_kernel, constants, {"X": "*bf16", "OUT": "*i8", "SCALE": "*fp32"}
    )
    constants = {"XP": 128, "TOP_K": 8, "KP": 8, "NORMALIZED": True}
    yield ship("choose experts", experts.choose_experts, constants, warps=1, wide_loads=False)
    yield ship("sum experts", experts.sum_experts, {"TOP_K": 8, "TILE": 1024}, {"FOUND": "*bf16"})


def sampling_kernels() -> Iterator[Shipped]:
    tile, group, most = sampling.TILE, sampling.GROUP, sampling.MOST
    yield ship("survey", sampling.survey, {"TILE": tile, "GROUP": group}, warps=8)
    yield ship("gather", sampling.gather, {"TILE": tile, "TP": 64, "MOST": most}, warps=8)
    constants = {"TILE": tile, "GROUP": group, "TP": 64, "GP": 4096, "MOST": most}
    yield ship("count", sampling.count_drawn, {}, {"OUT": "*i64"}, warps=1, wide_loads=False)
    filled = {"IDS": "*i64", "OUT": "*i64", "tokens": "i32"}
    yield ship("fill", sampling.fill_drawn, {"TILE": sampling.FILL_TILE}, filled, wide_loads=False)
    yield ship("choose", sampling.choose, constants, {"SHARES": "*fp64", "OUT": "*i64"}, warps=8)


SHIPPED = (*product_kernels(), *vector_kernels(), *other_kernels(), *sampling_kernels())
