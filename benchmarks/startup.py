"""How long a person waits for the page, from the start of the process.

To the line "Octavo is ready", to the first byte of the page, to a composer one can type into in Chromium, to
a model that answers. It is the second start that counts: the first one ever compiles the kernels.
"""

from __future__ import annotations

import statistics
import time

from playwright.sync_api import Browser

from .page import READY, browser, context_of, enter, program
from .sides import Figures

STEPS = ("ready", "first_byte", "usable", "model")
RUNS = 5


def one_start(chromium: Browser) -> dict[str, float]:
    """One start, to its end; seconds since the process was started."""
    start, first_byte = time.perf_counter(), list[float]()
    with program() as (_, link):
        times = {"ready": time.perf_counter() - start}
        context = context_of(chromium, link, enter(link, first_byte))
        times["first_byte"] = first_byte[0] - start
        tab = context.new_page()
        tab.goto(link.split("/enter")[0])
        tab.wait_for_selector("#draft:enabled")
        times["usable"] = time.perf_counter() - start
        tab.wait_for_selector(READY, timeout=120_000)
        times["model"] = time.perf_counter() - start
        context.close()
        return times


def startup() -> Figures:
    """The median over several starts, in a real browser."""
    with browser() as chromium:
        runs = [one_start(chromium) for _ in range(RUNS)]
    found = {f"{step}_s": statistics.median(run[step] for run in runs) for step in STEPS}
    return found | {"usable_later_s": statistics.median(run["usable"] - run["first_byte"] for run in runs)}
