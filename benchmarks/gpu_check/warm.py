"""Compiles, in processes side by side, what the other sections launch, so that they find it on disk. A dry
run compiles all that is shipped, for the card that a real run is meant for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from .report import Row
from .setup import Setup

WORKERS = 12
# Matrices that compile to what the real ones do, but are made in no time: rows that no tile fills, inputs
# that are shared among programs, inputs that are not.
SHAPES = ((72, 256), (64, 1024), (28672, 256))
CODE = "import sys; from benchmarks.gpu_check.warm import work; work(int(sys.argv[1]), int(sys.argv[2]))"


def warm(setup: Setup) -> Iterator[Row]:
    """How long that took; a worker's fault shows in the sections themselves."""
    if setup.dry:
        work(0, 40, setup)
        yield compiled()
        return
    began = time.monotonic()
    workers = [
        subprocess.Popen([sys.executable, "-c", CODE, str(i), str(WORKERS)], stdout=subprocess.DEVNULL)
        for i in range(WORKERS)
    ]
    try:
        for worker in workers:
            worker.wait()
    finally:
        for worker in workers:
            worker.kill()
    wrong = sum(worker.returncode != 0 for worker in workers)
    yield Row(
        "warm",
        f"{WORKERS} workers, {os.cpu_count()} cores",
        time.monotonic() - began,
        "s",
        note=f"{wrong} failed",
    )


def compiled() -> Row:
    """All that is shipped, compiled for the card that a real run is meant for, without one: minutes."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.kernels.triton.aot", "--target", "sm_90", "--jobs", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    last = (done.stdout.strip().splitlines() or [done.stderr[-200:]])[-1]
    return Row("warm", "compiled for sm_90", done.returncode, "faults", passed=not done.returncode, note=last)


def passes(setup: Setup) -> Iterator[Callable[[], object]]:
    """One layer of the model that is measured, in each form, for few and many answers and a prompt."""
    from .end_to_end import FORMS
    from .steps import Pass, make_batch
    from .weights import LLAMA_8B, decoder

    shape = replace(LLAMA_8B, layers=1, vocabulary=4096)
    for form in FORMS:
        for new, length in (([1], 1024), ([1] * 8, 1024), ([1] * 32, 1024), ([2048], 2048)):
            batch, blocks = make_batch(setup, new, [length] * len(new), shape.vocabulary)
            yield lambda form=form, step=(batch, blocks): Pass(setup, decoder(setup, shape, form), *step)()


def work(which: int, of: int, setup: Setup | None = None) -> None:
    """One worker's part."""
    made = setup or Setup.of(False, Path())
    for i, launch in enumerate(launches(made)):
        if i % of == which:
            try:
                launch()
            except Exception as error:
                print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)


def launches(setup: Setup) -> Iterator[Callable[[], object]]:
    """The cases of correctness.py; a layer of each form; products of every form and number of rows, small;
    candidates of tune.py.
    """
    from . import correctness, products, tune
    from .weights import MAKERS

    for case in correctness.cases(setup, SHAPES):
        yield case.error
    if not setup.dry:
        yield from passes(setup)
    n, k = setup.size(4096, 64), setup.size(4096, 256)
    for form in products.FORMS:
        packed = setup.ops.pack([MAKERS[form](setup, n, k)])
        for rows in products.ROWS[: setup.size(len(products.ROWS), 1)]:
            yield lambda packed=packed, rows=rows: products.calls(setup, [packed], rows)[0]()
    packed = setup.ops.pack([MAKERS["w4 g128"](setup, n, k)])
    for rows, tiles in tune.CANDIDATES.items():
        for tile in tiles:
            yield lambda rows=rows, tile=tile: tune.with_tile(setup, [packed], rows, tile)
