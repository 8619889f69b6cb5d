"""What a run is made on: the card or, for a dry run, the interpreter; how long a call takes there; what was
measured of the machine itself.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from kernels.triton import TritonOps

CALLS, REPLAYS = 20, 20  # calls in a graph, replays of it
LONG = 2e-3  # seconds: calls that take more need fewer of both
COLD = 60 << 20  # bytes of inputs that a cache of the card does not hold


@dataclass(slots=True)
class Setup:
    """`read` bytes a second and `flops` by type are ceilings, measured first (ceilings.py)."""

    dry: bool
    folder: Path  # for what is found
    device: torch.device
    ops: TritonOps
    read: float = 4.3e12
    flops: dict[str, float] = field(default_factory=lambda: {"bf16": 790e12, "int8": 1.5e15, "fp8": 1.5e15})

    @staticmethod
    def of(dry: bool, folder: Path) -> Setup:
        """The first card, or the interpreter."""
        torch.manual_seed(0)
        device = torch.device("cpu" if dry else "cuda")
        return Setup(dry, folder, device, TritonOps(device.type))

    def is_alive(self) -> bool:
        """Whether the card still answers this process."""
        if self.dry:
            return True
        try:
            torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def size(self, large: int, small: int) -> int:
        """The one for a card, or for the interpreter."""
        return small if self.dry else large

    def copies(self, num_bytes: int) -> int:
        """How many sets of inputs, used in turn, no cache holds."""
        return self.size(max(1, min(8, -(-COLD // max(1, num_bytes)))), 1)


def seconds(setup: Setup, calls: Sequence[Callable[[], object]]) -> float:
    """What one call takes, the calls made in turn: from replays of a CUDA graph, or in a dry run of each
    once.
    """
    if setup.dry:
        began = time.perf_counter()
        for call in calls:
            call()
        return (time.perf_counter() - began) / len(calls)
    first = captured(lambda: [call() for call in calls], calls)
    took = replayed(first.replay, 2) / len(calls)
    if took > LONG:
        return replayed(first.replay, 5) / len(calls)
    graph = captured(lambda: [calls[i % len(calls)]() for i in range(CALLS)], ())
    return replayed(graph.replay) / CALLS


def captured(work: Callable[[], object], before: Sequence[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    """Work as a graph; `before` is called once first, so that everything is compiled and allocated."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in before:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def replayed(replay: Callable[[], object], times: int = REPLAYS) -> float:
    """Median seconds of a call that the card works on alone."""
    found = []
    for _ in range(times):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        replay()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(found)


def wall(setup: Setup, call: Callable[[], object], times: int = 3) -> float:
    """Median seconds by the clock, the device waited for: for what no graph holds."""
    found = []
    for _ in range(1 if setup.dry else times):
        began = time.perf_counter()
        call()
        if not setup.dry:
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return statistics.median(found)
