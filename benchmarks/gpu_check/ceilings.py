"""What the machine itself can do: the figures that all others are held against. Reading and copying memory,
products in the vendor's library, what a node of a graph and a launch cost. And whether the program would use
this card: the check that it makes before.
"""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Iterator

import torch
import triton

from kernels.triton.self_test import faults

from .report import Row
from .setup import Setup, captured, replayed, seconds


def machine(setup: Setup) -> Iterator[Row]:
    """Which card, which versions; the program's own check, compiling included."""
    words = [
        f"torch {torch.__version__}",
        f"triton {triton.__version__}",
        f"python {platform.python_version()}",
    ]
    if not setup.dry:
        query = "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit,memory.used"
        done = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True)
        words.append(done.stdout.strip())
    yield Row("machine", setup.ops.target.name, 0, "", note=", ".join(words))
    if not setup.dry:
        began = time.perf_counter()
        wrong = list(faults(setup.device.type))
        took, note = time.perf_counter() - began, "; ".join(wrong)
        yield Row("machine", "the check before a card is used", took, "s", passed=not wrong, note=note)


def ceilings(setup: Setup) -> Iterator[Row]:
    """Reading, copying, multiplying; a node of a graph, a launch."""
    size = setup.size(1 << 30, 1 << 12)  # float32
    source, target = (torch.rand(size, device=setup.device) for _ in range(2))
    copied = 2 * source.nbytes / seconds(setup, [lambda: target.copy_(source)])
    yield Row("ceilings", "copy", copied / 1e12, "TB/s")
    reads = source.nbytes / seconds(setup, [lambda: source.sum()])
    yield Row("ceilings", "read", reads / 1e12, "TB/s")
    setup.read = max(copied, reads)
    yield from _products(setup)
    if setup.dry:
        return
    one = torch.zeros(1, device=setup.device)
    graph = captured(lambda: [one.add_(1) for _ in range(100)], [lambda: one.add_(1)])
    yield Row("ceilings", "a node of a graph", replayed(graph.replay) / 100 * 1e6, "us")
    yield Row("ceilings", "a launch by Triton", _launch(setup) * 1e6, "us")


def _products(setup: Setup) -> Iterator[Row]:
    n = setup.size(8192, 32)
    a, b = (torch.randn(n, n, device=setup.device).bfloat16() for _ in range(2))
    one = torch.ones((), device=setup.device)
    x8, w8 = (torch.randint(-100, 100, (n, n), device=setup.device).to(torch.int8) for _ in range(2))
    xf, wf = x8.bfloat16().to(torch.float8_e4m3fn), w8.bfloat16().to(torch.float8_e4m3fn)
    calls = {
        "bf16": lambda: torch.mm(a, b.T),
        "int8": lambda: torch._int_mm(x8, w8.T),
        "fp8": lambda: torch._scaled_mm(xf, wf.T, one, one, out_dtype=torch.bfloat16),
    }
    for name, call in calls.items():
        try:
            setup.flops[name] = 2 * n**3 / seconds(setup, [call])
        except RuntimeError as error:  # a card without these units
            yield Row("ceilings", f"product {name}", 0, "TFLOP/s", note=str(error)[:80])
            continue
        yield Row("ceilings", f"product {name}", setup.flops[name] / 1e12, "TFLOP/s")


def _launch(setup: Setup) -> float:
    """Seconds that the host takes for one launch."""
    x, scale = (
        torch.ones(16, 64, device=setup.device, dtype=setup.ops.dtype),
        torch.ones(64, device=setup.device),
    )
    from kernels import Norm
    from kernels.triton.rows import rms_norm

    hidden, norm = x.float(), Norm(scale, 1e-5)
    rms_norm(hidden, norm, x)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(1000):
        rms_norm(hidden, norm, x)
    took = (time.perf_counter() - began) / 1000
    torch.cuda.synchronize()
    return took
