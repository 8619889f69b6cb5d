"""What the installer says: one line per step, with what it does, how far it is and how long it took.

On a terminal the line of the running step is redrawn five times a second; elsewhere (a log, CI) it is
written at its start and its end, with a sign of life every 20 seconds. Knows nothing of what the steps do.
"""

from __future__ import annotations

import sys
import threading
import time
from shutil import get_terminal_size
from types import TracebackType

REDRAW_S, SIGN_OF_LIFE_S = 0.2, 20.0
UNITS = ((1e9, "{:.1f} GB"), (1e6, "{:.0f} MB"), (1e3, "{:.0f} kB"), (1, "{:.0f} bytes"))


def say(text: str = "") -> None:
    """A line for the person."""
    print(text, flush=True)


def size(count: float) -> str:
    """Bytes as people read them: 98 MB, 2.9 GB."""
    unit, text = next((unit for unit in UNITS if count >= unit[0]), UNITS[-1])
    return text.format(count / unit)


def duration(seconds: float) -> str:
    """41 s, 3 min 05 s."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


class Step:
    """`with Step("PyTorch") as step: step.note("downloading, 190 MB")`."""

    def __init__(self, title: str) -> None:
        self.title, self.news, self.result = title, "", ""
        self.live = sys.stdout.isatty()
        self.ended = threading.Event()
        self.ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Step:
        self.started = time.monotonic()
        if not self.live:
            say(f"  {self.title} ...")
        self.ticker.start()
        return self

    def note(self, news: str) -> None:
        """What it is busy with now."""
        self.news = news

    def done(self, result: str) -> None:
        """What came of it, shown at its end."""
        self.result = result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self.ticker.join()
        took = f"stopped after {self._took()}" if kind else f"done in {self._took()}"
        end = f"  {self.title}: {self.result + ', ' if self.result and not kind else ''}{took}"
        say(f"\r\x1b[K{end}" if self.live else end)

    def _took(self) -> str:
        return duration(time.monotonic() - self.started)

    def _tick(self) -> None:
        while not self.ended.wait(REDRAW_S if self.live else SIGN_OF_LIFE_S):
            line = f"  {self.title}, {self._took()}" + (f": {self.news}" if self.news else "")
            if self.live:
                sys.stdout.write(f"\r\x1b[K{line[: get_terminal_size().columns - 1]}")
                sys.stdout.flush()
            else:
                say(line)
