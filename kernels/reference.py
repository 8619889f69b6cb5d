"""Every op in plain torch: the oracle of the other backends (in float64), the backend where no other runs.

Written to be read: weights are kept as true matrices, attention gathers a sequence's blocks and computes all
scores at once; nothing depends on what else is in the step but the order in which torch adds. Each (block,
layer, K or V, head) run of the pool is laid [block_size, D]. "Plain" values (residual stream, q/k/v, logits)
are at least float32; activations, keys and values have `dtype`. Knows nothing of sequences or models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, scaled_dot_product_attention, silu

from .ops import Activation, Experts, ForwardBatch, KVLayer, Norm, Rope, Storage
from .weights import Matrix, whole


def _clamped_swiglu(gate: Tensor, up: Tensor) -> Tensor:
    gate = gate.clamp(max=7)
    return gate * torch.sigmoid(1.702 * gate) * (up.clamp(-7, 7) + 1)


ACTIVATIONS: dict[Activation, Callable[[Tensor, Tensor], Tensor]] = {  # of a gate and what it lets through
    "silu": lambda gate, up: silu(gate) * up,
    "gelu_tanh": lambda gate, up: gelu(gate, approximate="tanh") * up,
    "clamped_swiglu": _clamped_swiglu,
}
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}  # of keys and values in 8 bits
LEAST_SCALE = 6e-8  # the least float16 above 0, as a row of zeros has


@dataclass(frozen=True, slots=True)
class Packed:
    """Stacked matrices, dequantized."""

    matrix: Tensor  # [N, K]
    bias: Tensor | None  # [N]
    split: int = 0  # rows of the gate when gated; the rest is `up`


class ReferenceOps:
    """kernels.ops.Ops in plain torch, on any device, in any float type."""

    name = "reference"
    block_size = 16
    storage: Storage | None = None
    records_by_size = False
    workspace_bytes = 0
    depth = 0

    def __init__(
        self, device: str = "cpu", dtype: torch.dtype = torch.float32, kv_dtype: torch.dtype | None = None
    ) -> None:
        self.device = torch.device(device)
        self.dtype = dtype
        self.kv_dtype = kv_dtype or dtype
        self.plain_dtype = torch.promote_types(dtype, torch.float32)

    def pack(self, weights: Sequence[Matrix], bias: Tensor | None = None, gated: bool = False) -> Packed:
        """See Ops.pack: dequantized once, computed with as they are."""
        assert not gated or len(weights) == 2, f"gated takes gate and up, not {len(weights)} matrices"
        matrix = torch.cat([whole(weight).dequantize(self.dtype) for weight in weights]).to(self.device)
        bias = None if bias is None else bias.to(self.device, self.dtype)
        return Packed(matrix, bias, weights[0].shape[0] if gated else 0)

    def activation(self, rows: int, width: int) -> Tensor:
        """Zeros [rows, width] in `dtype`."""
        return torch.zeros(rows, width, dtype=self.dtype, device=self.device)

    def hidden(self, rows: int, width: int) -> Tensor:
        """Zeros [rows, width], float32 or wider."""
        return torch.zeros(rows, width, dtype=self.plain_dtype, device=self.device)

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        """Nothing to take down: the calls are the record."""
        return forward

    def embed(self, batch: ForwardBatch, table: Packed, hidden: Tensor, scale: float = 1.0) -> None:
        """hidden[t] = scale * row token_ids[t] of the table."""
        tokens = _count(batch, 0)
        hidden[:tokens] = table.matrix[batch.token_ids[:tokens]].to(hidden.dtype) * scale

    def norm_linear(
        self, batch: ForwardBatch, hidden: Tensor, norm: Norm | None, weight: Packed, out: Tensor
    ) -> None:
        """out[t] = weight @ norm(hidden[t]) + bias."""
        tokens = _count(batch, 0)
        out[:tokens] = self._linear(_normalize(hidden[:tokens], norm), weight)

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
        """Turn queries into q, keys and values into their slots."""
        tokens = _count(batch, 0)
        heads = qkv[:tokens].unflatten(-1, (-1, kv.head_dim))  # [T, H + 2 KV, D]
        queries, positions = _normalize_heads(heads[:, : kv.num_heads], q_norm), batch.positions[:tokens]
        q[:tokens] = _rotate(queries, positions, rope).flatten(1).to(q.dtype)
        if heads.shape[1] == kv.num_heads:
            return
        keys, values = heads[:, kv.num_heads :].split(kv.num_kv_heads, 1)
        keys, values = _normalize_heads(keys, k_norm), _normalize_heads(values, v_norm)
        slots = batch.slots[kv.kind][:tokens]
        written = torch.stack([_rotate(keys, positions, rope), values], 1)  # [T, 2, KV, D]
        block, place = slots // kv.block_size, slots % kv.block_size
        if kv.scales is not None:
            written, scales = quantized(written, kv.pool.dtype)
            kv.scales[:, kv.layer][block, :, :, place] = scales
        _by_offset(kv)[block, :, :, place] = written.to(kv.pool.dtype)

    def attention(self, batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor) -> None:
        """out[t] = softmax(scale * q k) v over what t may see."""
        attend(batch, q, kv, out, self.plain_dtype)

    def linear_add(
        self,
        batch: ForwardBatch,
        x: Tensor,
        weight: Packed,
        hidden: Tensor,
        norm: Norm | None = None,
        scale: float = 1.0,
        keep: float = 1.0,
    ) -> None:
        """hidden[t] = keep * hidden[t] + scale * norm(weight @ x[t] + bias)."""
        product = self._linear(x[: _count(batch, 0)], weight)
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
        """hidden[t] = keep * hidden[t] + scale * norm(x[t])."""
        tokens = _count(batch, 0)
        runs = x[:tokens].unflatten(1, (-1, len(norm.gain) if norm else x.shape[1]))
        kept = keep * hidden[:tokens] if keep else 0.0
        hidden[:tokens] = kept + scale * _normalize(runs, norm).flatten(1)

    def norm_gated_linear(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        weight: Packed,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """out[t] = activation(gate @ n) * (up @ n), n = norm(hidden[t])."""
        tokens = _count(batch, 0)
        out[:tokens] = self._gated(_normalize(hidden[:tokens], norm), weight, activation).to(out.dtype)

    def gate(
        self,
        batch: ForwardBatch,
        x: Tensor,
        up: Tensor,
        out: Tensor,
        activation: Activation = "silu",
    ) -> None:
        """out[t] = activation(x[t]) * up[t]."""
        tokens = _count(batch, 0)
        out[:tokens] = ACTIVATIONS[activation](x[:tokens], up[:tokens]).to(out.dtype)

    def norm_experts_add(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm | None,
        experts: Experts,
        out: Tensor | None = None,
    ) -> None:
        """hidden[t] += sum of share_x * down_x @ (act(gate_x @ n) * (up_x @ n)), expert by expert."""
        residual = hidden[: _count(batch, 0)]
        x = _normalize(residual, norm).clone()
        asked = x if experts.router_norm is None else _normalize(residual, experts.router_norm)
        shares, chosen = self._linear(asked, experts.router).softmax(-1).topk(experts.top_k)  # [T, top_k]
        if experts.normalized:
            shares = shares / shares.sum(-1, keepdim=True)
        if experts.scales is not None:
            shares = shares * experts.scales.to(shares)[chosen]
        if out is not None:
            residual = out[: len(residual)].zero_()
        for expert, (gate_up, down) in enumerate(zip(experts.gate_up, experts.down, strict=True)):
            tokens, place = torch.where(chosen == expert)
            found = self._linear(self._gated(x[tokens], gate_up, experts.activation), down)
            residual[tokens] += shares[tokens, place, None] * found

    def logits(
        self,
        batch: ForwardBatch,
        hidden: Tensor,
        norm: Norm,
        weight: Packed,
        out: Tensor,
        soft_cap: float = 0.0,
    ) -> None:
        """out[r] = weight @ norm(hidden[logit_rows[r]]) + bias, capped."""
        rows = _count(batch, 2)
        found = self._linear(_normalize(hidden[batch.logit_rows[:rows]], norm), weight)
        out[:rows] = _capped(found, soft_cap)

    def sampler(self, rows: int, vocabulary: int, slots: int) -> None:
        """The host draws."""

    def scratch_bytes(self, heads: int, head_dim: int, tokens: int, positions: int, vocabulary: int) -> int:
        """Nothing is kept."""
        return 0

    def copy_blocks(self, pool: Tensor, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy whole blocks; all are read before any is written."""
        pool[list(target)] = pool[list(source)]

    def free_memory(self) -> None:
        """Nothing is hidden: all that is taken is in the plan."""

    def close(self) -> None:
        """No threads of its own."""

    def _linear(self, x: Tensor, weight: Packed) -> Tensor:
        """Multiplied in `dtype`, given back plain."""
        return linear(x.to(self.dtype), weight.matrix, weight.bias).to(self.plain_dtype)

    def _gated(self, x: Tensor, weight: Packed, activation: Activation) -> Tensor:
        """activation(gate @ x) * (up @ x)."""
        both = self._linear(x, weight)
        return ACTIVATIONS[activation](both[:, : weight.split], both[:, weight.split :])


