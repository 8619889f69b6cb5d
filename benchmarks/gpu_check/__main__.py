"""`python -m benchmarks.gpu_check [--dry-run] [--only SECTION] [--out FILE]`: the sections in turn, each with
its time: whether it is right first, what only informs last.

A section over its time is left where it is and the next begins; one that fails is a row that says so. Where
it took the card's context with it, a new process goes on with the rest. The exit code is 0 if everything is
correct and at least 80% of the speeds reach their goals.
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


CEILINGS = "ceilings"  # what the others are held against
SECTIONS = (
    Section("machine", "ceilings", "machine", 40),
    Section("warm", "warm", "warm", 45),
    Section(CEILINGS, "ceilings", "ceilings", 15),
    Section("correct", "correctness", "correctness", 50),
    Section("repeats", "correctness", "repeats", 20),
    Section("attention", "attention", "attention", 50),
    Section("products", "products", "products", 70),
    Section("others", "others", "others", 40),
    Section("engine", "through_engine", "through_engine", 30),
    Section("model", "end_to_end", "end_to_end", 100),
    Section("peers", "peers", "peers", 80),
    Section("tune", "tune", "tune", 20),
)


OUT = Path(tempfile.gettempdir()) / "octavo-gpu-check"


class OutOfTime(BaseException):
    """A section's time is over. No Exception: sections take those of single cases for findings."""


def alarm(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTime


def run(section: Section, setup: Setup, add: Callable[[Row], None]) -> None:
    """Its rows, as they come. A dry run takes the time it takes."""
    from importlib import import_module

    from .report import Row, failed

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
        add(failed(section.name, "failed", error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="small, in the interpreter, no card needed")
    parser.add_argument("--only", action="append", default=[], help="this section; may be given again")
    parser.add_argument("--out", type=Path, default=OUT, help="a folder for rows.jsonl and tiles.json")
    parser.add_argument("--go-on", action="store_true", help="with the rows of another process")
    args = parser.parse_args()
    if args.dry_run:
        os.environ["TRITON_INTERPRET"] = "1"
        import tests.kernels.triton.interpreter  # noqa: F401, which makes the interpreter exact
    from .report import Report
    from .setup import Setup

    args.out.mkdir(parents=True, exist_ok=True)
    report = Report(args.out / "rows.jsonl", not args.dry_run, args.go_on)
    setup = Setup.of(args.dry_run, args.out)
    signal.signal(signal.SIGALRM, alarm)
    asked = [section for section in SECTIONS if not args.only or section.name in args.only]
    for at, section in enumerate(asked, 1):
        run(section, setup, report.add)
        if not setup.is_alive():
            go_on([each.name for each in asked[at:]], args.out)
    print(report.table())
    return 0 if report.verdict() else 1


def go_on(names: list[str], out: Path) -> None:
    """The rest of the run in a process whose context is sound, in this one's place."""
    command = [sys.executable, "-m", "benchmarks.gpu_check", "--go-on", "--out", str(out)]
    sections = dict.fromkeys([CEILINGS, *names]) if names else {}
    only = [word for name in sections or ["none"] for word in ("--only", name)]
    os.execv(sys.executable, [*command, *only])


if __name__ == "__main__":
    sys.exit(main())
