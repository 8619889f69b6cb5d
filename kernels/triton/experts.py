"""Mixtures of experts: the router's choice, and the products of every token with its own experts' matrices.

    mixtures = Mixtures(linear)                           one per TritonOps
    mixtures.add(x, experts, hidden)                      hidden[t] += sum of share * expert(x[t])

x [rows, E] is an activation, normalized before; hidden float32 [rows, E]. A pair is a token and one of its
experts. Few pairs are a tile each, nothing is sorted; many are sorted by expert. Experts' matrices stay where
`pack` put them: a table says how far each lies from the first one's. Knows no models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops import Experts
from .checks import check_experts
from .configs import Tile, expert_tile
from .linear import Ending, Linear, fitting, pointers
from .packing import PackedMatrix
from .parts import CHUNK, Part
from .products import multiply

FEW = 4  # so many pairs times this are at most as many as experts: each matrix is read once or twice anyway
SUM_TILE = 1024


@triton.jit
def choose_experts(
    SCORES, CHOSEN, SHARES, X,
    XP: tl.constexpr, TOP_K: tl.constexpr, KP: tl.constexpr, NORMALIZED: tl.constexpr,
):  # fmt: skip
    """The TOP_K largest of each row's softmax; of equals the first. Grid (rows)."""
    row = tl.program_id(0)
    i, place = tl.arange(0, XP), tl.arange(0, KP)
    scores = tl.load(SCORES + row * X + i, mask=i < X, other=float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 0))
    weights /= tl.sum(weights, 0)
    weights = tl.where(i < X, weights, -1.0)
    shares, chosen = tl.zeros([KP], tl.float32), tl.zeros([KP], tl.int32)
    for k in range(TOP_K):
        best = tl.argmax(weights, 0)
        shares = tl.where(place == k, tl.max(weights, 0), shares)
        chosen = tl.where(place == k, best, chosen)
        weights = tl.where(i == best, -1.0, weights)
    if NORMALIZED:
        shares /= tl.sum(shares, 0)
    tl.store(CHOSEN + row * TOP_K + place, chosen, mask=place < TOP_K)
    tl.store(SHARES + row * TOP_K + place, shares, mask=place < TOP_K)


@triton.jit
def sum_experts(FOUND, SHARES, HIDDEN, E, TOP_K: tl.constexpr, TILE: tl.constexpr):
    """HIDDEN[t] += sum of SHARES[pair] * FOUND[pair] over a token's pairs. Grid (tokens, tiles)."""
    token = tl.program_id(0)
    e = tl.program_id(1) * TILE + tl.arange(0, TILE)
    place = HIDDEN + token.to(tl.int64) * E + e
    total = tl.load(place, mask=e < E, other=0.0)
    for k in range(TOP_K):
        pair = token.to(tl.int64) * TOP_K + k
        found = tl.load(FOUND + pair * E + e, mask=e < E, other=0.0).to(tl.float32)
        total += tl.load(SHARES + pair) * found
    tl.store(place, total, mask=e < E)


@dataclass(frozen=True, slots=True)
class Stack:
    """One matrix of each expert."""

    first: Part
    bias: Tensor | None  # the first one's
    where: Tensor  # int64 [X, 5]: how far values, scale, offset, coarse and bias of each lie from the first's


@dataclass(frozen=True, slots=True)
class Route:
    """How pairs find their experts: what `products.find_rows` reads."""

    name: str
    tile: Tile
    tiles: int  # of rows
    chosen: Tensor  # int32 [pairs]
    order: Tensor  # int32 [pairs], sorted by expert
    ranges: Tensor  # int32 [tiles, 3]: expert, first, last
    shares: Tensor  # float32 [pairs]


