"""One matrix product for all formats: weights on the left, W @ x^T, so that a tile may have as few as 8 rows.

A program owns `BN` outputs of `BM` rows and walks the inputs in chunks of 64, each as two halves: take the
weights apart (int4.py, int8.py, fp8.py), multiply on matrix units, scale the sums. Where that would leave a
card idle, programs share a tile's inputs ("splits"); the last to come adds their sums in order, so that a
result has the same bits every time. The same kernel multiplies by experts: then a table says where each one's
matrices lie, and `ROUTE` how rows find theirs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .fp8 import small_float
from .int4 import less_zero
from .int8 import whole
from .rows import activate


@triton.jit
def scaled(
    raw, SCALE, OFFSET, COARSE, group, super_group, n, N, supers,
    MODE: tl.constexpr, ONCE: tl.constexpr, DT: tl.constexpr,
):  # fmt: skip
    """raw [rows, 32] times its group's scale plus its minimum, in DT: where both are needed."""
    scale, offset = tl.load(SCALE + group * N + n), tl.load(OFFSET + group * N + n)
    if MODE == "two_level":
        coarse = tl.load(COARSE + super_group * N + n).to(tl.float32)
        scale = scale.to(tl.float32) * coarse
        coarse = tl.load(COARSE + (supers + super_group) * N + n).to(tl.float32)
        offset = 0.0 - offset.to(tl.float32) * coarse
        if (
            ONCE
        ):  # what is not "pure" is not repeated: a thread computes one row's, not all that it multiplies with
            scale, offset = tl.inline_asm_elementwise(
                "mov.b32 $0, $2; mov.b32 $1, $3;", "=r,=r,r,r", [scale, offset],
                dtype=(tl.float32, tl.float32), is_pure=False, pack=1,
            )  # fmt: skip
    return raw * scale.to(DT)[:, None] + offset.to(DT)[:, None]


