"""One token's work between the matrices: norms, and queries, keys and values on their way into pages.

A program takes a row, or some heads of one, and computes in float32. Rows beyond a step's tokens, which a
recorded step has, are computed as well where that changes nothing else; keys and values of none are written.
Words: E the width of a row, D values a head, R2 pairs of a head that are turned (kernels/ops.py).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops import ForwardBatch, KVLayer, Norm, Rope
from .targets import EVERYWHERE, FP8, Shipped

HEADS_AT_ONCE = 8  # of a token, in one program of `_rope_write`
LARGEST = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}  # what the largest key of a token is scaled to


@triton.jit
def _norm(X, ROWS, GAIN, OUT, eps, scale, E, EP: tl.constexpr, PICK: tl.constexpr, ADD: tl.constexpr):
    """OUT[r] = norm(X[r]), of row ROWS[r] where PICK; or, where ADD, OUT[r] += scale * norm(X[r])."""
    out = tl.program_id(0).to(tl.int64)
    row = out
    if PICK:
        row = tl.load(ROWS + out)
    i = tl.arange(0, EP)
    inside = i < E
    x = tl.load(X + row * E + i, mask=inside, other=0.0).to(tl.float32)
    x = x * (1.0 / tl.sqrt(tl.sum(x * x, 0) / E + eps)) * tl.load(GAIN + i, mask=inside, other=0.0)
    if ADD:
        x = tl.load(OUT + out * E + i, mask=inside, other=0.0) + scale * x
    tl.store(OUT + out * E + i, x.to(OUT.dtype.element_ty), mask=inside)


@triton.jit
def activate(x, GELU: tl.constexpr):
    """silu, or GELU in its tanh form: x / (1 + exp(-2 z)) both, as (1 + tanh z) / 2 is such a quotient."""
    z = x * 0.5
    if GELU:
        z = 0.7978845608028654 * x * (1.0 + 0.044715 * x * x)
    return x / (1.0 + tl.exp(-2.0 * z))


@triton.jit
def _rstd(row, squares, eps, D: tl.constexpr, ALL: tl.constexpr, AP: tl.constexpr):
    """1 / root mean square [heads or 1, 1]: of each head by itself, whose squares are summed already, or of
    ALL values that begin at `row`.
    """
    if ALL:
        i = tl.arange(0, AP)
        x = tl.load(row + i, mask=i < ALL, other=0.0).to(tl.float32)
        rstd = 1.0 / tl.sqrt(tl.sum(x * x, 0, keep_dims=True) / ALL + eps)
    else:
        rstd = 1.0 / tl.sqrt(squares / D + eps)
    return rstd[:, None]


@triton.jit
def _scaled(first, second, third, rstd, gain, i, rest, pairs, others, R2: tl.constexpr):
    """The three runs of heads times rstd and their gains."""
    first *= rstd * tl.load(gain + i[None], mask=pairs, other=0.0)
    second *= rstd * tl.load(gain + R2 + i[None], mask=pairs, other=0.0)
    third *= rstd * tl.load(gain + rest[None], mask=others, other=0.0)
    return first, second, third


@triton.jit
def _fitted(x, scale, LARGEST: tl.constexpr, POOL):
    """x [heads, n] over its head's scale, in the pool's range; whole numbers, ties to even, for integers."""
    x = x / scale.to(tl.float32)[:, None]
    x = tl.minimum(tl.maximum(x, -LARGEST), LARGEST)
    if POOL.dtype.element_ty == tl.int8:
        x = (x + 12582912.0) - 12582912.0  # 1.5 * 2^23: a float that large has no place for fractions
    return x


@triton.jit
def _rope_write(
    QKV, Q, POOL, SCALES, COUNTS, POSITIONS, SLOTS, COS, SIN, Q_GAIN, K_GAIN, V_GAIN, q_eps, k_eps,
    v_eps, block_stride, kind_stride, head_stride, scale_block_stride, scale_kind_stride,
    H: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, R2: tl.constexpr,
    PAIRS: tl.constexpr, REST: tl.constexpr, HB: tl.constexpr,
    Q_NORM: tl.constexpr, K_NORM: tl.constexpr, V_NORM: tl.constexpr, QP: tl.constexpr, KP: tl.constexpr,
    LARGEST: tl.constexpr,
):  # fmt: skip
    """Grid (token, groups of HB heads: first those of queries, then of keys, then of values).

    A head is three runs: R2 values, the R2 that turn with them, and the rest; PAIRS and REST are these
    lengths as powers of two. Q_NORM, K_NORM: 0 none, 1 each head, 2 all heads together; V_NORM: 0 or 1. KV 0:
    rows have queries alone.
    """
    t = tl.program_id(0).to(tl.int64)
    if t >= tl.load(COUNTS):
        return
    group = tl.program_id(1)
    NQ: tl.constexpr = (H + HB - 1) // HB
    NK: tl.constexpr = (KV + HB - 1) // HB
    is_q, is_v = group < NQ, group >= NQ + NK
    start = tl.where(is_q, 0, tl.where(is_v, H + KV, H))  # the first head of its kind
    count = tl.where(is_q, H, KV)
    head = (group - tl.where(is_q, 0, tl.where(is_v, NQ + NK, NQ))) * HB + tl.arange(0, HB)
    row = QKV + t * ((H + 2 * KV) * D) + start * D
    there = (head < count)[:, None]
    i, rest = tl.arange(0, PAIRS), 2 * R2 + tl.arange(0, REST)
    pairs, others = there & (i < R2)[None], there & (rest < D)[None]
    at = row + head[:, None] * D
    first = tl.load(at + i[None], mask=pairs, other=0.0).to(tl.float32)
    second = tl.load(at + R2 + i[None], mask=pairs, other=0.0).to(tl.float32)
    third = tl.load(at + rest[None], mask=others, other=0.0).to(tl.float32)
    squares = tl.sum(first * first, 1) + tl.sum(second * second, 1) + tl.sum(third * third, 1)
    if is_q:
        if Q_NORM:
            rstd = _rstd(row, squares, q_eps, D, H * D if Q_NORM == 2 else 0, QP)
            gain = Q_GAIN + (head[:, None] * D if Q_NORM == 2 else 0)
            first, second, third = _scaled(first, second, third, rstd, gain, i, rest, pairs, others, R2)
    elif not is_v:
        if K_NORM:
            rstd = _rstd(row, squares, k_eps, D, KV * D if K_NORM == 2 else 0, KP)
            gain = K_GAIN + (head[:, None] * D if K_NORM == 2 else 0)
            first, second, third = _scaled(first, second, third, rstd, gain, i, rest, pairs, others, R2)
    elif V_NORM:
        rstd = _rstd(row, squares, v_eps, D, 0, KP)
        first, second, third = _scaled(first, second, third, rstd, V_GAIN, i, rest, pairs, others, R2)
    if not is_v:
        turn = tl.load(POSITIONS + t) * R2 + i
        cos, sin = tl.load(COS + turn, mask=i < R2)[None], tl.load(SIN + turn, mask=i < R2)[None]
        first, second = first * cos - second * sin, second * cos + first * sin
    if is_q:
        into = Q + t * (H * D) + head[:, None] * D
        tl.store(into + i[None], first.to(Q.dtype.element_ty), mask=pairs)
        tl.store(into + R2 + i[None], second.to(Q.dtype.element_ty), mask=pairs)
        tl.store(into + rest[None], third.to(Q.dtype.element_ty), mask=others)
    else:
        slot = tl.load(SLOTS + t)
        block, place = slot // BLOCK, slot % BLOCK
        which = tl.where(is_v, 1, 0)
        if LARGEST > 0:
            peak = tl.maximum(tl.max(tl.abs(first), 1), tl.max(tl.abs(second), 1))
            scale = (tl.maximum(peak, tl.max(tl.abs(third), 1)) / LARGEST).to(tl.float16)
            scale = tl.maximum(scale, 6e-8)  # the least above 0
            where = SCALES + block * scale_block_stride + which * scale_kind_stride + head * BLOCK + place
            tl.store(where, scale, mask=head < count)
            first, second = _fitted(first, scale, LARGEST, POOL), _fitted(second, scale, LARGEST, POOL)
            third = _fitted(third, scale, LARGEST, POOL)
        page = POOL + block * block_stride + which * kind_stride + head[:, None] * head_stride + place * D
        tl.store(page + i[None], first.to(POOL.dtype.element_ty), mask=pairs)
        tl.store(page + R2 + i[None], second.to(POOL.dtype.element_ty), mask=pairs)
        tl.store(page + rest[None], third.to(POOL.dtype.element_ty), mask=others)


def rms_norm(x: Tensor, norm: Norm, out: Tensor, rows: Tensor | None = None) -> None:
    """out[r] = norm(x[r]) for all rows of `out`, or norm(x[rows[r]])."""
    width = x.shape[1]
    picked, padded = rows is not None, triton.next_power_of_2(width)
    _norm[(len(out),)](
        x, rows if picked else x, norm.gain, out, norm.eps, 1.0, width,
        EP=padded, PICK=picked, ADD=False, num_warps=_warps(padded),
    )  # fmt: skip


def add_normed(x: Tensor, norm: Norm, hidden: Tensor, scale: float) -> None:
    """hidden[r] += scale * norm(x[r]) for all rows of x."""
    width = x.shape[1]
    padded = triton.next_power_of_2(width)
    _norm[(len(x),)](
        x, x, norm.gain, hidden, norm.eps, scale, width,
        EP=padded, PICK=False, ADD=True, num_warps=_warps(padded),
    )  # fmt: skip


def rope_write(
    batch: ForwardBatch,
    qkv: Tensor,
    rope: Rope,
    kv: KVLayer,
    q: Tensor,
    q_norm: Norm | None,
    k_norm: Norm | None,
    v_norm: Norm | None = None,
) -> None:
    """See Ops.rope_write; for all rows of qkv that are tokens of the step."""
    pool = kv.pool[:, kv.layer]
    scales = pool if kv.scales is None else kv.scales[:, kv.layer]
    pairs = rope.cos.shape[1]
    heads, dim = kv.num_heads, kv.head_dim
    kv_heads = (qkv.shape[1] // dim - heads) // 2
    groups = triton.cdiv(heads, HEADS_AT_ONCE) + 2 * triton.cdiv(kv_heads, HEADS_AT_ONCE)
    _rope_write[(len(qkv), groups)](
        qkv, q, pool, scales, batch.counts, batch.positions, batch.slots[kv.kind], rope.cos, rope.sin,
        *(norm.gain if norm else qkv for norm in (q_norm, k_norm, v_norm)),
        *(norm.eps if norm else 0.0 for norm in (q_norm, k_norm, v_norm)),
        pool.stride(0), pool.stride(1), pool.stride(2), scales.stride(0), scales.stride(1),
        H=heads, KV=kv_heads, D=dim, BLOCK=kv.block_size, R2=pairs,
        PAIRS=triton.next_power_of_2(pairs or 1), REST=triton.next_power_of_2(dim - 2 * pairs or 1),
        HB=HEADS_AT_ONCE, Q_NORM=_reach(q_norm, dim), K_NORM=_reach(k_norm, dim), V_NORM=_reach(v_norm, dim),
        QP=triton.next_power_of_2(heads * dim), KP=triton.next_power_of_2(kv_heads * dim or 1),
        LARGEST=0.0 if kv.scales is None else LARGEST[kv.pool.dtype], num_warps=2,
    )  # fmt: skip


def _reach(norm: Norm | None, dim: int) -> int:
    """What a gain normalizes: 0 nothing, 1 a head, 2 a token's heads together."""
    return 0 if norm is None else 1 if len(norm.gain) == dim else 2


