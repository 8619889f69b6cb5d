"""The recorded step, and the two kinds of matrix product in it.

A record is a table of rows of ROW int64: a kernel's address, whether all threads meet after it, its
arguments. Every thread walks the whole table; inside a kernel threads share the work by their number, and
nobody waits but at the meetings. Only of one token's products, which the memory makes unequally fast, the
last part of each share is handed out.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import njit

from .layout import ACT, ROWS
from .machine import arrive, call, f32, i64, meet, unpack
from .rows import gate, quantize

ROW = 32
CHUNK = 96  # tokens whose gates and ups stay in the first cache
UNITS = 24  # of so many rows of 32 gates and ups at once
LEFT, PIECES = 4, 4  # a fourth of a share is handed out, in four pieces
JOB = 128  # bytes at the start of a thread's workspace: the arguments it hands to tiles.make_matmul


def make_walk() -> Callable[[int, int, int], None]:
    """Run a record. `clock` is the address of a zero of this run's own, `give_way` that of sched_yield."""

    def walk(args: int, thread: int, n: int) -> None:
        program, rows, clock, give_way = unpack(args, 4)
        goal = 0
        for r in range(rows):
            row = program + r * (ROW * 8)
            call(i64(row)[0], row + 16, thread, n)
            if i64(row)[1]:
                goal += n
                meet(clock, goal, give_way)

    return walk


@njit
def own_share(units: int, thread: int, n: int, count: int) -> tuple[int, int]:
    """The units that a thread begins with: its share, with one token without the last part."""
    lo, hi = units * thread // n, units * (thread + 1) // n
    return lo, hi - (hi - lo) // LEFT if count == 1 else hi


@njit
def next_piece(counter: int, units: int, n: int, count: int) -> tuple[int, int]:
    """The next units of what was left of all shares, or -1: there are none. The counter is never set back:
    in each run all pieces are counted, and each thread once that finds none.
    """
    if count != 1:
        return -1, -1
    taken = arrive(counter) % (n * PIECES + n)
    if taken >= n * PIECES:
        return -1, -1
    owner, piece = taken % n, taken // n
    first, end = own_share(units, owner, n, count)[1], units * (owner + 1) // n
    return first + (end - first) * piece // PIECES, first + (end - first) * (piece + 1) // PIECES


def make_linear() -> Callable[[int, int, int], None]:
    """out[t, :rows] = weights @ x[t] + bias (+ out[t], if `add`), the pairs of rows shared.

    The end of a thread's share already fetches the begin of its share of what comes next.
    """

    def linear(args: int, thread: int, n: int) -> None:
        (next_w, next_units, next_size, count_at, matmul, w, groups, rows, size, x, x_step, bias, add, out,
         out_step, counter, mine, mine_step) = unpack(args, 18)  # fmt: skip
        count, pairs, whole = i64(count_at)[0], (rows + ROWS - 1) // ROWS, rows // ROWS
        mine += thread * mine_step
        job, following = i64(mine), next_w + next_units * thread // n * next_size
        lo, hi = own_share(pairs, thread, n, count)
        while lo >= 0:
            job[0], job[1], job[2] = w, w + hi * size, following - (w + hi * size)
            job[3], job[4], job[5], job[6], job[7] = groups, x, x_step, count, bias
            job[8], job[9], job[10] = add, out, out_step
            if lo < whole:
                call(matmul, mine, lo, min(hi, whole))
            if lo < hi and hi > whole:  # the last rows fill no pair: computed aside, not to write beyond
                spare, left = mine + JOB, rows - whole * ROWS
                job[8], job[9], job[10] = 0, spare - whole * 128, 128
                for t in range(0, count, CHUNK):
                    job[4], job[6] = x + t * x_step, min(CHUNK, count - t)
                    call(matmul, mine, whole, whole + 1)
                    for i in range(job[6]):
                        source, target = f32(spare + i * 128), f32(out + (t + i) * out_step + whole * 128)
                        for k in range(left):
                            target[k] = source[k] + target[k] if add else source[k]
            lo, hi = next_piece(counter, pairs, n, count)

    return linear


def make_gated() -> Callable[[int, int, int], None]:
    """out[t] = act(gate @ x[t]) * (up @ x[t]), in activation groups; `curve`: where act's four floats stand.

    A unit is a pair of gates and one of ups, interleaved in one stream, or in two where their formats differ
    (`up_matmul` is not 0). Their bias is interleaved in both cases.
    """

    def gated(args: int, thread: int, n: int) -> None:
        (next_w, next_units, next_size, count_at, matmul, w, up_matmul, up_w, groups, units, size, x, x_step,
         bias, out, out_step, curve, counter, mine, mine_step) = unpack(args, 20)  # fmt: skip
        count, mine = i64(count_at)[0], mine + thread * mine_step
        job, gate_up, following = i64(mine), mine + JOB, next_w + next_units * thread // n * next_size
        job[3], job[5], job[8] = groups, x_step, 0
        # units at once: the gates of one do not wait for those before; of two streams side by side, one
        many = 1 if up_matmul else max(1, UNITS // max(1, count))
        lo, hi = own_share(units, thread, n, count)
        while lo >= 0:
            job[1], job[2] = w + hi * size, 0 if up_matmul else following - (w + hi * size)
            for u in range(lo, hi, many):
                some = min(many, hi - u)
                job[10] = some * 256
                for t in range(0, count, CHUNK):
                    job[0], job[4], job[6] = w, x + t * x_step, min(CHUNK, count - t)
                    if up_matmul:
                        job[7], job[9] = bias + u * 128, gate_up - u * 128
                        call(matmul, mine, u, u + 1)
                        job[0], job[7], job[9] = up_w, bias + u * 128 + 128, gate_up - u * 128 + 128
                        call(up_matmul, mine, u, u + 1)
                    else:
                        job[7], job[9] = bias, gate_up - u * 256
                        call(matmul, mine, 2 * u, 2 * (u + some))
                    for i in range(job[6]):
                        for k in range(some):
                            both = gate_up + (i * some + k) * 256
                            gate(both, curve)
                            quantize(both, 1, out + (t + i) * out_step + (u + k) * ACT)
            lo, hi = next_piece(counter, units, n, count)

    return gated
