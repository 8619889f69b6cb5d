"""Products with packed matrices: which kernel serves a matrix and a number of rows on a card.

    linear = Linear(device, dtype, target)               one per TritonOps; dtype is the activations'
    packed = linear.pack(weights, bias, gated)           [N, K]; gate and up lie row by row, g0 u0 g1 u1 ...
    linear.apply(x, packed, out)                         out = W x + bias
    linear.apply(x, packed, hidden, add=True, scale=s)   hidden += s * (W x + bias)
    linear.apply(x, packed, out, activation="silu")      out = silu(gate) * up, [rows, N / 2]
    linear.embed(token_ids, packed, hidden, scale)       hidden[t] = scale * W[token_ids[t]]

x [rows, K] is an activation, normalized before; out [rows, N] float32 or an activation. Knows no models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops import Activation
from ..weights import Matrix
from .configs import Tile, Vector, form_of
from .int8 import quantize_rows
from .packing import PackedMatrix as PackedMatrix, pack
from .parts import CHUNK, Part
from .products import dot_rows, expand, finish, multiply
from .targets import Target

MOST_SPLITS = 8  # programs that share a tile's inputs
LARGEST_TILE = 64 * 64  # sums of a tile that is split
SLAB = 1 << 28  # bytes of weights expanded at once
FINISH_TILE = 1024
LANGUAGE = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of the sums: bias, gate or cap, factor; stored, or added to what is there."""

    add: bool = False
    factor: float = 1.0
    gate: Activation | None = None
    cap: float = 0.0

    def flags(self, bias: Tensor | None) -> dict[str, object]:
        """As constexprs of a kernel."""
        capped = self.cap != 0
        return {"GATE": self.gate or "", "ADD": self.add, "BIASED": bias is not None, "CAPPED": capped}