@triton.jit
def halves(
    W, SCALE, OFFSET, COARSE, at, n, N, k, supers, FORMAT: tl.constexpr, MODE: tl.constexpr,
    GROUP: tl.constexpr, ASM: tl.constexpr, ONCE: tl.constexpr, DT: tl.constexpr,
):  # fmt: skip
    """The 64 weights of rows n from input k on, [rows, 32] twice, in DT.

    `at` are the addresses of the rows' first 32 values. Modes "centred" and "zero" leave the scale to the
    sums.
    """
    first = k // GROUP if GROUP > 0 else 0
    second = first + 1 if GROUP == 32 else first
    if FORMAT == "dense":
        low, high = tl.load(at + k).to(DT), tl.load(at + k + 32).to(DT)
    elif FORMAT == "int8":
        low, high = whole(tl.load(at + k), DT, ASM), whole(tl.load(at + k + 32), DT, ASM)
    elif FORMAT == "fp8":
        low, high = small_float(tl.load(at + k), DT, ASM), small_float(tl.load(at + k + 32), DT, ASM)
    elif MODE == "centred":
        low, high = less_zero(tl.load(at + k // 2), 8.0, 8.0, DT, ASM)
    elif MODE == "zero":
        low_zero = tl.load(OFFSET + first * N + n).to(DT)[:, None]
        high_zero = low_zero
        if GROUP == 32:
            high_zero = tl.load(OFFSET + second * N + n).to(DT)[:, None]
        low, high = less_zero(tl.load(at + k // 2), low_zero, high_zero, DT, ASM)
    else:
        low, high = less_zero(tl.load(at + k // 2), 0.0, 0.0, DT, ASM)
    if MODE == "minimum" or MODE == "two_level":
        low = scaled(low, SCALE, OFFSET, COARSE, first, k // 256, n, N, supers, MODE, ONCE, DT)
        high = scaled(high, SCALE, OFFSET, COARSE, second, k // 256, n, N, supers, MODE, ONCE, DT)
    return low, high


@triton.jit
def add_chunk(
    sums, W, SCALE, OFFSET, COARSE, at, x_at, n, N, K, k, supers, FORMAT: tl.constexpr, MODE: tl.constexpr,
    GROUP: tl.constexpr, ASM: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """sums [outputs, rows] plus the products of the 64 inputs from k on."""
    DT: tl.constexpr = x_at.dtype.scalar.element_ty
    # "once" is more than the compiler can pipeline where it multiplies asynchronously, as in larger tiles
    ONCE: tl.constexpr = ASM and sums.shape[1] <= 32
    low, high = halves(W, SCALE, OFFSET, COARSE, at, n, N, k, supers, FORMAT, MODE, GROUP, ASM, ONCE, DT)
    if EVEN_K:
        x_low, x_high = tl.load(x_at + k), tl.load(x_at + k + 32)
    else:
        inputs = k + tl.arange(0, 32)[:, None]
        x_low = tl.load(x_at + k, mask=inputs < K, other=0.0)
        x_high = tl.load(x_at + k + 32, mask=inputs + 32 < K, other=0.0)
    SCALED: tl.constexpr = GROUP > 0 and (MODE == "centred" or MODE == "zero")
    if SCALED:
        first = tl.load(SCALE + k // GROUP * N + n).to(tl.float32)[:, None]
        if GROUP == 32:
            second = tl.load(SCALE + (k // GROUP + 1) * N + n).to(tl.float32)[:, None]
            sums += tl.dot(low, x_low, input_precision="ieee") * first
            sums += tl.dot(high, x_high, input_precision="ieee") * second
        else:
            product = tl.dot(low, x_low, input_precision="ieee")
            sums += tl.dot(high, x_high, product, input_precision="ieee") * first
    else:
        sums = tl.dot(low, x_low, sums, input_precision="ieee")
        sums = tl.dot(high, x_high, sums, input_precision="ieee")
    return sums


@triton.jit
def gated(gate, up, GATE: tl.constexpr):
    """kernels.ops.Activation of a gate, times what it lets through."""
    if GATE == "clamped_swiglu":
        gate = tl.minimum(gate, 7.0)
        return gate / (1.0 + tl.exp(-1.702 * gate)) * (tl.minimum(tl.maximum(up, -7.0), 7.0) + 1.0)
    else:
        return activate(gate, GATE == "gelu_tanh") * up


@triton.jit
def store_sums(
    sums, BIAS, OUT, first_output, out_row, there, N, out_stride, factor, cap, BN: tl.constexpr,
    BM: tl.constexpr, GATE: tl.constexpr, ADD: tl.constexpr, BIASED: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """What becomes of a tile's sums [outputs, rows]: bias, gate or cap, factor; stored, or added to what is
    there.
    """
    n = first_output + tl.arange(0, BN)
    if BIASED:
        sums += tl.load(BIAS + n, mask=n < N, other=0.0)[:, None]
    if CAPPED:
        sums = cap * (1.0 - 2.0 / (tl.exp(2.0 * sums / cap) + 1.0))
    if GATE != "":
        gate, up = tl.split(tl.permute(tl.reshape(sums, [BN // 2, 2, BM]), (0, 2, 1)))
        sums = gated(gate, up, GATE)
        n = first_output // 2 + tl.arange(0, BN // 2)
        N = N // 2
    sums *= factor
    place = OUT + out_row.to(tl.int64)[None] * out_stride + n[:, None]
    inside = (n < N)[:, None] & there[None]
    if ADD:
        sums += tl.load(place, mask=inside, other=0.0)
    tl.store(place, sums.to(OUT.dtype.element_ty), mask=inside)


@triton.jit
def find_rows(
    CHOSEN, ORDER, TILES, SHARES, tile, split, rows,
    BM: tl.constexpr, ROUTE: tl.constexpr, TOP_K: tl.constexpr,
):  # fmt: skip
    """Which rows a tile multiplies: (row of x, row of out, is it one, expert, share), each of BM rows.

    A pair is a token and one of its experts, token * TOP_K + which. "pairs": a tile is one pair, of a token;
    "slots": a tile is a token, a split one of its pairs; "sorted": a tile has pairs of one expert, up to BM.
    """
    m = tl.arange(0, BM)
    share = 1.0
    if ROUTE == "":
        row = tile * BM + m
        there = row < rows
        x_row, out_row, expert = tl.minimum(row, rows - 1), row, 0
    elif ROUTE == "pairs":
        there, expert = m == 0, tl.load(CHOSEN + tile)
        x_row, out_row = m * 0 + tile // TOP_K, m * 0 + tile
    elif ROUTE == "slots":
        pair = tile * TOP_K + split
        there, expert, share = m == 0, tl.load(CHOSEN + pair), tl.load(SHARES + pair)
        x_row, out_row = m * 0 + pair, m * 0 + tile
    else:
        expert, first, last = (
            tl.load(TILES + 3 * tile),
            tl.load(TILES + 3 * tile + 1),
            tl.load(TILES + 3 * tile + 2),
        )
        there = first + m < last
        pair = tl.load(ORDER + tl.minimum(first + m, last - 1))
        x_row, out_row = pair // TOP_K, pair
    return x_row, out_row, there, expert, share


@triton.jit(do_not_specialize=["rows", "tiles", "splits"])
def multiply(
    X, W, SCALE, OFFSET, COARSE, BIAS, OUT, PARTIAL, TICKET, CHOSEN, ORDER, TILES, SHARES, WHERE,
    rows, tiles, splits, N, K, out_stride, factor, cap,
    FORMAT: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, ASM: tl.constexpr, EVEN_K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, CHUNKS: tl.constexpr, SPLIT: tl.constexpr, GATE: tl.constexpr,
    ADD: tl.constexpr, BIASED: tl.constexpr, CAPPED: tl.constexpr, ROUTE: tl.constexpr, TOP_K: tl.constexpr,
):  # fmt: skip
    """Grid (tiles of rows * tiles of outputs, splits). PARTIAL float32 [tiles, splits, BN, BM]; TICKET
    zeros.
    """
    tile, split = tl.program_id(0), tl.program_id(1)
    first_output = tile // tiles * BN
    x_row, out_row, there, expert, share = find_rows(
        CHOSEN, ORDER, TILES, SHARES, tile % tiles, split, rows, BM, ROUTE, TOP_K
    )
    if ROUTE == "sorted":  # noqa: SIM102 (decided when this is compiled, the other when it runs)
        if expert < 0:
            return
    if ROUTE != "":
        W += tl.multiple_of(tl.load(WHERE + 5 * expert), 16)
        if GROUP > 0 or FORMAT != "dense":
            SCALE += tl.multiple_of(tl.load(WHERE + 5 * expert + 1), 16)
        if MODE != "centred":
            OFFSET += tl.multiple_of(tl.load(WHERE + 5 * expert + 2), 16)
        if MODE == "two_level":
            COARSE += tl.multiple_of(tl.load(WHERE + 5 * expert + 3), 16)
    chunks = tl.cdiv(K, 64)
    WIDTH: tl.constexpr = 32 if FORMAT == "int4" else 64  # bytes or values of a chunk
    n = tl.minimum(first_output + tl.arange(0, BN), N - 1)
    half = tl.arange(0, 32)
    at = W + n.to(tl.int64)[:, None] * (chunks * WIDTH) + half[None]
    x_at = X + x_row.to(tl.int64)[None] * K + half[:, None]
    steps = chunks // CHUNKS
    begin, end = 0, steps
    if SPLIT and ROUTE != "slots":
        each = tl.cdiv(steps, splits)
        begin = split * each
        end = tl.minimum(begin + each, steps)
    sums = tl.zeros([BN, BM], tl.float32)
    for step in range(begin, end):
        for chunk in tl.static_range(CHUNKS):
            sums = add_chunk(
                sums, W, SCALE, OFFSET, COARSE, at, x_at, n, N, K, (step * CHUNKS + chunk) * 64, K // 256,
                FORMAT, MODE, GROUP, ASM, EVEN_K,
            )  # fmt: skip
    if GROUP == 0 and FORMAT != "dense":
        sums *= tl.load(SCALE + n).to(tl.float32)[:, None]
    if ROUTE != "" and BIASED:
        sums += tl.load(BIAS + tl.load(WHERE + 5 * expert + 4) + n)[:, None]
    sums *= share
    if SPLIT:
        place = tl.arange(0, BN)[:, None] * BM + tl.arange(0, BM)[None]
        mine = PARTIAL + tile.to(tl.int64) * splits * (BN * BM)
        tl.store(mine + split * (BN * BM) + place, sums)
        tl.debug_barrier()
        if tl.atomic_add(TICKET + tile, 1, sem="acq_rel", scope="gpu") < splits - 1:
            return
        sums = tl.zeros([BN, BM], tl.float32)
        for i in range(splits):
            sums += tl.load(mine + i * (BN * BM) + place, cache_modifier=".cg")
        tl.store(TICKET + tile, 0)  # ready for the next, in a recorded step too
    store_sums(
        sums, BIAS, OUT, first_output, out_row, there, N, out_stride, factor, cap,
        BN, BM, GATE, ADD, BIASED and ROUTE == "", CAPPED,
    )  # fmt: skip


@triton.jit(do_not_specialize=["rows"])
def dot_rows(
    X, W, SCALE, OFFSET, COARSE, BIAS, OUT, rows, N, K, out_stride, factor, cap,
    FORMAT: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, ASM: tl.constexpr, EVEN_K: tl.constexpr,
    BN: tl.constexpr, GATE: tl.constexpr, ADD: tl.constexpr, BIASED: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """The same without matrix units, for one row a program. Grid (tiles of outputs, rows)."""
    first_output, row = tl.program_id(0) * BN, tl.program_id(1)
    DT: tl.constexpr = X.dtype.element_ty
    chunks = tl.cdiv(K, 64)
    WIDTH: tl.constexpr = 32 if FORMAT == "int4" else 64
    n = tl.minimum(first_output + tl.arange(0, BN), N - 1)
    half = tl.arange(0, 32)
    at = W + n.to(tl.int64)[:, None] * (chunks * WIDTH) + half[None]
    x_at = X + row.to(tl.int64) * K + half
    sums = tl.zeros([BN, 32], tl.float32)
    for chunk in range(0, chunks):
        k = chunk * 64
        low, high = halves(
            W, SCALE, OFFSET, COARSE, at, n, N, k, K // 256, FORMAT, MODE, GROUP, ASM, False, DT
        )
        x_low = tl.load(x_at + k, mask=EVEN_K or k + half < K, other=0.0).to(tl.float32)[None]
        x_high = tl.load(x_at + k + 32, mask=EVEN_K or k + half + 32 < K, other=0.0).to(tl.float32)[None]
        if GROUP > 0 and (MODE == "centred" or MODE == "zero"):
            first = tl.load(SCALE + k // GROUP * N + n).to(tl.float32)[:, None]
            second = first
            if GROUP == 32:
                second = tl.load(SCALE + (k // GROUP + 1) * N + n).to(tl.float32)[:, None]
            sums += low.to(tl.float32) * x_low * first + high.to(tl.float32) * x_high * second
        else:
            sums += low.to(tl.float32) * x_low + high.to(tl.float32) * x_high
    total = tl.sum(sums, 1)
    if GROUP == 0 and FORMAT != "dense":
        total *= tl.load(SCALE + n).to(tl.float32)
    out_row = tl.arange(0, 1) + row
    store_sums(
        total[:, None], BIAS, OUT, first_output, out_row, out_row < rows, N, out_stride, factor, cap,
        BN, 1, GATE, ADD, BIASED, CAPPED,
    )  # fmt: skip


@triton.jit(do_not_specialize=["first", "count"])
def expand(
    W, SCALE, OFFSET, COARSE, ROWS, OUT, first, count, N, K, factor,
    FORMAT: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, ASM: tl.constexpr, DT: tl.constexpr,
    BN: tl.constexpr, PICK: tl.constexpr,
):  # fmt: skip
    """OUT[i] = factor * the weights of row first + i, or ROWS[i] where PICK, as numbers, computed in DT.

    Grid (tiles of BN of the `count` rows, chunks of inputs); OUT is [count, K].
    """
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * 64
    WIDTH: tl.constexpr = 32 if FORMAT == "int4" else 64
    n = first + tl.minimum(i, count - 1)
    if PICK:
        n = tl.load(ROWS + tl.minimum(i, count - 1))
    half = tl.arange(0, 32)
    at = W + n.to(tl.int64)[:, None] * (tl.cdiv(K, 64) * WIDTH) + half[None]
    low, high = halves(W, SCALE, OFFSET, COARSE, at, n, N, k, K // 256, FORMAT, MODE, GROUP, ASM, False, DT)
    low, high = low.to(tl.float32) * factor, high.to(tl.float32) * factor
    if FORMAT != "dense" and (MODE == "centred" or MODE == "zero"):
        group = k // GROUP if GROUP > 0 else 0
        scale = tl.load(SCALE + group * N + n).to(tl.float32)[:, None]
        low *= scale
        if GROUP == 32:
            scale = tl.load(SCALE + (group + 1) * N + n).to(tl.float32)[:, None]
        high *= scale
    place = OUT + i.to(tl.int64)[:, None] * K + k + half[None]
    inside, inputs = (i < count)[:, None], k + half[None]
    tl.store(place, low.to(OUT.dtype.element_ty), mask=inside & (inputs < K))
    tl.store(place + 32, high.to(OUT.dtype.element_ty), mask=inside & (inputs + 32 < K))


@triton.jit
def finish(
    Y, X_SCALE, SCALE, BIAS, OUT, N, out_stride, factor, cap, BN: tl.constexpr, GATE: tl.constexpr,
    ADD: tl.constexpr, BIASED: tl.constexpr, CAPPED: tl.constexpr, INTEGERS: tl.constexpr,
):  # fmt: skip
    """What `multiply` does with its sums, for a product Y [rows, N] of the vendor's library; of INTEGERS,
    each row and output with its scale. Grid (rows, tiles of outputs).
    """
    row, first_output = tl.program_id(0), tl.program_id(1) * BN
    n = first_output + tl.arange(0, BN)
    sums = tl.load(Y + row.to(tl.int64) * N + n, mask=n < N, other=0).to(tl.float32)
    if INTEGERS:
        sums *= tl.load(X_SCALE + row) * tl.load(SCALE + n, mask=n < N, other=0.0).to(tl.float32)
    out_row = tl.arange(0, 1) + row
    store_sums(
        sums[:, None], BIAS, OUT, first_output, out_row, out_row >= 0, N, out_stride, factor, cap,
        BN, 1, GATE, ADD, BIASED, CAPPED,
    )  # fmt: skip