def attend(
    batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor, dtype: torch.dtype, least: int = 1
) -> None:
    """out[t] = softmax(scale * q k) v over what t may see, computed in `dtype`, one sequence after the other:
    those with `least` new tokens or more.
    """
    host = batch.host or batch
    for s in range(int(host.counts[1])):
        start, end = int(host.cu_lens[s]), int(host.cu_lens[s + 1])
        if end - start < least:
            continue
        length = int(host.context_lens[s])
        first = length - (end - start)
        keys, values, places = _gather(kv, batch.block_tables[kv.kind][s], first, length, dtype)
        positions = torch.arange(first, length, device=q.device)[:, None]
        seen = places <= positions  # [t, n]
        if kv.window:
            seen &= places > positions - kv.window
        queries = q[start:end].unflatten(-1, (kv.num_heads, kv.head_dim)).to(dtype)  # [t, H, D]
        way = _fused if q.is_cuda and not kv.soft_cap and kv.sinks is None else _weighted
        out[start:end] = way(queries, keys, values, seen, kv).flatten(1).to(out.dtype)


def _weighted(queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, kv: KVLayer) -> Tensor:
    """[t, H, D] and [KV, n, D] -> [t, H, D], by its formula."""
    queries = queries.unflatten(1, (len(keys), -1))  # [t, KV, H / KV, D]
    scores = _capped(torch.einsum("tkgd,knd->kgtn", queries, keys) * kv.score_scale, kv.soft_cap)
    scores = scores.masked_fill(~seen, -torch.inf)
    if kv.sinks is not None:
        sinks = kv.sinks.to(scores).view(*scores.shape[:2], 1, 1)
        scores = torch.cat([scores, sinks.expand(*scores.shape[:3], 1)], -1)
    weights = scores.softmax(-1)[..., : len(seen[0])]
    return torch.einsum("kgtn,knd->tkgd", weights, values).flatten(1, 2)


