"""TritonOps: the contract of kernels/ops.py on cards that Triton compiles for, and in its interpreter.

The residual stream, q/k/v and logits are float32, activations bfloat16 (float16 where a card has no units
for that). What a launch takes is checked here, before any kernel sees an address: kernels check nothing.
Grids are sized by the counts that the batch has on the host, so that no op waits for the device. A record is
a CUDA graph of what the batch then held: it serves all later steps of as many sequences, a token each.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ..ops import Activation, Experts, ForwardBatch, KVLayer, Norm, Rope, Storage
from ..reference import ACTIVATIONS, attend
from ..weights import Matrix
from . import attention, blocks, rows
from .attention_tiles import PROMPTS
from .experts import Mixtures
from .linear import Linear
from .packing import PackedMatrix
from .sampling import Sampler
from .targets import Target, target_of

RECORDS_BYTES = 2**28  # what graphs take, to plan with until it is measured
KV_DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.float8_e4m3fn)


class TritonOps:
    """See kernels.ops.Ops. `kv_dtype` None: the activations' type; of 8 bits: torch.int8, on every card with
    matrix units, or torch.float8_e4m3fn, on those that have its conversions. RuntimeError where nothing can
    be compiled for the device, ValueError for a type that it cannot do.
    """

    name = "triton"
    block_size = 64
    storage: Storage | None = None

    def __init__(
        self, device: str = "cuda", dtype: torch.dtype | None = None, kv_dtype: torch.dtype | None = None
    ) -> None:
        self.device = torch.device(device)
        target = target_of(self.device)
        if target is None:
            raise RuntimeError(f"Nothing is compiled for {device}; use the reference backend.")
        self.target = target
        self.dtype = dtype or (torch.bfloat16 if target.bf16 else torch.float16)
        self.kv_dtype = kv_dtype or self.dtype
        check_dtypes(target, self.dtype, self.kv_dtype)
        self.linear = Linear(self.device, self.dtype, target)
        self.mixtures = Mixtures(self.linear)
        self.work = attention.Workspace.of(self.device)
        self.records_by_size = self.device.type == "cuda"
        self.depth = int(self.device.type == "cuda")
        self.workspace_bytes = self.linear.workspace_bytes + (RECORDS_BYTES if self.records_by_size else 0)
        self._last_graph: Callable[[], Any] = lambda: None  # whose memory the next record shares

    def pack(
        self, weights: Sequence[Matrix], bias: Tensor | None = None, gated: bool = False
    ) -> PackedMatrix:
        """See Ops.pack."""
        assert not gated or len(weights) == 2, f"gated takes gate and up, not {len(weights)} matrices"
        return self.linear.pack(weights, bias, gated)

    def activation(self, rows: int, width: int) -> Tensor:
        """Zeros [rows, width] in `dtype`."""
        return torch.zeros(rows, width, dtype=self.dtype, device=self.device)

    def hidden(self, rows: int, width: int) -> Tensor:
        """Zeros [rows, width], float32."""
        return torch.zeros(rows, width, device=self.device)

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        """A CUDA graph; the first call compiles what is not compiled and lets workspaces grow."""
        if not self.records_by_size:
            return forward
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            forward()
        torch.cuda.current_stream().wait_stream(stream)
        last = self._last_graph()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=last.pool() if last else None):  # one runs at a time
            forward()
        self._last_graph = weakref.ref(graph)
        return graph.replay

    def embed(self, batch: ForwardBatch, table: PackedMatrix, hidden: Tensor, scale: float = 1.0) -> None:
        """See Ops.embed."""
        tokens = self._count(batch, 0, hidden)
        self.linear.embed(batch.token_ids[:tokens], table, hidden[:tokens], scale)

    def norm_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm | None, weight: PackedMatrix, out: Tensor
    ) -> None:
        """See Ops.norm_linear."""
        tokens = self._count(batch, 0, hidden, out)
        self.linear.apply(self._normed(hidden[:tokens], norm), weight, out[:tokens])

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
        """See Ops.rope_write."""
        tokens = self._count(batch, 0, qkv, q)
        self._check_layer(kv)
        width = kv.num_heads * kv.head_dim
        written = 0 if qkv.shape[1] == width else 2 * kv.num_kv_heads * kv.head_dim
        check_rows("qkv", qkv, width + written, torch.float32)
        check_rows("q", q, width, self.dtype)
        check_rows("the rope's cosines", rope.cos, rope.cos.shape[1], torch.float32)
        rows.rope_write(batch, qkv[:tokens], rope, kv, q, q_norm, k_norm, v_norm)

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        """See Ops.attention. Prompts on a card without matrix units are left to torch."""
        self._count(batch, 0, q, out)
        self._check_layer(kv)
        for name, buffer in (("q", q), ("out", out)):
            check_rows(name, buffer, kv.num_heads * kv.head_dim, self.dtype)
        attention.attention(batch, q, kv, out, self.target, self.work)
        if self.target.name not in PROMPTS:
            attend(batch, q, kv, out, self.dtype, least=attention.ANSWER_TOKENS + 1)

    def linear_add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        weight: PackedMatrix,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        """See Ops.linear_add."""
        tokens = self._count(batch, 0, x, hidden)
        if norm is None and keep == 1.0:
            self.linear.apply(x[:tokens], weight, hidden[:tokens], add=True, scale=scale)
            return
        product = torch.empty_like(hidden[:tokens])
        self.linear.apply(x[:tokens], weight, product)
        self.add(batch, product, hidden, norm, scale, keep)

    def add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        """See Ops.add."""
        tokens = self._count(batch, 0, x, hidden)
        into = hidden[:tokens]
        if keep != 1.0:
            into.copy_(keep * into if keep else torch.zeros_like(into))
        if norm is None:
            into.add_(x[:tokens], alpha=scale)
            return
        runs = (-1, len(norm.gain))
        rows.add_normed(x[:tokens].view(runs), norm, into.view(runs), scale)

    def norm_gated_linear(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        weight: PackedMatrix,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """See Ops.norm_gated_linear."""
        tokens = self._count(batch, 0, hidden, out)
        self.linear.apply(self._normed(hidden[:tokens], norm), weight, out[:tokens], activation=activation)

    def gate(
        self,
        batch: ForwardBatch,
        x: Tensor,
        up: Tensor,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """See Ops.gate: little work, left to torch."""
        tokens = self._count(batch, 0, x, out)
        out[:tokens] = ACTIVATIONS[activation](x[:tokens], up[:tokens])

    def norm_experts_add(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        experts: Experts,
        out: Tensor | None = None,
    ) -> None:
        """See Ops.norm_experts_add."""
        tokens = self._count(batch, 0, hidden)
        x, router_norm = hidden[:tokens], experts.router_norm
        asked = self._normed(x, router_norm) if router_norm else None
        into = x if out is None else out[:tokens].zero_()
        self.mixtures.add(self._normed(x, norm), experts, into, asked)

    def logits(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm,
        weight: PackedMatrix,
        out: Tensor,
        soft_cap: float = 0.0,
    ) -> None:
        """See Ops.logits."""
        wanted = self._count(batch, 2, out)
        if not wanted:  # a step inside prompts
            return
        x = hidden.new_empty(wanted, hidden.shape[1], dtype=self.dtype)
        rows.rms_norm(hidden, norm, x, batch.logit_rows)
        self.linear.apply(x, weight, out[:wanted], soft_cap=soft_cap)

    def sampler(self, rows: int, vocabulary: int, slots: int) -> Sampler:
        """See Ops.sampler."""
        return Sampler(self.device, rows, vocabulary, slots)

    def copy_blocks(self, pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
        """See Ops.copy_blocks."""
        check_blocks(pool, [*source, *target])
        blocks.copy(pool, pool, source, target)

    def free_memory(self) -> int | None:
        """See Ops.free_memory. What torch keeps for later counts as taken."""
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else None

    def close(self) -> None:
        """No threads of its own."""

    def _normed(self, x: Tensor, norm: Norm | None) -> Tensor:
        """What a product takes: norm(x), or x, as activation."""
        if norm is None:
            return x.to(self.dtype)
        out = torch.empty_like(x, dtype=self.dtype)
        rows.rms_norm(x, norm, out)
        return out

    def _count(self, batch: ForwardBatch, which: int, *buffers: Tensor) -> int:
        """How many tokens or rows of logits the step has; every buffer has as many rows, here and whole."""
        assert self.device.type == "cpu" or batch.host is not None, (
            "a card's batch has its numbers on the host"
        )
        count = int((batch.host or batch).counts[which])
        for buffer in buffers:
            if len(buffer) < count or not buffer.is_contiguous() or buffer.device.type != self.device.type:
                raise ValueError(
                    f"A step of {count} rows needs contiguous buffers of as many on {self.device}; one is "
                    f"{tuple(buffer.shape)}, strides {buffer.stride()}, on {buffer.device}."
                )
        return count

    def _check_layer(self, kv: KVLayer) -> None:
        """The layer's pool is as its numbers say, and of this backend's type."""
        wanted = (2, kv.num_kv_heads, kv.block_size * kv.head_dim)
        pool = kv.pool
        if pool.shape[2:] != wanted or pool.dtype != self.kv_dtype or not pool[0].is_contiguous():
            raise ValueError(
                f"The pool's blocks are {tuple(pool.shape[2:])} of {pool.dtype}, strides {pool.stride()}; "
                f"the layer needs contiguous ones, {wanted} of {self.kv_dtype}."
            )
        if (kv.scales is None) == (pool.dtype.itemsize == 1):
            raise ValueError(
                f"Keys and values of {pool.dtype} come with scales if they have 8 bits, else without."
            )
        if kv.num_heads % kv.num_kv_heads or kv.block_size % 16 or kv.layer >= pool.shape[1]:
            raise ValueError(
                f"{kv.num_heads} heads over {kv.num_kv_heads}, blocks of {kv.block_size}, layer {kv.layer} "
                f"of {pool.shape[1]}: heads must divide, blocks be multiples of 16, the layer be there."
            )


def check_dtypes(target: Target, dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
    """Raises ValueError for what a target cannot do."""
    small = kv_dtype.itemsize == 1
    if dtype not in attention.DTYPES or kv_dtype not in KV_DTYPES or not (small or kv_dtype == dtype):
        raise ValueError(
            f"Triton computes in float32, float16 or bfloat16, not {dtype} with {kv_dtype} kept."
        )
    if dtype == torch.bfloat16 and not target.bf16:
        raise ValueError(f"{target.name} does not multiply bfloat16; use float16.")
    if (small and not target.matrix) or (kv_dtype == torch.float8_e4m3fn and not target.fp8):
        raise ValueError(
            f"{target.name} cannot keep keys and values as {kv_dtype}; use torch.int8 or {dtype}."
        )


def check_rows(name: str, buffer: Tensor, width: int, dtype: torch.dtype) -> None:
    """Raises ValueError for a buffer of another width or type."""
    if buffer.shape[1] != width or buffer.dtype != dtype:
        raise ValueError(
            f"{name} is {tuple(buffer.shape)} of {buffer.dtype}; needed are rows of {width} {dtype}."
        )


def check_blocks(pool: Tensor, ids: Sequence[int]) -> None:
    """Raises ValueError for a block that a pool has not."""
    if ids and not 0 <= min(ids) <= max(ids) < len(pool):
        raise ValueError(f"Blocks {min(ids)} to {max(ids)} were named; the pool has {len(pool)}.")