class Mixtures:
    """Mixtures on one device."""

    def __init__(self, linear: Linear) -> None:
        self.linear = linear
        self.waits = False  # for the card to say which rows are whose
        self._checked: dict[int, Experts] = {}
        self._stacks: dict[int, tuple[Experts, Stack, Stack]] = {}  # by identity, which the tuple keeps alive

    def add(self, x: Tensor, experts: Experts, hidden: Tensor, asked: Tensor | None = None) -> None:
        """hidden[t] += sum of share_x * down_x @ act(gate_x @ x[t], up_x @ x[t]) over t's experts x. In x's
        place the router reads `asked`, if there is any.
        """
        if self._checked.get(id(experts)) is not experts:
            check_experts(experts)
            self._checked[id(experts)] = experts
        chosen, shares = self._choose(x if asked is None else asked, experts)
        if experts.scales is not None:
            shares *= experts.scales[chosen.long()]
        if not self.linear.target.matrix:
            self.waits = True
            one_by_one(self.linear, x, experts, hidden, chosen, shares)
            return
        gate_up, down = self.stacks(experts)
        count, pairs, top_k = len(experts.down), chosen.numel(), experts.top_k
        inner = torch.empty(pairs, down.first.width, dtype=x.dtype, device=x.device)
        tile = expert_tile(self.linear.target, down.first, 1)
        tiles = len(x) * triton.cdiv(hidden.shape[1], tile.outputs)
        if pairs * FEW <= count and self.linear.has_room(tiles, top_k, tile):
            route = Route("slots", tile, len(x), chosen, chosen, chosen, shares)
            tile = expert_tile(self.linear.target, gate_up.first, 1)
            first = replace(route, name="pairs", tile=tile, tiles=pairs)
            self._multiply(x, gate_up, inner, first, top_k, Ending(gate=experts.activation))
            self._multiply(inner, down, hidden, route, top_k, Ending(add=True))
            return
        found = torch.empty(pairs, hidden.shape[1], dtype=x.dtype, device=x.device)
        for source, stack, out, gate in ((x, gate_up, inner, experts.activation), (inner, down, found, None)):
            tile = expert_tile(self.linear.target, stack.first, pairs / count)
            route = sorted_route(chosen, shares, count, tile)
            self._multiply(source, stack, out, route, top_k if gate else 1, Ending(gate=gate))
        sum_experts[(len(x), triton.cdiv(hidden.shape[1], SUM_TILE))](
            found, shares, hidden, hidden.shape[1], TOP_K=top_k, TILE=SUM_TILE
        )

    def stacks(self, experts: Experts) -> tuple[Stack, Stack]:
        """Where the experts' matrices lie; looked up once."""
        if id(experts) not in self._stacks:
            found = stack_of(experts.gate_up), stack_of(experts.down)
            self._stacks[id(experts)] = (experts, *found)
        return self._stacks[id(experts)][1:]

    def _choose(self, x: Tensor, experts: Experts) -> tuple[Tensor, Tensor]:
        """(chosen int32, shares float32), both [rows, top_k]."""
        rows, count, top_k = len(x), len(experts.down), experts.top_k
        scores = torch.empty(rows, count, dtype=torch.float32, device=x.device)
        self.linear.apply(x, experts.router, scores)
        chosen = torch.empty(rows, top_k, dtype=torch.int32, device=x.device)
        shares = torch.empty(rows, top_k, dtype=torch.float32, device=x.device)
        choose_experts[(rows,)](
            scores, chosen, shares, count, XP=triton.next_power_of_2(count), TOP_K=top_k,
            KP=triton.next_power_of_2(top_k), NORMALIZED=experts.normalized, num_warps=1,
        )  # fmt: skip
        return chosen, shares

    def _multiply(
        self, x: Tensor, stack: Stack, out: Tensor, route: Route, top_k: int, ending: Ending
    ) -> None:
        part, tile, linear = stack.first, route.tile, self.linear
        outputs, width = part.shape
        tiles = route.tiles * triton.cdiv(outputs, tile.outputs)
        splits = top_k if route.name == "slots" else 1
        multiply[(tiles, splits)](
            x, *pointers(part), x if stack.bias is None else stack.bias, out, linear.partial, linear.tickets,
            route.chosen, route.order,
            route.ranges, route.shares, stack.where, len(x), route.tiles, splits, outputs, width,
            out.stride(0), ending.factor, ending.cap, **linear.constants(part), **ending.flags(stack.bias),
            EVEN_K=width % CHUNK == 0, BM=tile.rows, BN=tile.outputs, CHUNKS=fitting(tile.chunks, width),
            SPLIT=splits > 1, ROUTE=route.name, TOP_K=top_k, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip


def stack_of(matrices: tuple[PackedMatrix, ...]) -> Stack:
    """Raises ValueError where experts differ in format."""
    parts = [part for matrix in matrices for part in matrix.parts]
    biases = [matrix.bias for matrix in matrices]
    if (
        len({part.kind for part in parts}) != 1
        or len(parts) != len(matrices)
        or len(set(map(type, biases))) != 1
    ):
        raise ValueError("The experts of a layer must all have one format.")
    first = (*pointers(parts[0]), parts[0].values if biases[0] is None else biases[0])
    where = []
    for part, bias in zip(parts, biases):
        tensors = (*pointers(part), part.values if bias is None else bias)
        where.append([(a.data_ptr() - b.data_ptr()) // b.element_size() for a, b in zip(tensors, first)])
    table = torch.tensor(where, dtype=torch.int64, device=first[0].device)
    return Stack(parts[0], biases[0], table)


def sorted_route(chosen: Tensor, shares: Tensor, experts: int, tile: Tile) -> Route:
    """Pairs by expert, each expert's in tiles of its own. As many tiles as there may be: the rest have expert
    -1.
    """
    pairs, device = chosen.numel(), chosen.device
    by_expert, order = chosen.flatten().sort(stable=True)
    bounds = torch.searchsorted(by_expert, torch.arange(experts + 1, dtype=torch.int32, device=device))
    tiles = (bounds.diff() + tile.rows - 1) // tile.rows
    ends = tiles.cumsum(0)
    most = min(pairs, triton.cdiv(pairs, tile.rows) + experts)
    index = torch.arange(most, device=device)
    expert = torch.searchsorted(ends, index, right=True)
    known = expert.clamp(max=experts - 1)
    first = bounds[known] + (index - (ends - tiles)[known]) * tile.rows
    ranges = torch.stack([torch.where(expert < experts, known, -1), first, bounds[known + 1]], 1)
    return Route("sorted", tile, most, chosen, order.int(), ranges.int().contiguous(), shares)


def one_by_one(
    linear: Linear, x: Tensor, experts: Experts, hidden: Tensor, chosen: Tensor, shares: Tensor
) -> None:
    """Without matrix units: each expert as any matrix. Waits for the device to say which rows are whose."""
    for expert, (gate_up, down) in enumerate(zip(experts.gate_up, experts.down, strict=True)):
        tokens, place = torch.where(chosen == expert)
        if len(tokens):
            inner = torch.empty(len(tokens), down.shape[1], dtype=x.dtype, device=x.device)
            found = torch.empty(len(tokens), hidden.shape[1], dtype=torch.float32, device=x.device)
            linear.apply(x[tokens], gate_up, inner, activation=experts.activation)
            linear.apply(inner, down, found)
            hidden[tokens] += shares[tokens, place, None] * found
