"""CpuOps: the contract of kernels/ops.py on a processor. An op appends rows to a record (walk.py).

Buffers are static: the record holds their addresses, and how many tokens, sequences and rows count is read
from ForwardBatch.counts when it runs, so one record serves every batch. An op called outside `record` is a
record of its own, run at once. Activations are buffers of four bytes a value, used as int8 groups (layout.py)
or, for queries, as float32. A token's results are the same bits whatever else is in the batch.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..ops import ForwardBatch, KVLayer, Norm, Rope
from ..weights import Weight
from . import attend, rows, tiles, walk
from .dots import PLAIN, ways_here
from .layout import ACT, GROUP, ROWS
from .machine import WALK, compiled, compiles_here
from .packing import PackedLinear, pack
from .threads import Team, default_threads, yield_address

RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)  # calls the walk without the interpreter's lock
DTYPES = {torch.float32, torch.float16, torch.int64, torch.uint8}  # what kernels read and write
ALL_TOKENS, CHOSEN_ROWS = 0, 16  # bytes into ForwardBatch.counts: T, R
SHARED_TOKENS = 16  # so many tokens at the longest context may have their segments shared by threads


def _bits(x: float) -> int:
    """A float32 as the integer that machine.as_float reads."""
    return int.from_bytes(struct.pack("<f", x), "little")


@dataclass(slots=True)
class _Record:
    """Rows of a program, and what must live as long as they are run."""

    rows: list[list[int]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)

    def at(self, owner: Tensor | np.ndarray) -> int:
        """The address of a buffer."""
        self.kept.append(owner)
        if isinstance(owner, Tensor):
            assert owner.dtype in DTYPES and (owner.stride(-1) == 1 or owner.shape[-1] == 1), owner
            return owner.data_ptr()
        return int(owner.ctypes.data)

    def add(self, kernel: int, *args: int, meet: bool = True) -> None:
        spare = walk.ROW - 2 - len(args)
        self.rows.append([kernel, int(meet), *args, *[0] * spare])


@dataclass(frozen=True, slots=True)
class _Replay:
    """Runs a record."""

    team: Team
    walk: Callable[..., None]
    program: np.ndarray
    clock: np.ndarray  # one cache line
    give_way: int
    kept: list[Any]

    def __call__(self) -> None:
        run, program, clock, give_way = self.walk, self.program, self.clock.ctypes.data, self.give_way
        self.clock[:] = 0
        where, length = program.ctypes.data, len(program)
        self.team.run(lambda thread, count: run(where, length, clock, give_way, thread, count))


class CpuOps:
    """See kernels.ops.Ops. `threads` None: the cores, one left over when there are more than four.
    `portable`: no instructions that only some processors have. RuntimeError where nothing can be compiled.
    """

    name = "numba"
    device = torch.device("cpu")
    kv_dtype = torch.float16
    block_size = 16

    def __init__(self, threads: int | None = None, portable: bool | None = None) -> None:
        if not compiles_here():
            raise RuntimeError("This processor has no FMA and F16C instructions; use the reference backend.")
        self.way = PLAIN if portable else ways_here()[0]
        self._norm, self._rope = (compiled(make, fast=True) for make in (rows.make_norm, rows.make_rope))
        makers = rows.make_embed, walk.make_linear, walk.make_gated, attend.make_attend, attend.make_merge
        self._embed, self._linear, self._gated, self._attend, self._merge = map(compiled, makers)
        self._walk = RUN(compiled(walk.make_walk, kind=WALK))
        self._team, self._give_way = Team(threads or default_threads()), yield_address()
        self._scratch: dict[str, Tensor] = {}
        self._record: _Record | None = None

    def close(self) -> None:
        self._team.close()

    def pack(
        self, weights: Sequence[Weight], bias: Tensor | None = None, gated: bool = False
    ) -> PackedLinear:
        packed = pack(weights, bias, gated)
        for part in packed.parts:
            self._matmul(part.fmt)  # compiled while loading, not in the first step
        return packed

    def activation(self, rows: int, width: int) -> Tensor:
        return torch.zeros(rows, -(-width // GROUP) * GROUP)

    def hidden(self, rows: int, width: int) -> Tensor:
        return torch.zeros(rows, width)

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        assert self._record is None, "records do not nest"
        self._record = record = _Record()
        try:
            forward()
        finally:
            self._record = None
        program = np.array(record.rows, np.int64).reshape(-1, walk.ROW)
        return _Replay(self._team, self._walk, program, np.zeros(16, np.int64), self._give_way, record.kept)

    def embed(self, batch: ForwardBatch, table: PackedLinear, hidden: Tensor) -> None:
        (part,) = table.parts
        assert hidden.shape[1] == table.shape[1], (hidden.shape, table.shape)
        into = hidden.stride(0) * 4, hidden.shape[1]

        def append(r: _Record) -> None:
            ids = r.at(batch.counts) + ALL_TOKENS, r.at(batch.token_ids)
            r.add(self._embed, *ids, r.at(part.data), part.fmt, part.groups, r.at(hidden), *into)

        self._on(append)

    def norm_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm, weight: PackedLinear, out: Tensor
    ) -> None:
        def append(r: _Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight)
            self._product(r, r.at(batch.counts) + ALL_TOKENS, x, weight, out, add=False)

        self._on(append)

    def logits(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm, weight: PackedLinear, out: Tensor
    ) -> None:
        def append(r: _Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight, chosen=len(out))
            self._product(r, r.at(batch.counts) + CHOSEN_ROWS, x, weight, out, add=False)

        self._on(append)

    def linear_add(self, batch: ForwardBatch, x: Tensor, weight: PackedLinear, hidden: Tensor) -> None:
        self._on(
            lambda r: self._product(r, r.at(batch.counts) + ALL_TOKENS, r.at(x), weight, hidden, add=True)
        )

    def norm_gated_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm, weight: PackedLinear, out: Tensor
    ) -> None:
        assert weight.gated
        gate, *up = weight.parts
        units = -(-weight.shape[0] // 2 // ROWS)

        def append(r: _Record) -> None:
            x = self._normed(r, batch, hidden, norm, weight)
            first = self._matmul(gate.fmt), r.at(gate.data)
            second = (self._matmul(up[0].fmt), r.at(up[0].data)) if up else (0, 0)
            own = self._own(r, walk.JOB + walk.CHUNK * 2 * ROWS * 4)
            r.add(
                self._gated, r.at(batch.counts) + ALL_TOKENS, *first, *second, gate.groups, units, gate.ahead,
                x, gate.groups * ACT, r.at(weight.bias), r.at(out), units * ACT, *own,
            )  # fmt: skip

        self._on(append)

    def rope_write(self, batch: ForwardBatch, qkv: Tensor, rope: Rope, kv: KVLayer, q: Tensor) -> None:
        scale = _bits(rows.LOG2_E / math.sqrt(kv.head_dim))
        turned = rope.cos.shape[1]

        def append(r: _Record) -> None:
            r.add(
                self._rope, r.at(batch.counts) + ALL_TOKENS, r.at(batch.positions),
                r.at(batch.slots[kv.kind]), r.at(qkv), qkv.stride(0) * 4, r.at(rope.cos), r.at(rope.sin),
                turned, *_queries(r, q, kv), *_pages(r, kv), scale,
            )  # fmt: skip

        self._on(append)

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        tables, width = batch.block_tables[kv.kind], kv.num_heads * kv.head_dim
        segments = -(-tables.shape[1] * kv.block_size // attend.SEGMENT)
        capacity = kv.num_heads * max(len(q), SHARED_TOKENS * segments)  # partial rows
        row = (kv.head_dim + 16) * 4
        task = attend.LISTS + max(attend.TILE_ROWS, kv.num_heads // kv.num_kv_heads) * (
            attend.SEGMENT * 4 + 2 * row
        )

        def append(r: _Record) -> None:
            slots = self._shared(r, "slots", attend.HEADER + capacity * row)
            r.add(
                self._attend, r.at(batch.counts), r.at(batch.cu_lens), r.at(batch.positions), r.at(tables),
                tables.stride(0) * 8, *_queries(r, q, kv), *_pages(r, kv), kv.window,
                _bits(kv.soft_cap * rows.LOG2_E), slots, capacity, *self._own(r, task),
            )  # fmt: skip
            r.add(
                self._merge, r.at(batch.counts) + ALL_TOKENS, r.at(batch.positions), kv.num_heads,
                kv.head_dim, kv.window, slots, r.at(out), -(-width // GROUP) * ACT,
                *self._own(r, (width + GROUP) * 4 + row),
            )  # fmt: skip

        self._on(append)

    def copy_blocks(self, pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
        pool[list(target)] = pool[list(source)]

    def _on(self, append: Callable[[_Record], None]) -> None:
        """Append to the record being taken, or to one that is run at once."""
        if self._record is None:
            self.record(lambda: self._on(append))()
        else:
            append(self._record)

    def _matmul(self, fmt: int) -> int:
        """The address of a format's matrix product."""
        return compiled(tiles.make_matmul, fmt, self.way)

    def _shared(self, r: _Record, name: str, size: int) -> int:
        """Scratch memory of that many bytes, one piece per name for all ops: it does not outlive an op."""
        found = self._scratch.get(name)
        if found is None or found.nbytes < size:
            found = self._scratch[name] = torch.zeros(size, dtype=torch.uint8)
        return r.at(found)

    def _own(self, r: _Record, size: int) -> tuple[int, int]:
        """A workspace of that many bytes for each thread, and the step from one to the next."""
        step = -(-size // 64) * 64
        return self._shared(r, f"workspace of {step}", step * self._team.count), step

    def _normed(
        self,
        r: _Record,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm,
        weight: PackedLinear,
        chosen: int = 0,
    ) -> int:
        """Normalize all tokens of `hidden`, or up to so many chosen rows: the activation's address."""
        width = hidden.shape[1]
        assert width == weight.shape[1], (hidden.shape, weight.shape)
        step = -(-width // GROUP) * ACT
        x = self._shared(r, "normed", (chosen or len(hidden)) * step)
        which = (CHOSEN_ROWS, r.at(batch.logit_rows)) if chosen else (ALL_TOKENS, 0)
        r.add(
            self._norm, r.at(batch.counts) + which[0], which[1], r.at(hidden), hidden.stride(0) * 4, width,
            r.at(norm.gain), _bits(norm.eps), x, step, *self._own(r, (width + GROUP) * 4),
        )  # fmt: skip
        return x

    def _product(self, r: _Record, count: int, x: int, weight: PackedLinear, out: Tensor, add: bool) -> None:
        """Multiply `count` (an address) activations with each part of a matrix."""
        assert not weight.gated and out.shape[1] == weight.shape[0], (out.shape, weight.shape)
        done = 0
        for part in weight.parts:
            columns, last = done * 4, part is weight.parts[-1]
            r.add(
                self._linear, count, self._matmul(part.fmt), r.at(part.data), part.groups, part.rows,
                part.ahead, x, part.groups * ACT, r.at(weight.bias) + columns, int(add), r.at(out) + columns,
                out.stride(0) * 4, *self._own(r, walk.JOB + walk.CHUNK * ROWS * 4), meet=last,
            )  # fmt: skip
            done += part.rows


def _queries(r: _Record, q: Tensor, kv: KVLayer) -> tuple[int, int]:
    """Where the queries of the first kv head lie, and the step to the next one's."""
    return r.at(q), len(q) * kv.num_heads // kv.num_kv_heads * kv.head_dim * 4


def _pages(r: _Record, kv: KVLayer) -> tuple[int, ...]:
    """A layer's part of the pool: address; steps to the next block, the values, the next head; shapes."""
    pool, heads = kv.pool, kv.num_kv_heads
    assert kv.head_dim % 16 == 0 and kv.block_size % 16 == 0 and kv.num_heads % heads == 0
    assert pool.dtype == CpuOps.kv_dtype and pool.shape[4] == kv.block_size * kv.head_dim
    block, layer, values, head = (2 * step for step in pool.stride()[:4])
    shapes = kv.block_size, kv.num_heads, heads, kv.head_dim
    return r.at(pool) + kv.layer * layer, block, values, head, *shapes
