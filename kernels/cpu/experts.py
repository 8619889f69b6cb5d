"""A mixture of experts: each token's rows go to the experts that its router chose, and come back weighted.

    shares    each token's top_k experts and their shares          lists [tokens, top_k]
    sort      where each expert's run of rows begins               rows [tokens * top_k]
    gather    each token's activation, copied to its experts' rows
    each      for every expert with tokens: a kernel of walk.py on its run, its arguments taken from a table
    scatter   hidden[t] += its rows, weighted, in the order in which the router ranked them

A row is computed by the same tiles whichever others are in its run, so a token's bits do not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .machine import call, f32, i64, unpack

ROW = 24  # int64 of an expert's arguments in a table
COUNT, LINEAR, GATED = 3, (9, 13), (11, 14)  # where the count, inputs and outputs of walk.py's kernels stand


def make_shares() -> Callable[[int, int, int], None]:
    """The top_k largest of the softmax of each token's router scores, the largest first, and their shares,
    times `scales` where there are any. Ties go to the lower number.
    """

    def shares(args: int, thread: int, n: int) -> None:
        count_at, scores, step, experts, top_k, normalized, chosen, weights, scales = unpack(args, 9)
        for t in range(thread, i64(count_at)[0], n):
            x, ids, share = f32(scores + t * step), i64(chosen + t * top_k * 8), f32(weights + t * top_k * 4)
            peak = x[0]
            for e in range(experts):
                peak = max(peak, x[e])
            total = np.float32(0)
            for e in range(experts):
                x[e] = np.exp(x[e] - peak)
                total += x[e]
            taken = np.float32(0)
            for k in range(top_k):
                best = 0
                for e in range(experts):
                    if x[e] > x[best]:
                        best = e
                ids[k], share[k] = best, x[best]
                taken += x[best]
                x[best] = np.float32(-1)
            for k in range(top_k):
                share[k] /= taken if normalized else total
                if scales:
                    share[k] *= f32(scales)[ids[k]]

    return shares


def make_sort() -> Callable[[int, int, int], None]:
    """Where each expert's rows begin and how many they are, and the row of each token's k-th expert: a single
    thread counts, which is little work.
    """

    def sort(args: int, thread: int, n: int) -> None:
        count_at, experts, top_k, chosen, places, rows = unpack(args, 6)
        if thread:
            return
        ids, place, row = i64(chosen), i64(places), i64(rows)
        total = i64(count_at)[0] * top_k
        for e in range(experts):
            place[2 * e] = 0
        for item in range(total):
            place[2 * ids[item]] += 1
        first = 0
        for e in range(experts):
            place[2 * e + 1] = first
            first += place[2 * e]
            place[2 * e] = 0
        for item in range(total):
            e = ids[item]
            row[item] = place[2 * e + 1] + place[2 * e]
            place[2 * e] += 1

    return sort


def make_gather() -> Callable[[int, int, int], None]:
    """Copy each token's activation to the rows that its experts read."""

    def gather(args: int, thread: int, n: int) -> None:
        count_at, top_k, rows, x, step, out = unpack(args, 6)
        for item in range(thread, i64(count_at)[0] * top_k, n):
            source, target = i64(x + item // top_k * step), i64(out + i64(rows)[item] * step)
            for k in range(step // 8):
                target[k] = source[k]

    return gather


def make_each() -> Callable[[int, int, int], None]:
    """Call a kernel for every expert that has rows, with that expert's arguments, `x` and `out` moved on to
    its first row. All threads go through all experts together; none waits for another.
    """

    def each(args: int, thread: int, n: int) -> None:
        kernel, table, experts, places, x_at, x_step, out_at, out_step, mine, mine_step = unpack(args, 10)
        own = mine + thread * mine_step
        for e in range(experts):
            place = i64(places + e * 16)
            if place[0]:
                row, source = i64(own), i64(table + e * ROW * 8)
                for k in range(ROW):
                    row[k] = source[k]
                row[COUNT] = places + e * 16
                row[x_at] += place[1] * x_step
                row[out_at] += place[1] * out_step
                call(kernel, own, thread, n)

    return each


def make_scatter() -> Callable[[int, int, int], None]:
    """hidden[t] += the sum of share * row over t's experts; `fresh`: what hidden was is not looked at."""

    def scatter(args: int, thread: int, n: int) -> None:
        count_at, top_k, rows, weights, found, step, width, hidden, hidden_step, fresh = unpack(args, 10)
        for t in range(thread, i64(count_at)[0], n):
            row, share, out = (
                i64(rows + t * top_k * 8),
                f32(weights + t * top_k * 4),
                f32(hidden + t * hidden_step),
            )
            if fresh:
                for c in range(width):
                    out[c] = np.float32(0)
            for k in range(top_k):
                y, by = f32(found + row[k] * step), share[k]
                for c in range(width):
                    out[c] += y[c] * by

    return scatter
