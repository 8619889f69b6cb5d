"""What was found, line by line: printed and written to a file at once, so that nothing is lost when time runs
out; the table comes last, for whoever sees only the end of the output.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

SHOWN = 180  # rows of the table at most: failures first


@dataclass(frozen=True, slots=True)
class Row:
    """One finding. `passed` None: it only informs."""

    section: str
    name: str
    got: float
    unit: str
    bound: float = 0.0  # the same figure as the ceiling of this run allows
    share: float = 0.0  # how much of that is reached, or how many times a peer
    goal: float = 0.0  # what the share should be
    passed: bool | None = None
    note: str = ""

    def line(self) -> str:
        """For people."""
        word = {True: "PASS", False: "FAIL", None: "    "}[self.passed]
        text = f"{word} {self.section:12} {self.name:46} {self.got:12.4g} {self.unit:8}"
        if self.bound:
            text += f" of {self.bound:<10.4g}"
        if self.share:
            text += f" {self.share:6.2f}" + (f" (goal {self.goal:.2f})" if self.goal else "")
        return f"{text} {self.note}".rstrip()


def judged(
    section: str, name: str, got: float, unit: str, bound: float, share: float, goal: float, note: str = ""
) -> Row:
    """A row that passes where its share reaches the goal; without a goal it informs."""
    return Row(section, name, got, unit, bound, share, goal, share >= goal if goal else None, note)


def failed(section: str, name: str, error: Exception) -> Row:
    """What stands in the place of a figure."""
    note = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    return Row(section, name, 0, "", passed=False, note=note)


def attempt(section: str, name: str, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows as they come; where an error ends them it is one more, and the section goes on."""
    try:
        yield from rows
    except Exception as error:
        yield failed(section, f"{name} failed", error)


class Report:
    """All rows of a run."""

    def __init__(self, path: Path, judge_speed: bool = True, go_on: bool = False) -> None:
        """`go_on`: the rows that are there belong to this run; else the file begins anew."""
        self.path, self.rows, self.began, self.judge_speed = path, list[Row](), time.monotonic(), judge_speed
        if go_on:
            self.rows = [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
        else:
            path.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Print and keep it."""
        if row.goal and not self.judge_speed:
            row = replace(row, passed=None)
        self.rows.append(row)
        print(f"{time.monotonic() - self.began:6.1f} {row.line()}", flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")

    def table(self) -> str:
        """Failures, then what is judged, then counts by section."""
        wrong = [row for row in self.rows if row.passed is False]
        right = [row for row in self.rows if row.passed and row.section != "correct"]
        shown = [row.line() for row in (*wrong, *right)][:SHOWN]
        return "\n".join(["", *shown, "", *_counts(self.rows)])

    def verdict(self) -> bool:
        """Nothing failed but speeds, and at least 80% of these reach their goals."""
        speeds = [row.passed for row in self.rows if row.goal and row.passed is not None]
        others = [row.passed for row in self.rows if not row.goal and row.passed is not None]
        return bool(others) and all(others) and sum(map(bool, speeds)) >= 0.8 * len(speeds)


def _counts(rows: Iterable[Row]) -> list[str]:
    found = Counter((row.section, row.passed) for row in rows if row.passed is not None)
    sections = dict.fromkeys(section for section, _ in found)
    return [
        f"{name:12} {found[name, True]} of {found[name, True] + found[name, False]} pass" for name in sections
    ]
