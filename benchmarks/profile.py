"""`python -m benchmarks.profile [--model NAME] [--chats N | --prompt N] [--context N]`: where the time goes.

One step of the processor's kernels is walked as the engine walks it, with a clock read after every row and
every meeting. Beside each kernel's time stand the weights it read and the operations of its matrix products,
as rates: what the memory and the multipliers had to do. Looks inside the processor backend, so it changes
with it; tokens and blocks are made up, their number is what costs.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import types

from app.settings import Home
from engine import LLM, EngineConfig
from engine.scheduling.plan import PlanItem
from engine.scheduling.sequence import Sequence
from kernels.cpu import ops, walk
from kernels.cpu.emit import I64, Emitter, Value, emitted
from kernels.cpu.layout import GROUP
from kernels.cpu.machine import call, compiled, i64, meet, unpack
from kernels.cpu.record import Replay

from .__main__ import STARTER, find_model

RUNS = 12
TIMES = 8  # place in the clock's cache line of the address of the table of times


@emitted(types.int64)
def cycles(e: Emitter) -> Value:
    """The processor's own clock."""
    return e.call("llvm.readcyclecounter", I64)


def make_timed_walk() -> Callable[[int, int, int], None]:
    """walk.make_walk, with times [threads, 2, rows]: after a row's work, and after the meeting behind it."""

    def timed(args: int, thread: int, n: int) -> None:
        program, rows, clock, give_way = unpack(args, 4)
        goal, times = 0, i64(i64(clock)[TIMES] + thread * 2 * rows * 8)
        for r in range(rows):
            row = program + r * (walk.ROW * 8)
            call(i64(row)[0], row + 16, thread, n)
            times[r] = cycles()
            if i64(row)[1]:
                goal += n
                meet(clock, goal, give_way)
            times[rows + r] = cycles()

    return timed


@dataclass(slots=True)
class Cost:
    """Of all rows of one kind in a step."""

    rows: int = 0
    work: float = 0.0  # seconds, the threads' mean
    wait: float = 0.0  # at meetings
    read: int = 0  # bytes of weights
    weights: int = 0  # how many


def fill(llm: LLM, starts: list[int], count: int) -> None:
    """A step of `count` tokens for each sequence, whose next place is `start`. Only the first page kind is
    spread over blocks; of models with two, the other reads and writes block 0 alone.
    """
    items: list[PlanItem] = []
    block = 1
    for start in starts:
        end = start + count
        blocks = -(-end // llm.plan.block_size)
        tables = [*range(block, block + blocks)], *[[0] * blocks for _ in llm.plan.kinds[1:]]
        token_ids = tuple(range(1000 + start, 1000 + end))
        items.append(PlanItem(Sequence("", [], block_tables=tables), start, token_ids, (), 1))
        block += blocks
    llm.runner._writer.write(items)


def run(llm: LLM) -> tuple[float, dict[str, Cost]]:
    """The best of some runs: its seconds, and what each kind of row cost."""
    replay, own = llm.runner.replay, llm.runner.ops
    assert isinstance(replay, Replay) and isinstance(own, ops.CpuOps)
    timed = compiled(make_timed_walk)
    length, count = len(replay.program), replay.team.count
    times, best = np.zeros((count, 2, length), np.int64), None
    for _ in range(RUNS):
        replay.clock[:] = 0
        replay.clock[TIMES] = times.ctypes.data
        begin = time.perf_counter()
        replay.team.run(timed, replay.arguments.ctypes.data)
        seconds = time.perf_counter() - begin
        if best is None or seconds < best[0]:
            best = seconds, times.copy()
    assert best
    seconds, times = best
    tick = seconds / (times[:, 1, -1] - times[:, 1, 0]).mean()
    costs: dict[str, Cost] = defaultdict(Cost)
    for r in range(1, length):
        name, read, weights = describe(own, replay.program[r])
        cost = costs[name]
        cost.rows, cost.read, cost.weights = cost.rows + 1, cost.read + read, cost.weights + weights
        cost.work += tick * (times[:, 0, r] - times[:, 1, r - 1]).mean()
        cost.wait += tick * (times[:, 1, r] - times[:, 0, r]).mean()
    return seconds, costs


def describe(own: ops.CpuOps, row: np.ndarray) -> tuple[str, int, int]:
    """A row's kind, the bytes of weights it reads, how many weights they are."""
    kernel, args = int(row[0]), [int(x) for x in row[2:]]
    if kernel == own._linear:
        groups, rows, size = args[6:9]
        return f"linear {rows} x {groups * GROUP}", -(-rows // 32) * size, rows * groups * GROUP
    if kernel == own._gated:
        groups, units, size = args[8:11]
        both = 2 if args[6] else 1
        return (
            f"gate and up, {units * 32} x {groups * GROUP}",
            units * size * both,
            units * 64 * groups * GROUP,
        )
    names = {own._embed: "embed", own._norm: "norm", own._rope: "rope", own._attend: "attention"}
    return {**names, own._merge: "merge attention"}.get(kernel, "what only some families have"), 0, 0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--model", default=STARTER)
    parser.add_argument("--chats", type=int, default=1, help="each makes one token")
    parser.add_argument("--prompt", type=int, default=0, help="instead: so many tokens of one prompt")
    parser.add_argument("--context", type=int, default=512, help="tokens before those of the step")
    args = parser.parse_args()
    llm = LLM.load(find_model(args.model, Home.find()), EngineConfig())
    try:
        tokens = args.prompt or args.chats
        fill(llm, [0] if args.prompt else [args.context] * args.chats, args.prompt or 1)
        seconds, costs = run(llm)
    finally:
        llm.close()
    print(f"{tokens} tokens in {seconds * 1e3:.2f} ms: {tokens / seconds:.1f} tokens/s")
    print(f"{'kernel':30}{'rows':>5}{'ms':>9}{'waiting':>9}{'GB/s':>7}{'Gop/s':>7}")
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].work):
        spent = cost.work + cost.wait
        rates = f"{cost.read / spent / 1e9:7.1f}{2 * cost.weights * tokens / spent / 1e9:7.0f}"
        print(
            f"{name:30}{cost.rows:5}{cost.work * 1e3:9.3f}{cost.wait * 1e3:9.3f}{rates if cost.read else ''}"
        )


if __name__ == "__main__":
    main()
