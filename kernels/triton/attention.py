"""Attention over pages: one kernel for a token that is answered and for thousands of a prompt, old or new.

A program owns BM rows of one sequence and one head of keys; a row is (new token, query head that looks at
those keys), so that heads that share keys share their loads. It walks the context in tiles of BN tokens. For
answers the context is split among programs and the last to arrive merges their parts (`plan_splits`). Where
tl.dot has no matrix units behind it (Target.matrix) scores are sums of products. Scores are logarithms to
base 2. Knows nothing of sequences beyond their lengths and block tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..ops import ForwardBatch, KVLayer
from .attention_tiles import ANSWERS, PROMPTS, Shapes, Tiles
from .targets import FP8, TARGETS, Shipped, Target

ANSWER_TOKENS = 8  # a sequence with at most so many new tokens, drafts among them, is answering
MOST_SPLITS = 32
LEAST = tl.constexpr(-1e30)  # a score that no token has
LOG2_E = tl.constexpr(1.4426950408889634)
RAISED = tl.constexpr(256.0)  # weights times scales of values would lose digits in float16
PAIRS = {torch.int8: 1, torch.float8_e4m3fn: 2}


@triton.jit
def _place(TABLE, j, end, BLOCK: tl.constexpr, BN: tl.constexpr):
    """The block ids of the tile that begins at j: one, where a block holds whole tiles, else BN."""
    if BLOCK % BN == 0:
        return tl.load(TABLE + j // BLOCK, mask=j < end, other=0)
    else:
        t = j + tl.arange(0, BN)
        return tl.load(TABLE + t // BLOCK, mask=t < end, other=0)


@triton.jit
def _values(at, there, d, D: tl.constexpr, DP: tl.constexpr, MASKED: tl.constexpr):
    """Keys or values of a tile [BN, DP]; 0 for tokens that no row sees: what lies there may be no number."""
    if MASKED:
        if D == DP:
            return tl.load(at, mask=there[:, None], other=0.0)
        else:
            return tl.load(at, mask=there[:, None] & (d < D)[None], other=0.0)
    else:
        if D == DP:
            return tl.load(at)
        else:
            return tl.load(at, mask=(d < D)[None], other=0.0)


@triton.jit
def _low(pair, E4M3: tl.constexpr):
    """The first of two numbers of 8 bits, as float16 by its bits: 0x6400 + n is 1024 + n; and e4m3 shifted
    into the middle of a float16 is 1/256 of itself. Conversions would cost several times more.
    """
    if E4M3:
        bits = ((pair & 0x80) << 8) | ((pair & 0x7F) << 7)
        return bits.to(tl.float16, bitcast=True)
    else:
        bits = ((pair & 0xFF) ^ 0x80) | 0x6400
        return bits.to(tl.float16, bitcast=True) - 1152.0


@triton.jit
def _high(pair, E4M3: tl.constexpr):
    """The second of two."""
    if E4M3:
        return ((pair & 0x8000) | ((pair & 0x7F00) >> 1)).to(tl.float16, bitcast=True)
    else:
        return _low(pair >> 8, False)


@triton.jit
def _tile(
    q, q1, acc, acc1, peak, mass, block, j, low, end, POOL, SCALES, pos, scale, soft_cap, window,
    block_stride, kind_stride, scale_block_stride, scale_kind_stride,
    W: tl.constexpr, WP: tl.constexpr, BLOCK: tl.constexpr, BN: tl.constexpr, CAPPED: tl.constexpr,
    WINDOW: tl.constexpr, PAIRS: tl.constexpr, MATRIX: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """What BN tokens add to the weighted sum of values `acc` [BM, WP], its `mass` and the `peak` of scores.

    W: what is loaded of a head, in units of the pool. PAIRS: units are two numbers of 8 bits, so that q and
    acc are those of even places, q1 and acc1 those of odd.
    """
    n, d = tl.arange(0, BN), tl.arange(0, WP)
    t = j + n
    if BLOCK % BN == 0:
        n += j % BLOCK
        at = POOL + block * block_stride + n[:, None] * W + d[None]
    else:
        n = t % BLOCK
        at = POOL + (block * block_stride + n * W)[:, None] + d[None]
    there = t < end
    if WINDOW:
        there = there & (t >= low)
    k = _values(at, there, d, W, WP, MASKED)
    scales = SCALES + block * scale_block_stride + n
    if PAIRS > 0:
        s = tl.dot(q, tl.trans(_low(k, PAIRS == 2)))
        s = tl.dot(q1, tl.trans(_high(k, PAIRS == 2)), s)
        s *= scale * tl.load(scales, mask=there, other=0.0).to(tl.float32)[None]
        if PAIRS == 2:
            s *= 256.0  # see _low
    elif MATRIX:
        s = tl.dot(q, tl.trans(k.to(q.dtype)), input_precision="ieee") * scale
    else:
        s = tl.sum(q.to(tl.float32)[:, None, :] * k.to(tl.float32)[None], 2) * scale
    if CAPPED:
        s = soft_cap * (1.0 - 2.0 / (tl.exp2(s * (2.0 * LOG2_E / soft_cap)) + 1.0))  # cap * tanh(s / cap)
        s *= LOG2_E
    if MASKED:
        seen = (t[None] <= pos[:, None]) & there[None]
        if WINDOW:
            seen = seen & (t[None] > pos[:, None] - window)
        s = tl.where(seen, s, LEAST)
    top = tl.maximum(peak, tl.max(s, 1))
    p = tl.exp2(s - top[:, None])
    if MASKED:
        p = tl.where(seen, p, 0.0)
    shrunk = tl.exp2(peak - top)
    mass = mass * shrunk + tl.sum(p, 1)
    v = _values(at + kind_stride, there, d, W, WP, MASKED)
    acc *= shrunk[:, None]
    if PAIRS > 0:
        p *= tl.load(scales + scale_kind_stride, mask=there, other=0.0).to(tl.float32)[None] * RAISED
        p = p.to(tl.float16)
        acc = tl.dot(p, _low(v, PAIRS == 2), acc)
        acc1 = tl.dot(p, _high(v, PAIRS == 2), acc1 * shrunk[:, None])
    elif MATRIX:
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc, input_precision="ieee")
    else:
        acc += tl.sum(p[:, :, None] * v.to(tl.float32)[None], 1)
    return acc, acc1, top, mass


@triton.jit
def _merge(PARTS, MASSES, splits, BM: tl.constexpr, DP: tl.constexpr):
    """The weighted mean of parts [splits, BM, DP], each of which stands for a logarithm of mass [splits, BM].
    They come from other processors' caches: nothing is read from this one's.
    """
    r, d = tl.arange(0, BM), tl.arange(0, DP)
    acc, peak, mass = (
        tl.zeros([BM, DP], tl.float32),
        tl.full([BM], LEAST, tl.float32),
        tl.zeros([BM], tl.float32),
    )
    for i in range(0, splits):
        one = tl.load(MASSES + i * BM + r, cache_modifier=".cg")
        part = tl.load(PARTS + i * BM * DP + r[:, None] * DP + d[None], cache_modifier=".cg")
        top = tl.maximum(peak, one)
        weight, shrunk = tl.exp2(one - top), tl.exp2(peak - top)
        acc, mass, peak = acc * shrunk[:, None] + part * weight[:, None], mass * shrunk + weight, top
    return acc / mass[:, None]


@triton.jit
def _attend(
    Q, POOL, SCALES, SINKS, OUT, PARTS, MASSES, ARRIVED, COUNTS, CU_LENS, CONTEXT_LENS, TABLES,
    scale, soft_cap, window, least, most, splits, table_stride,
    block_stride, kind_stride, head_stride, scale_block_stride, scale_kind_stride, scale_head_stride,
    H: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BLOCK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, SPLIT: tl.constexpr, CAPPED: tl.constexpr, WINDOW: tl.constexpr,
    SINKED: tl.constexpr, PAIRS: tl.constexpr, MATRIX: tl.constexpr,
):  # fmt: skip
    """Grid (tiles of rows, heads of keys, sequences * splits), for sequences of `least` to `most` new tokens.

    PAIRS: the pool's numbers have 8 bits and scales of their own; 1: integers, 2: e4m3.
    """
    G: tl.constexpr = H // KV
    W: tl.constexpr = D // 2 if PAIRS > 0 else D
    WP: tl.constexpr = DP // 2 if PAIRS > 0 else DP
    tile = tl.num_programs(0) - 1 - tl.program_id(0)  # those with most to read begin
    head = tl.program_id(1)
    seq, split = tl.program_id(2) // splits, tl.program_id(2) % splits
    if seq >= tl.load(COUNTS + 1):
        return
    start = tl.load(CU_LENS + seq)
    count = (tl.load(CU_LENS + seq + 1) - start).to(tl.int32)
    if (count < least) | (count > most) | (tile * BM >= count * G):
        return
    length = tl.load(CONTEXT_LENS + seq).to(tl.int32)
    r, d = tile * BM + tl.arange(0, BM), tl.arange(0, DP)
    pos = length - count + r // G
    rows = (r // G < count)[:, None] & (d < D)[None]
    h = head * G + r % G
    at = (start + r // G)[:, None] * (H * D) + h[:, None] * D + d[None]
    # What the tile sees: tokens up to the last row's; those before `open` every row sees.
    end = tl.minimum(length - count + (tile * BM + BM - 1) // G, length - 1) + 1
    open = length - count + tile * BM // G + 1
    low = 0
    if WINDOW:
        low = tl.maximum(open - window, 0)
        open = 0
    first = low // BN * BN
    share = tl.cdiv(tl.cdiv(end - first, BN), splits)
    begin = first + split * share * BN
    if begin >= end:
        return
    stop = tl.minimum(begin + share * BN, end)
    q = tl.load(Q + at, mask=rows, other=0.0)
    acc, peak, mass = (
        tl.zeros([BM, WP], tl.float32),
        tl.full([BM], LEAST, tl.float32),
        tl.zeros([BM], tl.float32),
    )
    q1, acc1 = q, acc
    if PAIRS > 0:
        q, q1 = tl.split(tl.reshape(q.to(tl.float16), [BM, WP, 2]))
    if SINKED:  # noqa: SIM102 - one is known to the compiler
        if split == 0:
            peak = tl.load(SINKS + h) * LOG2_E
            mass += 1.0
    KEYS, TABLE = POOL + head * head_stride, TABLES + seq * table_stride
    SCALE = SCALES + head * scale_head_stride
    if not CAPPED:
        scale *= LOG2_E
    # The next tile's block is looked up a turn ahead: else its keys' addresses would hang on a load of the
    # same turn, and Triton would prefetch half as deep.
    block = _place(TABLE, begin, stop, BLOCK, BN)
    middle = begin + tl.maximum(tl.minimum(stop, open) - begin, 0) // BN * BN
    for j in range(begin, middle, BN):
        ahead = _place(TABLE, j + BN, stop, BLOCK, BN)
        acc, acc1, peak, mass = _tile(
            q, q1, acc, acc1, peak, mass, block, j, low, stop, KEYS, SCALE, pos, scale, soft_cap, window,
            block_stride, kind_stride, scale_block_stride, scale_kind_stride,
            W, WP, BLOCK, BN, CAPPED, WINDOW, PAIRS, MATRIX, False,
        )  # fmt: skip
        block = ahead
    for j in range(middle, stop, BN):
        ahead = _place(TABLE, j + BN, stop, BLOCK, BN)
        acc, acc1, peak, mass = _tile(
            q, q1, acc, acc1, peak, mass, block, j, low, stop, KEYS, SCALE, pos, scale, soft_cap, window,
            block_stride, kind_stride, scale_block_stride, scale_kind_stride,
            W, WP, BLOCK, BN, CAPPED, WINDOW, PAIRS, MATRIX, True,
        )  # fmt: skip
        block = ahead
    if PAIRS > 0:
        acc = tl.interleave(acc, acc1)
        if PAIRS == 1:  # e4m3 comes 256 times too small
            acc /= RAISED
    acc = acc / tl.where(mass > 0, mass, 1.0)[:, None]
    if SPLIT:
        used = tl.cdiv(tl.cdiv(end - first, BN), share)
        place = (seq * tl.num_programs(1) + head) * tl.num_programs(0) + tile
        parts = PARTS + place.to(tl.int64) * splits * (BM * DP)
        masses = MASSES + place.to(tl.int64) * splits * BM
        if used > 1:
            i = tl.arange(0, BM)
            tl.store(parts + split * (BM * DP) + i[:, None] * DP + d[None], acc)
            tl.store(masses + split * BM + i, tl.where(mass > 0, peak + tl.log2(mass), LEAST))
            tl.debug_barrier()  # all threads have stored before one of them says so
            if tl.atomic_add(ARRIVED + place, 1, sem="acq_rel", scope="gpu") < used - 1:
                return
            tl.store(ARRIVED + place, 0)  # for the next launch
            acc = _merge(parts, masses, used, BM, DP)
    tl.store(OUT + at, acc.to(OUT.dtype.element_ty), mask=rows)


@dataclass(slots=True)
class Workspace:
    """What launches share on one device: counters of arrived splits, all zero between launches."""

    device: torch.device
    cores: int  # multiprocessors
    arrived: Tensor
    outgrown: list[Tensor] = field(default_factory=list)  # records go on to use what they were made with

    @staticmethod
    def of(device: torch.device) -> Workspace:
        cores = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
        return Workspace(device, cores, torch.zeros(4096, dtype=torch.int32, device=device))

    def counters(self, num: int) -> Tensor:
        """That many. They grow when a step is first computed, before it is recorded."""
        if num > len(self.arrived):
            self.outgrown.append(self.arrived)
            self.arrived = torch.zeros(2 * num, dtype=torch.int32, device=self.device)
        return self.arrived


def plan_splits(programs: int, tiles: int, cores: int) -> int:
    """Among how many programs each context is split.

    The cost, in tiles, as FlashInfer counts it for XQA: every wave of programs takes the tiles of one and
    about 10 more, merging 0.22 for each part. Two programs run on a core at a time.
    """
    choices = [n for n in (1, 2, 4, 8, 16, 32) if n <= max(1, tiles)]
    return min(choices, key=lambda n: -(-programs * n // (2 * cores)) * (tiles / n + 10) + 0.22 * n)


def attention(
    batch: ForwardBatch, q: Tensor, kv: KVLayer, out: Tensor, target: Target, work: Workspace, splits: int = 0
) -> None:
    """See Ops.attention. `splits` 0: as planned. Sequences that answer and prompts are two launches; prompts
    are left out where a target has no tiles for them.
    """
    host = batch.host or batch
    lens = host.cu_lens[: int(host.counts[1]) + 1].diff()
    is_8bit = kv.scales is not None
    for tiles, least, most in (
        (ANSWERS[target.name], 1, ANSWER_TOKENS),
        (PROMPTS.get(target.name), ANSWER_TOKENS + 1, 2**30),
    ):
        chosen = lens[(lens >= least) & (lens <= most)]
        if tiles and len(chosen):
            _launch(
                batch, q, kv, out, work, tiles.of(kv.head_dim, is_8bit), target.matrix,
                (least, most), int(chosen.max()), len(lens), splits if least == 1 else 1,
            )  # fmt: skip


def _launch(
    batch: ForwardBatch,
    q: Tensor,
    kv: KVLayer,
    out: Tensor,
    work: Workspace,
    tiles: Tiles,
    matrix: bool,
    which: tuple[int, int],
    longest: int,
    num_seqs: int,
    splits: int,
) -> None:
    """One launch over sequences whose new tokens number between the two of `which`."""
    heads, kv_heads, dim = kv.num_heads, kv.num_kv_heads, kv.head_dim
    table, pool = batch.block_tables[kv.kind], kv.pool[:, kv.layer]
    grid = [triton.cdiv(longest * (heads // kv_heads), tiles.rows), kv_heads, num_seqs]
    programs = grid[0] * grid[1] * grid[2]
    if not splits:
        context = table.shape[1] * kv.block_size
        context = min(context, kv.window + ANSWER_TOKENS) if kv.window else context
        splits = plan_splits(programs, triton.cdiv(context, tiles.tokens), work.cores)
    padded = triton.next_power_of_2(dim)
    parts = masses = arrived = q
    if splits > 1:
        arrived = work.counters(programs)
        parts, masses = (
            torch.empty(programs * splits * tiles.rows * n, device=q.device) for n in (padded, 1)
        )
    scales = pool
    if kv.scales is not None:
        scales, pool = kv.scales[:, kv.layer], pool.view(torch.uint16)
    _attend[(grid[0], grid[1], grid[2] * splits)](
        q, pool, scales, q if kv.sinks is None else kv.sinks, out, parts, masses, arrived,
        batch.counts, batch.cu_lens, batch.context_lens, table,
        kv.score_scale, kv.soft_cap, kv.window, *which, splits, table.stride(0),
        *pool.stride()[:3], *scales.stride()[:3],
        H=heads, KV=kv_heads, D=dim, DP=padded, BLOCK=kv.block_size, BM=tiles.rows, BN=tiles.tokens,
        SPLIT=splits > 1, CAPPED=kv.soft_cap > 0, WINDOW=kv.window > 0, SINKED=kv.sinks is not None,
        PAIRS=PAIRS[kv.pool.dtype] if kv.scales is not None else 0, MATRIX=matrix,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip


def _shipped(
    name: str, dim: int, tiles: Mapping[str, Shapes], pool: str = "", more: Mapping[str, object] = {}
) -> list[Shipped]:
    """One entry for each shape of tiles: 32 heads over 8, in blocks of 64."""
    entries: dict[tuple[Tiles, str], list[str]] = {}
    for target, shapes in tiles.items():
        if target in TARGETS and not (pool and not TARGETS[target].matrix):
            plain = "bf16" if TARGETS[target].bf16 else "fp16"
            entries.setdefault((shapes.of(dim, bool(pool)), plain), []).append(target)
    return [
        _entry(f"{name} d{dim}", dim, t, plain, pool, targets, more)
        for (t, plain), targets in entries.items()
    ]


def _entry(
    name: str, dim: int, tiles: Tiles, plain: str, pool: str, targets: list[str], more: Mapping[str, object]
) -> Shipped:
    strides = [f"{of}{name}_stride" for of in ("", "scale_") for name in ("block", "kind", "head")]
    signature = {
        **dict.fromkeys(("Q", "OUT"), f"*{plain}"),
        **dict.fromkeys(("PARTS", "MASSES", "SINKS"), "*fp32"),
        **dict.fromkeys(("COUNTS", "CU_LENS", "CONTEXT_LENS", "TABLES"), "*i64"),
        **{"POOL": "*u16" if pool else f"*{plain}", "SCALES": "*fp16", "ARRIVED": "*i32"},
        **{"scale": "fp32", "soft_cap": "fp32"},
        **dict.fromkeys(("window", "least", "most", "splits", "table_stride", *strides), "i32"),
    }
    pairs = {"": 0, "int8": 1, "e4m3": 2}[pool]
    constexprs = {
        **{"H": 32, "KV": 8, "D": dim, "DP": triton.next_power_of_2(dim), "BLOCK": 64},
        **{"BM": tiles.rows, "BN": tiles.tokens, "SPLIT": False, "CAPPED": False, "WINDOW": False},
        **{"SINKED": False, "PAIRS": pairs, "MATRIX": tiles.rows >= 16, **more},
    }
    shape = f"{tiles.rows}x{tiles.tokens} {tiles.warps}w{tiles.stages}"
    return Shipped(
        f"{name} {pool or plain} {shape}", _attend, signature, constexprs,
        tuple(targets), tuple(strides), tiles.warps, tiles.stages,
        matrix="half" if tiles.rows >= 16 else "",
        loop_units=tiles.tokens * dim * (2 if pool else 4),
        # heads of 512 do not fit gfx1100, nor are blocks of 16 the default; two on sm_75 with Triton 3.6
        spills={"gfx1100": 140 if dim > 256 else 32 if "page 16" in name else 0, "sm_75": 2},
    )  # fmt: skip


_SPLIT: dict[str, object] = {"SPLIT": True}
_ALL = {**_SPLIT, "CAPPED": True, "WINDOW": True, "SINKED": True}
_WITH_FP8 = {name: shapes for name, shapes in ANSWERS.items() if name in FP8}
SHIPPED = (
    *_shipped("answer", 128, ANSWERS, "", _SPLIT),
    *_shipped("answer", 64, ANSWERS, "", _SPLIT),
    *_shipped("answer", 256, ANSWERS, "", _SPLIT),
    *_shipped("answer", 512, ANSWERS, "", _SPLIT),
    *_shipped("answer", 128, ANSWERS, "int8", _SPLIT),
    *_shipped("answer", 128, _WITH_FP8, "e4m3", _SPLIT),
    *_shipped("answer capped windowed sinks", 128, ANSWERS, "", _ALL),
    *_shipped("answer page 16", 128, ANSWERS, "", {**_SPLIT, "BLOCK": 16}),
    *_shipped("prompt", 128, PROMPTS),
    *_shipped("prompt", 64, PROMPTS),
    *_shipped("prompt", 96, PROMPTS),
    *_shipped("prompt", 256, PROMPTS),
    *_shipped("prompt", 512, PROMPTS),
    *_shipped("prompt", 128, PROMPTS, "int8"),
    *_shipped("prompt windowed", 256, PROMPTS, "", {"WINDOW": True}),
)
