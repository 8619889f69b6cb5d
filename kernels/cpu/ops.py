"""CpuOps: the contract of kernels/ops.py on a processor. An op appends rows to a record (walk.py).

Buffers are static: the record holds their addresses, and how many tokens, sequences and rows count is read
from ForwardBatch.counts when it runs, so one record serves every batch. An op called outside `record` is a
record of its own, run at once. Activations are buffers of four bytes a value, used as int8 groups (layout.py)
or, for queries, as float32. A token's results are the same bits whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..cores import physical_cores
from ..ops import Activation, Experts, ForwardBatch, KVLayer, Norm, Rope, Storage
from ..weights import Matrix
from . import attend, experts as mixture, norms, rows, tiles, walk
from .arguments import CURVES, bits, gains, pages, queries
from .dots import PLAIN, ways_here
from .layout import ACT, GROUP, ROWS
from .machine import compiled, compiles_here
from .packing import PackedLinear, PackedStorage, Part, pack, zeros
from .record import Record, Replay
from .sampling import CpuSampler
from .threads import Team, yield_address

ALL_TOKENS, CHOSEN_ROWS = 0, 16  # bytes into ForwardBatch.counts: T, R
SHARED_TOKENS = 16  # so many tokens at the longest context may have their segments shared by threads


def _partial_rows(tokens: int, positions: int) -> int:
    """Rows of attention that wait for being merged, for each head."""
    return max(tokens, SHARED_TOKENS * -(-positions // attend.SEGMENT))


class CpuOps:
    """See kernels.ops.Ops. `threads` None: one for each core.
    `portable`: no instructions that only some processors have. RuntimeError where nothing can be compiled.
    """

    name = "numba"
    device = torch.device("cpu")
    block_size = 16
    storage: Storage | None = PackedStorage()
    records_by_size = False
    workspace_bytes = 5_000_000  # compiled code, measured
    depth = 0

    def __init__(
        self,
        threads: int | None = None,
        portable: bool | None = None,
        kv_dtype: torch.dtype = torch.float16,
    ) -> None:
        if not compiles_here():
            raise RuntimeError("This processor has no FMA and F16C instructions; use the reference backend.")
        assert kv_dtype in (torch.float16, torch.int8), kv_dtype
        self.way, self.kv_dtype = PLAIN if portable else ways_here()[0], kv_dtype
        self._norm = compiled(rows.make_norm, fast=True)
        makers = rows.make_embed, walk.make_linear, walk.make_gated, attend.make_merge
        self._embed, self._linear, self._gated, self._merge = map(compiled, makers)
        small = int(kv_dtype == torch.int8)
        self._rope = compiled(rows.make_rope, small, fast=True)
        self._attend = compiled(attend.make_attend, small)
        self._walk = compiled(walk.make_walk)
        self._team, self._give_way = Team(threads or len(physical_cores())), yield_address()
        self._scratch: dict[str, Tensor] = {}
        self._record: Record | None = None

    def free_memory(self) -> None:
        """Nothing is hidden: all that is taken is in the plan."""

    def close(self) -> None:
        self._team.close()

    def pack(
        self, weights: Sequence[Matrix], bias: Tensor | None = None, gated: bool = False
    ) -> PackedLinear:
        packed = pack(weights, bias, gated)
        for part in packed.parts:
            self._matmul(part.fmt)  # compiled while loading, not in the first step
        return packed

    def activation(self, rows: int, width: int) -> Tensor:
        return self.hidden(rows, -(-width // GROUP) * GROUP)

    def hidden(self, rows: int, width: int) -> Tensor:
        return torch.from_numpy(zeros(rows, 4 * width).view(np.float32))

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        assert self._record is None, "records do not nest"
        self._record = record = Record()
        try:
            forward()
        finally:
            self._record = None
        return Replay.of(record, self._team, self._walk, self._give_way)

    def embed(self, batch: ForwardBatch, table: PackedLinear, hidden: Tensor, scale: float = 1.0) -> None:
        (part,) = table.parts
        assert hidden.shape[1] == table.shape[1], (hidden.shape, table.shape)
        into = hidden.stride(0) * 4, hidden.shape[1], bits(scale)

        def append(r: Record) -> None:
            ids = r.at(batch.counts) + ALL_TOKENS, r.at(batch.token_ids)
            r.add(self._embed, *ids, r.at(part.data), part.fmt, part.groups, r.at(hidden), *into)

        self._on(append)

    def norm_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm | None, weight: PackedLinear, out: Tensor
    ) -> None:
        def append(r: Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight)
            self._product(r, r.at(batch.counts) + ALL_TOKENS, x, weight, out, add=False)

        self._on(append)

    def logits(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm,
        weight: PackedLinear,
        out: Tensor,
        soft_cap: float = 0.0,
    ) -> None:
        def append(r: Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight, chosen=len(out))
            count = r.at(batch.counts) + CHOSEN_ROWS
            self._product(r, count, x, weight, out, add=False)
            if soft_cap:
                cap = compiled(norms.make_cap)
                into = r.at(out), out.stride(0) * 4, out.shape[1], bits(soft_cap)
                r.add(cap, count, *into, *self._own(r, 64))

        self._on(append)

    def linear_add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        weight: PackedLinear,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        def append(r: Record) -> None:
            count = r.at(batch.counts) + ALL_TOKENS
            if norm is None and scale == keep == 1.0:
                self._product(r, count, r.at(x), weight, hidden, add=True)
                return
            sums = self._floats("sums", *hidden.shape)
            self._product(r, count, r.at(x), weight, sums, add=False)
            self.add(batch, sums, hidden, norm, scale, keep)

        self._on(append)

    def add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        width = x.shape[1]
        run = len(norm.gain) if norm else width
        assert width == hidden.shape[1] and width % run == 0, (x.shape, hidden.shape, run)

        def append(r: Record) -> None:
            r.add(
                compiled(norms.make_add, fast=True), r.at(batch.counts) + ALL_TOKENS, r.at(x),
                x.stride(0) * 4, width, run, *gains(r, norm), bits(scale), bits(keep), r.at(hidden),
                hidden.stride(0) * 4,
            )  # fmt: skip

        self._on(append)

    def norm_gated_linear(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        weight: PackedLinear,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        def append(r: Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight)
            count = r.at(batch.counts) + ALL_TOKENS
            r.add_stream(self._gated, *self._gating(r, count, weight, x, r.at(out), activation))

        self._on(append)

    def gate(
        self,
        batch: ForwardBatch,
        x: Tensor,
        up: Tensor,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        width = x.shape[1]
        assert up.shape[1] == width, (x.shape, up.shape)

        def append(r: Record) -> None:
            r.add(
                compiled(rows.make_gates), r.at(batch.counts) + ALL_TOKENS, r.at(x), x.stride(0) * 4,
                r.at(up), up.stride(0) * 4, width, r.at(CURVES[activation]), r.at(out),
                -(-width // GROUP) * ACT, *self._own(r, 8 * GROUP),
            )  # fmt: skip

        self._on(append)

    def norm_experts_add(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        experts: Experts,
        out: Tensor | None = None,
    ) -> None:
        (tokens, width), into = hidden.shape, hidden if out is None else out
        num_experts, top_k, size = len(experts.down), experts.top_k, experts.down[0].shape[1]
        act, wide = -(-width // GROUP) * ACT, -(-size // GROUP) * ACT
        shares, sort, gather, each, scatter = (
            compiled(make)
            for make in (
                mixture.make_shares, mixture.make_sort, mixture.make_gather, mixture.make_each,
                mixture.make_scatter,
            )
        )  # fmt: skip

        def append(r: Record) -> None:
            count = r.at(batch.counts) + ALL_TOKENS
            x = self._normed(r, batch, hidden, experts.router_norm or norm, experts.router)
            scores = self._floats("scores", tokens, num_experts)
            self._product(r, count, x, experts.router, scores, add=False)
            if experts.router_norm:
                x = self._normed(r, batch, hidden, norm, experts.router)
            chosen, ranked, weights, places, inputs, gated = (
                self._shared(r, f"experts' {name}", num_bytes)
                for name, num_bytes in (
                    ("numbers", tokens * top_k * 8),
                    ("rows", tokens * top_k * 8),
                    ("shares", tokens * top_k * 4),
                    ("places", num_experts * 16),
                    ("inputs", tokens * top_k * act),
                    ("gated", tokens * top_k * wide),
                )
            )
            found = self._floats("experts' outputs", tokens * top_k, width)
            r.add(
                shares, count, r.at(scores), num_experts * 4, num_experts, top_k, int(experts.normalized),
                chosen, weights, 0 if experts.scales is None else r.at(experts.scales),
            )  # fmt: skip
            r.add(sort, count, num_experts, top_k, chosen, places, ranked)
            r.add(gather, count, top_k, ranked, x, act, inputs)
            act_of = experts.activation
            gating = [self._gating(r, 0, w, inputs, gated, act_of) for w in experts.gate_up]
            downs = [self._multiplying(r, 0, w.parts[0], gated, w, found, add=False) for w in experts.down]
            spare = self._shared(r, "an expert's arguments", self._team.count * mixture.ROW * 8)
            for kernel, arguments, (x_at, out_at), x_step, out_step in (
                (self._gated, gating, mixture.GATED, act, wide),
                (self._linear, downs, mixture.LINEAR, wide, width * 4),
            ):
                table = np.zeros((num_experts, mixture.ROW), np.int64)
                table[:, : len(arguments[0])] = arguments
                r.add(
                    each, kernel, r.at(table), num_experts, places, x_at, x_step, out_at, out_step, spare,
                    mixture.ROW * 8,
                )  # fmt: skip
            r.add(
                scatter, count, top_k, ranked, weights, r.at(found), width * 4, width, r.at(into),
                into.stride(0) * 4, int(out is not None),
            )  # fmt: skip

        self._on(append)

    def rope_write(
        self,
        batch: ForwardBatch,
        qkv: Tensor,
        rope: Rope,
        kv: KVLayer,
        q: Tensor,
        q_norm: Norm | None = None,
        k_norm: Norm | None = None,
        v_norm: Norm | None = None,
    ) -> None:
        scale = bits(rows.LOG2_E * kv.score_scale)
        turned, items = rope.cos.shape[1], qkv.shape[1] // kv.head_dim
        assert items in (kv.num_heads, kv.num_heads + 2 * kv.num_kv_heads), (qkv.shape, kv.head_dim)

        def append(r: Record) -> None:
            count, step = r.at(batch.counts) + ALL_TOKENS, qkv.stride(0) * 4
            at = 0
            heads = kv.num_heads, *(kv.num_kv_heads,) * (2 if items > kv.num_heads else 0)
            for norm, num in zip((q_norm, k_norm, v_norm), heads, strict=False):
                if norm is not None:
                    width = len(norm.gain)
                    pieces = num * kv.head_dim // width
                    head_norm = compiled(norms.make_head_norm, fast=True)
                    r.add(head_norm, count, r.at(qkv) + at, step, pieces, width, *gains(r, norm))
                at += num * kv.head_dim * 4
            r.add(
                self._rope, count, r.at(batch.positions), r.at(batch.slots[kv.kind]), r.at(qkv), step,
                r.at(rope.cos), r.at(rope.sin), turned, *queries(r, q, kv), *pages(r, kv), scale, items,
            )  # fmt: skip

        self._on(append)

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        tables, width = batch.block_tables[kv.kind], kv.num_heads * kv.head_dim
        capacity = kv.num_heads * _partial_rows(len(q), tables.shape[1] * kv.block_size)
        row = (kv.head_dim + 16) * 4
        task = attend.LISTS + max(attend.TILE_ROWS, kv.num_heads // kv.num_kv_heads) * (
            attend.SEGMENT * 4 + 2 * row
        )

        def append(r: Record) -> None:
            partials = self._shared(r, "partials", attend.HEADER + capacity * row)
            r.add(
                self._attend, r.at(batch.counts), r.at(batch.cu_lens), r.at(batch.positions), r.at(tables),
                tables.stride(0) * 8, *queries(r, q, kv), *pages(r, kv), kv.window,
                bits(kv.soft_cap * rows.LOG2_E), partials, capacity, *self._own(r, task),
            )  # fmt: skip
            r.add(
                self._merge, r.at(batch.counts) + ALL_TOKENS, r.at(batch.positions), kv.num_heads,
                kv.head_dim, kv.window, 0 if kv.sinks is None else r.at(kv.sinks), partials,
                r.at(out), -(-width // GROUP) * ACT, *self._own(r, (width + GROUP) * 4 + row),
            )  # fmt: skip

        self._on(append)

    def sampler(self, rows: int, vocabulary: int, slots: int) -> CpuSampler:
        return CpuSampler(self._team, rows, vocabulary, slots)

    def scratch_bytes(self, heads: int, head_dim: int, tokens: int, positions: int, vocabulary: int) -> int:
        partials = heads * _partial_rows(tokens, positions) * (head_dim + 16) * 4
        return partials + CpuSampler.SPARE * self._team.count * vocabulary

    def copy_blocks(self, pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
        pool[list(target)] = pool[list(source)]

    def _on(self, append: Callable[[Record], None]) -> None:
        """Append to the record being taken, or to one that is run at once."""
        if self._record is None:
            self.record(lambda: self._on(append))()
        else:
            append(self._record)

    def _matmul(self, fmt: int) -> int:
        """The address of a format's matrix product."""
        return compiled(tiles.make_matmul, fmt, self.way)

    def _bytes(self, name: str, size: int) -> Tensor:
        """Scratch memory of that many bytes, one piece per name for all ops: it does not outlive an op."""
        found = self._scratch.get(name)
        if found is None or found.nbytes < size:
            found = self._scratch[name] = torch.from_numpy(zeros(size))  # no memory before it is written
        return found

    def _shared(self, r: Record, name: str, size: int) -> int:
        """The same by its address."""
        return r.at(self._bytes(name, size))

    def _floats(self, name: str, count: int, width: int) -> Tensor:
        """The same as a float buffer [count, width]."""
        size = count * width * 4
        return self._bytes(name, size)[:size].view(torch.float32).view(count, width)

    def _own(self, r: Record, size: int) -> tuple[int, int]:
        """A workspace of that many bytes for each thread, and the step from one to the next."""
        step = -(-size // 64) * 64
        return self._shared(r, f"workspace of {step}", step * self._team.count), step

    def _normed(
        self,
        r: Record,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        weight: PackedLinear,
        chosen: int = 0,
    ) -> int:
        """Normalize all tokens of `hidden`, or up to so many chosen rows: the activation's address. No norm:
        rounded as they are.
        """
        width = hidden.shape[1]
        assert width == weight.shape[1], (hidden.shape, weight.shape)
        step = -(-width // GROUP) * ACT
        x = self._shared(r, "normed", (chosen or len(hidden)) * step)
        which = (CHOSEN_ROWS, r.at(batch.logit_rows)) if chosen else (ALL_TOKENS, 0)
        r.add(
            self._norm, r.at(batch.counts) + which[0], which[1], r.at(hidden), hidden.stride(0) * 4, width,
            *gains(r, norm), x, step, *self._own(r, (width + GROUP) * 4),
        )  # fmt: skip
        return x

    def _product(self, r: Record, count: int, x: int, weight: PackedLinear, out: Tensor, add: bool) -> None:
        """Multiply `count` (an address) activations with each part of a matrix."""
        assert not weight.gated and out.shape[1] == weight.shape[0], (out.shape, weight.shape)
        done = 0
        for part in weight.parts:
            columns, last = done * 4, part is weight.parts[-1]
            arguments = self._multiplying(r, count, part, x, weight, out, add, columns)
            r.add_stream(self._linear, *arguments, meet=last)
            done += part.rows

    def _multiplying(
        self,
        r: Record,
        count: int,
        part: Part,
        x: int,
        weight: PackedLinear,
        out: Tensor,
        add: bool,
        columns: int = 0,
    ) -> tuple[int, ...]:
        """What walk.make_linear takes; `columns` is where in the outputs, in bytes, the part's begin."""
        data, size = r.at(part.data), part.pair_size
        return (
            data, -(-part.rows // ROWS), size, count, self._matmul(part.fmt), data, part.groups, part.rows,
            size, x, part.groups * ACT, r.at(weight.bias) + columns, int(add), r.at(out) + columns,
            out.stride(0) * 4, r.counter(), *self._own(r, walk.JOB + walk.CHUNK * ROWS * 4),
        )  # fmt: skip

    def _gating(
        self, r: Record, count: int, weight: PackedLinear, x: int, out: int, activation: Activation
    ) -> tuple[int, ...]:
        """What walk.make_gated takes."""
        assert weight.gated
        gate, *up = weight.parts
        units = -(-weight.shape[0] // 2 // ROWS)
        second = (self._matmul(up[0].fmt), r.at(up[0].data)) if up else (0, 0)
        data, size = r.at(gate.data), gate.pair_size * (1 if up else 2)
        return (
            data, units, size, count, self._matmul(gate.fmt), data, *second, gate.groups, units, size, x,
            gate.groups * ACT, r.at(weight.bias), out, units * ACT, r.at(CURVES[activation]),
            r.counter(), *self._own(r, walk.JOB + walk.CHUNK * 2 * ROWS * 4),
        )  # fmt: skip