class Linear:
    """Matrix products on one device. Kernels share its workspace: one stream uses it."""

    def __init__(self, device: torch.device, dtype: torch.dtype, target: Target) -> None:
        self.device, self.dtype, self.target = device, dtype, target
        self.assembly = target.name.startswith("sm_")
        self.processors = 4
        if device.type == "cuda":
            self.processors = torch.cuda.get_device_properties(device).multi_processor_count
        most = 4 * self.processors  # tiles * splits, see `splits`
        self.partial = torch.empty(most * LARGEST_TILE, dtype=torch.float32, device=device)
        self.tickets = torch.zeros(most, dtype=torch.int32, device=device)

    @property
    def workspace_bytes(self) -> int:
        """What is held from the start, for the memory plan."""
        return self.partial.nbytes + self.tickets.nbytes

    def pack(
        self, weights: Sequence[Matrix], bias: Tensor | None = None, gated: bool = False
    ) -> PackedMatrix:
        """See Ops.pack."""
        return pack(weights, bias, gated, dtype=self.dtype, swapped=self.assembly, device=self.device)

    def apply(
        self,
        x: Tensor,
        weight: PackedMatrix,
        out: Tensor,
        *,
        add: bool = False,
        scale: float = 1.0,
        activation: Activation | None = None,
        soft_cap: float = 0.0,
    ) -> None:
        """out (+)= scale * (W x + bias), gated where there is an activation, capped like scores."""
        check(x, weight, out, self.dtype, activation)
        ending, at = Ending(add, scale, activation, soft_cap), 0
        for part in weight.parts:
            bias = None if weight.bias is None else weight.bias[at : at + part.shape[0]]
            width = part.shape[0] // 2 if activation else part.shape[0]
            start = at // 2 if activation else at
            self._part(x, part, bias, out[:, start : start + width], ending)
            at += part.shape[0]

    def embed(self, token_ids: Tensor, table: PackedMatrix, hidden: Tensor, scale: float = 1.0) -> None:
        """hidden[t] = scale * row token_ids[t] of the table; hidden float32 [T, K]."""
        (part,) = table.parts
        self._expand(part, hidden, scale, token_ids)

    def splits(self, tiles: int, steps: int) -> int:
        """How many programs share a tile's steps, so that each processor has about two; tiles * splits stays
        below four times the processors.
        """
        wanted = min(MOST_SPLITS, steps, triton.cdiv(2 * self.processors, tiles))
        return triton.cdiv(steps, triton.cdiv(steps, wanted))

    def has_room(self, tiles: int, splits: int, tile: Tile) -> bool:
        """Whether the workspace holds what so many splits of so many tiles leave for each other."""
        sums = tiles * splits * tile.rows * tile.outputs
        return tiles <= len(self.tickets) and sums <= self.partial.numel()

    def _part(self, x: Tensor, part: Part, bias: Tensor | None, out: Tensor, ending: Ending) -> None:
        form = form_of(self.target, part, len(x))
        if isinstance(form, Tile):
            self._multiply(x, part, bias, out, ending, form)
        elif isinstance(form, Vector):
            self._dot_rows(x, part, bias, out, ending, form)
        elif form == "expand":
            self._finish(self._expanded_product(x, part), None, part, bias, out, ending)
        else:
            product, x_scale = eight_bit_product(x, part)
            self._finish(product, x_scale, part, bias, out, ending)

    def _multiply(
        self, x: Tensor, part: Part, bias: Tensor | None, out: Tensor, ending: Ending, tile: Tile
    ) -> None:
        outputs, width = part.shape
        chunks = fitting(tile.chunks, width)
        rows_tiles, output_tiles = triton.cdiv(len(x), tile.rows), triton.cdiv(outputs, tile.outputs)
        tiles = rows_tiles * output_tiles
        splits = self.splits(tiles, triton.cdiv(width, CHUNK) // chunks)
        assert splits == 1 or self.has_room(tiles, splits, tile), f"{tiles} tiles, {splits} splits of {tile}"
        multiply[(tiles, splits)](
            x, *pointers(part), x if bias is None else bias, out, self.partial, self.tickets,
            x, x, x, x, x, len(x), rows_tiles, splits, outputs, width, out.stride(0), ending.factor,
            ending.cap,
            **self.constants(part), **ending.flags(bias), EVEN_K=width % CHUNK == 0,
            BM=tile.rows, BN=tile.outputs, CHUNKS=chunks, SPLIT=splits > 1, ROUTE="", TOP_K=1,
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip

    def _dot_rows(
        self, x: Tensor, part: Part, bias: Tensor | None, out: Tensor, ending: Ending, form: Vector
    ) -> None:
        outputs, width = part.shape
        dot_rows[(triton.cdiv(outputs, form.outputs), len(x))](
            x, *pointers(part), x if bias is None else bias, out, len(x), outputs, width, out.stride(0),
            ending.factor, ending.cap, **self.constants(part), **ending.flags(bias),
            EVEN_K=width % CHUNK == 0, BN=form.outputs, num_warps=form.warps,
        )  # fmt: skip

    def _expanded_product(self, x: Tensor, part: Part) -> Tensor:
        """x @ W^T, with weights that are numbers for a moment."""
        outputs, width = part.shape
        if part.format == "dense" and part.values.shape[1] == width:
            return torch.mm(x, part.values.T)
        slab = min(outputs, max(1, SLAB // (width * x.element_size())))
        matrix = torch.empty(slab, width, dtype=self.dtype, device=self.device)
        product = torch.empty(len(x), outputs, dtype=self.dtype, device=self.device)
        for first in range(0, outputs, slab):
            rows = matrix[: outputs - first]
            self._expand(part, rows, first=first)
            product[:, first : first + slab] = torch.mm(x, rows.T)
        return product

    def _expand(
        self, part: Part, out: Tensor, factor: float = 1.0, rows: Tensor | None = None, first: int = 0
    ) -> None:
        """out [count, K]: so many rows of a part from the first on, or those in `rows`, as numbers."""
        outputs, width = part.shape
        tile = min(64, triton.next_power_of_2(len(out)))
        expand[(triton.cdiv(len(out), tile), triton.cdiv(width, CHUNK))](
            *pointers(part), out if rows is None else rows, out, first, len(out), outputs, width, factor,
            **self.constants(part), DT=LANGUAGE[out.dtype], BN=tile, PICK=rows is not None, num_warps=4,
        )  # fmt: skip

    def _finish(
        self,
        product: Tensor,
        x_scale: Tensor | None,
        part: Part,
        bias: Tensor | None,
        out: Tensor,
        ending: Ending,
    ) -> None:
        rows, outputs = product.shape
        finish[(rows, triton.cdiv(outputs, FINISH_TILE))](
            product, product if x_scale is None else x_scale, product if part.scale is None else part.scale,
            product if bias is None else bias, out, outputs, out.stride(0), ending.factor, ending.cap,
            BN=FINISH_TILE, INTEGERS=x_scale is not None, **ending.flags(bias), num_warps=4,
        )  # fmt: skip

    def constants(self, part: Part) -> dict[str, object]:
        """A part's, for a kernel."""
        return {"FORMAT": part.format, "MODE": part.mode, "GROUP": part.group, "ASM": part.swapped}


def eight_bit_product(x: Tensor, part: Part) -> tuple[Tensor, Tensor]:
    """x @ W^T on units for eight bits, each row of x and of W still without its scale, and the scales of
    x's.
    """
    dtype = torch.int8 if part.format == "int8" else torch.float8_e4m3fn
    x8, x_scale = quantize_rows(x, dtype, part.swapped)
    values = part.values.view(dtype).T
    if dtype == torch.int8:
        return torch._int_mm(x8, values), x_scale
    one = torch.ones((), dtype=torch.float32, device=x.device)
    return torch._scaled_mm(x8, values, one, one, out_dtype=torch.float32), x_scale


def pointers(part: Part) -> tuple[Tensor, ...]:
    """A part's tensors as a kernel takes them; any pointer where there is none."""
    found = (part.scale, part.offset, part.coarse)
    return part.values, *(part.values if tensor is None else tensor for tensor in found)


def fitting(chunks: int, width: int) -> int:
    """The most chunks a turn, not above `chunks`, that a width is a multiple of."""
    while triton.cdiv(width, CHUNK) % chunks:
        chunks //= 2
    return chunks


def check(
    x: Tensor, weight: PackedMatrix, out: Tensor, dtype: torch.dtype, activation: Activation | None
) -> None:
    """Raises ValueError for tensors that a kernel would read or write wrongly."""
    outputs, width = weight.shape
    outputs = outputs // 2 if activation else outputs
    if x.shape[1] != width or out.shape != (len(x), outputs):
        raise ValueError(
            f"A matrix of {weight.shape[0]} x {width} takes rows of {width} to rows of {outputs}, "
            f"not {tuple(x.shape)} to {tuple(out.shape)}."
        )
    if x.dtype != dtype or out.dtype not in (dtype, torch.float32):
        raise ValueError(f"Activations are {dtype} here, not {x.dtype} to {out.dtype}.")
    if not x.is_contiguous() or out.stride(1) != 1:
        raise ValueError("The rows of a product's tensors must lie one behind the other.")
    if bool(activation) != weight.gated:
        raise ValueError("A gate needs a matrix that was packed as gated, and such a matrix a gate.")
