"""What some families do around a product: heads normalized, a sum normalized or scaled, logits capped.

A token's row, or a piece of it, is handled by one thread, by code that does not depend on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .attend import cap_scores
from .machine import as_float, f32, i64, unpack
from .rows import inverse_root_mean_square


def make_head_norm() -> Callable[[int, int, int], None]:
    """RMSNorm, in place, of `pieces` neighbours of `width` values in every token's row, all with one gain."""

    def head_norm(args: int, thread: int, n: int) -> None:
        count_at, rows, step, pieces, width, gains, eps = unpack(args, 7)
        gain = f32(gains)
        for item in range(thread, i64(count_at)[0] * pieces, n):
            x = f32(rows + item // pieces * step + item % pieces * width * 4)
            scale = inverse_root_mean_square(x, width, as_float(eps))
            for k in range(width):
                x[k] = x[k] * scale * gain[k]

    return head_norm


def make_add() -> Callable[[int, int, int], None]:
    """hidden[t] = keep * hidden[t] + factor * x[t]; where there are gains, of each `run` of x[t]'s values
    normalized by itself.
    """

    def add(args: int, thread: int, n: int) -> None:
        (count_at, rows, step, width, run, gains, eps, factor, kept, hidden, hidden_step) = unpack(args, 11)
        gain, pieces, keep = f32(gains), width // run, as_float(kept)
        for item in range(thread, i64(count_at)[0] * pieces, n):
            t, at = item // pieces, item % pieces * run * 4
            x, out = f32(rows + t * step + at), f32(hidden + t * hidden_step + at)
            scale = as_float(factor)
            if gains:
                scale *= inverse_root_mean_square(x, run, as_float(eps))
                for k in range(run):
                    out[k] = (keep * out[k] if kept else np.float32(0)) + x[k] * scale * gain[k]
            else:
                for k in range(run):
                    out[k] = (keep * out[k] if kept else np.float32(0)) + x[k] * scale

    return add


def make_cap() -> Callable[[int, int, int], None]:
    """x[r] = cap * tanh(x[r] / cap), in place; the threads share each row."""

    def cap(args: int, thread: int, n: int) -> None:
        count_at, rows, step, width, cap_bits, mine, mine_step = unpack(args, 7)
        most, blocks, spare = as_float(cap_bits), width // 16, mine + thread * mine_step
        lo, hi = blocks * thread // n, blocks * (thread + 1) // n
        for r in range(i64(count_at)[0]):
            row = rows + r * step
            cap_scores(row + lo * 64, hi - lo, most)
            if thread == 0 and width % 16:  # the last values fill no vector
                x, y = f32(row + blocks * 64), f32(spare)
                for k in range(16):
                    y[k] = x[k] if k < width % 16 else np.float32(0)
                cap_scores(spare, 1, most)
                for k in range(width % 16):
                    x[k] = y[k]

    return cap