def _fused(queries: Tensor, keys: Tensor, values: Tensor, seen: Tensor, kv: KVLayer) -> Tensor:
    """The same by torch's own attention, which keeps no scores."""
    q, k, v = queries.transpose(0, 1)[None], keys[None], values[None]
    found = scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=kv.score_scale, enable_gqa=True)
    return found[0].transpose(0, 1)


def _gather(
    kv: KVLayer, table: Tensor, first: int, length: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """A sequence's keys and values [KV, n, D], and the n places they have in it.

    Blocks that slid out of the first position's window are not read: they may belong to another by now.
    """
    skipped = max(0, first - kv.window + 1) // kv.block_size if kv.window else 0
    ids = table[skipped : -(-length // kv.block_size)]
    blocks = _by_offset(kv)[ids].to(dtype)  # [n, 2, KV, block_size, D]
    if kv.scales is not None:
        blocks *= kv.scales[:, kv.layer][ids][..., None].to(dtype)
    places = torch.arange(skipped * kv.block_size, length, device=table.device)
    keys, values = blocks.permute(1, 2, 0, 3, 4).flatten(2, 3)[:, :, : len(places)]
    return keys, values, places


def quantized(values: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """[..., D] as 8 bits each and a float16 scale for all: what the largest is over the largest there is."""
    largest = LARGEST[dtype]
    scales = (values.abs().amax(-1) / largest).to(torch.float16).clamp_min(LEAST_SCALE)
    fitted = (values / scales[..., None].to(values.dtype)).clamp(-largest, largest)
    return (fitted if dtype.is_floating_point else fitted.round()), scales


def _count(batch: ForwardBatch, which: int) -> int:
    """How many tokens, sequences or rows the step has."""
    return int((batch.host or batch).counts[which])


def _normalize(x: Tensor, norm: Norm | None) -> Tensor:
    """RMSNorm of the last dimension, if any."""
    if norm is None:
        return x
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + norm.eps) * norm.gain.to(x)


def _normalize_heads(heads: Tensor, norm: Norm | None) -> Tensor:
    """heads [T, H, D] normalized one by one, or all of a token's together: as the gain is long."""
    if norm is None or len(norm.gain) == heads.shape[-1]:
        return _normalize(heads, norm)
    return _normalize(heads.flatten(1), norm).view_as(heads)


def _capped(x: Tensor, cap: float) -> Tensor:
    """cap * tanh(x / cap); 0: as they are."""
    return cap * torch.tanh(x / cap) if cap else x


def _rotate(heads: Tensor, positions: Tensor, rope: Rope) -> Tensor:
    """heads [T, H, D] turned over their first 2 * R2 values; the rest passes."""
    cos, sin = (table[positions, None].to(heads) for table in (rope.cos, rope.sin))  # [T, 1, R2]
    half = cos.shape[-1]
    first, second, rest = heads.split((half, half, heads.shape[-1] - 2 * half), -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def _by_offset(kv: KVLayer) -> Tensor:
    """The layer's part of the pool as a view [blocks, 2, KV, block_size, D]."""
    return kv.pool[:, kv.layer].unflatten(-1, (kv.block_size, kv.head_dim))
