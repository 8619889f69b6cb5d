"""What the commands show: results on stdout, progress on stderr, in one line that is overwritten.

Without a terminal there is no progress, but for what takes minutes: there it is a line for every tenth.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any


def prepare_streams() -> None:
    """A program may have been started without them, and with an encoding that can't hold every answer."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # as long as the process lives
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def show_json(value: Any) -> None:
    """One object on stdout."""
    holds_all = sys.stdout.encoding.lower() in ("utf-8", "utf8")
    print(json.dumps(value, ensure_ascii=not holds_all, default=str), flush=True)


def show_table(rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> None:
    """Rows in aligned columns on stdout, the columns `numbers` by their right end."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    sides = [">" if place in numbers else "<" for place in range(len(widths))]
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        print("  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip())


class Meter:
    """A Progress (progress.py) that is shown; `clear` it before anything else is printed."""

    def __init__(self, lines: bool = False) -> None:
        self._live = sys.stderr.isatty()
        self._steps = 100 if self._live else 10 if lines else 0
        self._last = ("", -1)

    def __call__(self, stage: str, part: float) -> None:
        step = (stage, int(part * self._steps))
        if not self._steps or step == self._last:
            return
        self._last = step
        text = f"{stage} {100 * part:3.0f} %"
        print(f"\r\033[K{text}" if self._live else f"{text}\n", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave no trace in a terminal."""
        if self._live and self._last[0]:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
