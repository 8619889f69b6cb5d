"""How fast matrix products are: formats and rows, against reading the weights once and against torch's
products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from kernels.triton.packing import PackedMatrix

from .report import Row, attempt, judged
from .setup import Setup, seconds
from .weights import MAKERS, shape_of

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2048)
FORMS = ("w4 g128", "w4 g32", "w4 k", "w8", "fp8", "bf16")
# What share of the ceiling is aimed at, by bytes of weights: (at least so many, share).
MEMORY_GOALS = {
    "w4": ((30e6, 0.65), (0, 0.40)),
    "w8": ((60e6, 0.75), (0, 0.50)),
    "fp8": ((60e6, 0.70), (0, 0.50)),
    "bf16": ((60e6, 0.80), (0, 0.60)),
}
# From MANY rows: times torch.mm in bfloat16. Between, four bits: of memory's speed at 16 rows, of a product's
# at 256.
LIBRARY_GOALS = {"w4": 0.85, "w8": 1.3, "fp8": 1.0, "bf16": 0.85}
MANY = 2048
W4_GOALS = {16: 0.60, 256: 0.40}


def products(setup: Setup) -> Iterator[Row]:
    """Rows for the sizes that decide: every number of rows for gate and up, a few for the others."""
    matrices = shape_of(setup).matrices | {"head": (shape_of(setup).vocabulary, shape_of(setup).hidden)}
    for name in ("gate_up", "qkv", "down", "head"):
        n, k = matrices[name]
        counts = ROWS if name == "gate_up" else (1, 8) if name == "head" else (1, 8, 64, 512)
        counts = (1, 20) if setup.dry else counts
        mm = {rows: torch_product(setup, n, k, rows) for rows in counts}
        for rows, took in mm.items():
            yield Row("products", f"{name} torch.mm bf16, {rows} rows", took * 1e6, "us")
        for form in ("w8", "bf16") if name == "head" else FORMS:
            yield from attempt("products", f"{name} {form}", ours(setup, name, form, (n, k), mm))
        if name != "head":
            yield from attempt("products", f"{name} tinygemm", tinygemm(setup, name, n, k))


def ours(setup: Setup, name: str, form: str, shape: tuple[int, int], mm: dict[int, float]) -> Iterator[Row]:
    """A form with each number of rows, beside what torch takes for it."""
    packed = several(setup, form, *shape)
    for rows, library in mm.items():
        took = seconds(setup, calls(setup, packed, rows))
        yield row(setup, f"{name} {form}, {rows} rows", packed[0], rows, took, library)


def several(setup: Setup, form: str, n: int, k: int) -> list[PackedMatrix]:
    """As many matrices as no cache holds."""
    first = setup.ops.pack([MAKERS[form](setup, n, k)])
    more = setup.copies(size_of(first)) - 1
    return [first, *(setup.ops.pack([MAKERS[form](setup, n, k)]) for _ in range(more))]


def size_of(packed: PackedMatrix) -> int:
    """Bytes that a product reads of a matrix."""
    return sum(tensor.nbytes for part in packed.parts for tensor in part.tensors.values())


def calls(setup: Setup, packed: list[PackedMatrix], rows: int) -> list[Callable[[], object]]:
    """The product as linear_add makes it, with each matrix in turn."""
    n, k = packed[0].shape
    x = torch.randn(rows, k, device=setup.device).to(setup.ops.dtype)
    out = torch.zeros(rows, n, device=setup.device)
    return [lambda each=each: setup.ops.linear.apply(x, each, out, add=True) for each in packed]


def row(setup: Setup, name: str, packed: PackedMatrix, rows: int, took: float, library: float) -> Row:
    """Against the ceiling of memory for few rows, against torch for many; between them it informs."""
    n, k = packed.shape
    num_bytes = size_of(packed) + rows * (2 * k + 8 * n)
    bound = max(num_bytes / setup.read, 2 * rows * n * k / setup.flops["bf16"])
    form, note = packed.parts[0].format, f"torch {library * 1e6:.0f} us, {library / took:.2f} x"
    key = {"int4": "w4", "int8": "w8", "fp8": "fp8", "dense": "bf16"}[form]
    if rows <= 8:
        goal = next(share for least, share in MEMORY_GOALS[key] if size_of(packed) >= least)
        return judged("products", name, took * 1e6, "us", bound * 1e6, bound / took, goal, note)
    if key == "w4" and rows in W4_GOALS:
        return judged("products", name, took * 1e6, "us", bound * 1e6, bound / took, W4_GOALS[rows], note)
    goal = LIBRARY_GOALS[key] if rows >= MANY else 0.0
    return judged("products", name, took * 1e6, "us", library * 1e6, library / took, goal)


def torch_product(setup: Setup, n: int, k: int, rows: int) -> float:
    """torch.mm in bfloat16 with as many weights as no cache holds."""
    x = torch.randn(rows, k, device=setup.device).bfloat16()
    many = [
        torch.randn(n, k, device=setup.device, dtype=torch.bfloat16) for _ in range(setup.copies(2 * n * k))
    ]
    return seconds(setup, [lambda w=w: torch.mm(x, w.T) for w in many])


def tinygemm(setup: Setup, name: str, n: int, k: int) -> Iterator[Row]:
    """torch's own four-bit product."""
    if setup.dry:
        return
    packs: list[tuple[Tensor, Tensor]] = []
    for _ in range(setup.copies(n * k // 2)):
        values = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device=setup.device)
        scales = torch.rand(k // 128, n, 2, device=setup.device).bfloat16()
        packs.append((torch.ops.aten._convert_weight_to_int4pack(values, 8), scales))
    for rows in (1, 8, 16):
        x = torch.randn(rows, k, device=setup.device).bfloat16()
        run = [lambda x=x, w=w, s=s: torch.ops.aten._weight_int4pack_mm(x, w, 128, s) for w, s in packs]
        yield Row("products", f"{name} tinygemm g128, {rows} rows", seconds(setup, run) * 1e6, "us")
