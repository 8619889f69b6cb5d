"""TritonOps: the contract of kernels/ops.py on cards that Triton compiles for, and in its interpreter.

The residual stream, q/k/v and logits are float32, activations bfloat16 (float16 where a card has no units
for that). What a launch takes is checked first (checks.py), before any kernel sees an address.
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
from .checks import (
    check_blocks,
    check_buffers,
    check_dtypes,
    check_layer,
    check_rope,
    check_rows,
    check_vector,
)
from .experts import Mixtures
from .linear import Linear
from .packing import PackedMatrix
from .sampling import Sampler
from .targets import target_of

RECORDS_BYTES = 2**28  # what graphs take, to plan with until it is measured


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
        """A CUDA graph; the first call compiles what is not compiled and lets workspaces grow. `forward`
        itself where that waits for the card.
        """
        if not self.records_by_size:
            return forward
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            forward()
        torch.cuda.current_stream().wait_stream(stream)
        if self.mixtures.waits:
            return forward
        last = self._last_graph()
        graph = torch.cuda.CUDAGraph()
        # one record runs at a time; another model's thread may go on using the card
        with torch.cuda.graph(graph, pool=last.pool() if last else None, capture_error_mode="thread_local"):
            forward()
        self._last_graph = weakref.ref(graph)
        return graph.replay

    def embed(self, batch: ForwardBatch, table: PackedMatrix, hidden: Tensor, scale: float = 1.0) -> None:
        """See Ops.embed."""
        tokens = self._count(batch, 0, hidden)
        check_rows("hidden", hidden, table.shape[1], torch.float32)
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
        check_layer(kv, self.kv_dtype, len(batch.slots))
        width = kv.num_heads * kv.head_dim
        written = 0 if qkv.shape[1] == width else 2 * kv.num_kv_heads * kv.head_dim
        check_rows("qkv", qkv, width + written, torch.float32)
        check_rows("q", q, width, self.dtype)
        norms = (q_norm, kv.num_heads), (k_norm, kv.num_kv_heads), (v_norm, 1)
        check_rope(rope, norms, kv.head_dim)
        rows.rope_write(batch, qkv[:tokens], rope, kv, q, q_norm, k_norm, v_norm)

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        """See Ops.attention. Prompts on a card without matrix units are left to torch."""
        self._count(batch, 0, q, out)
        check_layer(kv, self.kv_dtype, len(batch.slots))
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
        for name, buffer in (("x", x), ("hidden", hidden)):
            check_rows(name, buffer, hidden.shape[1], torch.float32)
        into = hidden[:tokens]
        if keep != 1.0:
            into.copy_(keep * into if keep else torch.zeros_like(into))
        if norm is None:
            into.add_(x[:tokens], alpha=scale)
            return
        width, run = hidden.shape[1], len(norm.gain)
        check_vector("a norm's gain", norm.gain, (run if width % max(run, 1) == 0 else width,), self.device)
        runs = (-1, run)
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
        for name, buffer in (("x", x), ("up", up)):
            check_rows(name, buffer, out.shape[1], torch.float32)
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
        sums = hidden if out is None else out
        tokens = self._count(batch, 0, hidden, sums)
        for name, buffer in (("hidden", hidden), ("out", sums)):
            check_rows(name, buffer, experts.router.shape[1], torch.float32)
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
        check_buffers(0, self.device, hidden)
        check_vector("a norm's gain", norm.gain, hidden.shape[1:], self.device)
        x = hidden.new_empty(wanted, hidden.shape[1], dtype=self.dtype)
        rows.rms_norm(hidden, norm, x, batch.logit_rows)
        self.linear.apply(x, weight, out[:wanted], soft_cap=soft_cap)

    def sampler(self, rows: int, vocabulary: int, slots: int) -> Sampler:
        """See Ops.sampler."""
        return Sampler(self.device, rows, vocabulary, slots)

    def scratch_bytes(self, heads: int, head_dim: int, tokens: int, positions: int, vocabulary: int) -> int:
        """Measured when it is warm."""
        return 0

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
        check_vector("a norm's gain", norm.gain, x.shape[1:], self.device)
        out = torch.empty_like(x, dtype=self.dtype)
        rows.rms_norm(x, norm, out)
        return out

    def _count(self, batch: ForwardBatch, which: int, *buffers: Tensor) -> int:
        """How many tokens or rows of logits the step has; every buffer has as many rows, here and whole."""
        assert self.device.type == "cpu" or batch.host is not None, (
            "a card's batch has its numbers on the host"
        )
        count = int((batch.host or batch).counts[which])
        check_buffers(count, self.device, *buffers)
        return count