def _warps(width: int) -> int:
    """Sixteen values or more for a thread, at most 8 warps."""
    return min(8, max(1, width // 512))


def _norm_shipped(name: str, width: int, into: str, **flags: bool) -> Shipped:
    return Shipped(
        f"{name} {width}", _norm,
        {"X": "*fp32", "ROWS": "*i64", "GAIN": "*fp32", "OUT": f"*{into}", "eps": "fp32", "scale": "fp32",
         "E": "i32"},
        {"EP": triton.next_power_of_2(width), "PICK": False, "ADD": False, **flags},
        aligned=("E",), warps=_warps(triton.next_power_of_2(width)),
    )  # fmt: skip


def _rope_shipped(name: str, kv_type: str, targets: tuple[str, ...] = EVERYWHERE, **more: float) -> Shipped:
    """An 8B model's heads: 32 of queries, 8 of keys, 128 values each, in blocks of 64."""
    pointers = {
        **dict.fromkeys(("QKV", "COS", "SIN", "Q_GAIN", "K_GAIN", "V_GAIN"), "*fp32"),
        **dict.fromkeys(("COUNTS", "POSITIONS", "SLOTS"), "*i64"),
        **{"Q": "*bf16", "POOL": f"*{kv_type}", "SCALES": "*fp16"},
    }
    strides = ("block_stride", "kind_stride", "head_stride", "scale_block_stride", "scale_kind_stride")
    flags = {"Q_NORM": 0, "K_NORM": 0, "V_NORM": 0, "QP": 4096, "KP": 1024, "LARGEST": 0.0, **more}
    return Shipped(
        name, _rope_write,
        {**pointers, **dict.fromkeys(("q_eps", "k_eps", "v_eps"), "fp32"), **dict.fromkeys(strides, "i32")},
        {"H": 32, "KV": 8, "D": 128, "BLOCK": 64, "R2": 64, "PAIRS": 64, "REST": 1, "HB": HEADS_AT_ONCE,
         **flags},
        targets, aligned=strides, warps=2, spills={"sm_100": 3} if flags["Q_NORM"] == 2 else {},
    )  # fmt: skip


SHIPPED = (
    _norm_shipped("norm", 4096, "bf16"),
    _norm_shipped("norm picked", 4096, "bf16", PICK=True),
    _norm_shipped("norm added", 3072, "fp32", ADD=True),
    _norm_shipped("norm", 8192, "fp16"),
    _rope_shipped("rope bf16", "bf16"),
    _rope_shipped("rope bf16 head norms", "bf16", Q_NORM=1, K_NORM=1),
    _rope_shipped("rope bf16 value norms", "bf16", Q_NORM=1, K_NORM=1, V_NORM=1),
    _rope_shipped("rope bf16 token norms", "bf16", Q_NORM=2, K_NORM=2),
    _rope_shipped("rope int8", "i8", LARGEST=127.0),
    _rope_shipped("rope fp8", "fp8e4nv", FP8, LARGEST=448.0),
)  # fmt: skip
