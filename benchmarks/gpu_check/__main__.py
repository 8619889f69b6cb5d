"""`python -m benchmarks.gpu_check [--dry-run] [--only SECTION] [--out FILE]`: the sections in turn, each with
its time: whether it is right first, what only informs last.

A section over its time is left where it is and the next begins; one that fails is a row that says so. The
exit code is 0 if everything is correct and at least 80% of the speeds reach their goals.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import Row
    from .setup import Setup


@dataclass(frozen=True, slots=True)
class Section:
    """A module's function that yields rows, and the seconds it may take."""

    name: str
    module: str
    function: str
    seconds: int


SECTIONS = (
    Section("machine", "ceilings", "machine", 10),
    Section("warm", "warm", "warm", 40),
    Section("ceilings", "ceilings", "ceilings", 15),
    Section("correct", "correctness", "correctness", 60),
    Section("repeats", "correctness", "repeats", 20),
    Section("attention", "attention", "attention", 60),
    Section("products", "products", "products", 70),
    Section("others", "others", "others", 40),
    Section("engine", "through_engine", "through_engine", 30),
    Section("model", "end_to_end", "end_to_end", 110),
    Section("peers", "peers", "peers", 90),
    Section("tune", "tune", "tune", 25),
)


OUT = Path(tempfile.gettempdir()) / "octavo-gpu-check"


class OutOfTime(Exception):
    """A section's time is over."""


def alarm(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def run(section: Section, setup: Setup, add: Callable[[Row], None]) -> None:
    """Its rows, as they come. A dry run takes the time it takes."""
    from importlib import import_module

    from .report import Row

    signal.setitimer(signal.ITIMER_REAL, 0 if setup.dry else section.seconds)
    try:
        rows: Iterator[Row] = getattr(import_module(f".{section.module}", __package__), section.function)(
            setup
        )
        for row in rows:
            add(row)
    except OutOfTime:
        add(Row(section.name, "out of time", section.seconds, "s", note="SKIP the rest"))
    except Exception as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        add(Row(section.name, "failed", 0, "", passed=False, note=text))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="small, in the interpreter, no card needed")
    parser.add_argument("--only", action="append", default=[], help="this section; may be given again")
    parser.add_argument("--out", type=Path, default=OUT, help="a folder for rows.jsonl and tiles.json")
    args = parser.parse_args()
    if args.dry_run:
        os.environ["TRITON_INTERPRET"] = "1"
        import tests.kernels.triton.interpreter  # noqa: F401, which makes the interpreter exact
    from .report import Report
    from .setup import Setup

    args.out.mkdir(parents=True, exist_ok=True)
    setup, report = Setup.of(args.dry_run, args.out), Report(args.out / "rows.jsonl", not args.dry_run)
    signal.signal(signal.SIGALRM, alarm)
    for section in SECTIONS:
        if not args.only or section.name in args.only:
            run(section, setup, report.add)
    print(report.table())
    return 0 if report.verdict() else 1


if __name__ == "__main__":
    sys.exit(main())
