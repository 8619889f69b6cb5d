"""From figures to what is shown: a row for each peer and figure, for people and for scripts.

A row holds what is needed to judge it: every run, commit, machine, versions, the load before. Measures
nothing.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from engine import detect

from .goals import goal_of

WIDTHS = (9, 14, 16, 10, 10, 8, 18, 4)
HEADS = ("measure", "figure", "against", "ours", "peer", "ratio", "goal", "met")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of ours, beside a peer's if there was one. `ratio` above 1: we are better."""

    name: str
    figure: str
    model: str
    against: str  # the peer's name, "": none
    ours: float
    peer: float | None
    ratio: float | None
    goal: str
    met: bool | None
    runs: dict[str, list[float]]  # every round of either side, in order
    also: dict[str, float]  # our other figures
    about: dict[str, Any]  # commit, machine, versions, load before

    def json(self) -> str:
        """One line."""
        fields = asdict(self)
        return json.dumps(fields | fields.pop("about"))


def about(**more: Any) -> dict[str, Any]:
    """What this is measured on; asked before anything is started, so that the load is the load before."""
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    device = detect()
    return {
        "commit": commit,
        "machine": f"{device.name}, {device.cores} cores, {device.memory_total / 2**30:.0f} GiB",
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "load_before": os.getloadavg()[0] if hasattr(os, "getloadavg") else -1.0,
        **more,
    }


def make_row(
    name: str,
    figure: str,
    model: str,
    runs: Mapping[str, Sequence[dict[str, float]]],  # by side, "octavo" and at most one peer
    lower_is_better: bool,
    facts: dict[str, Any],
) -> Row:
    """The medians of all rounds, and their ratio."""
    (against, theirs) = next(((side, rounds) for side, rounds in runs.items() if side != "octavo"), ("", ()))
    rounds = runs["octavo"]
    ours = statistics.median(found[figure] for found in rounds)
    peer = statistics.median(found[figure] for found in theirs) if theirs else None
    ratio = None
    if peer is not None:
        ratio = peer / ours if lower_is_better else ours / peer
    goal = goal_of(name, figure, model, against)
    return Row(
        name=name,
        figure=figure,
        model=model,
        against=against,
        ours=ours,
        peer=peer,
        ratio=ratio,
        goal=str(goal or ""),
        met=goal.met(ours, ratio) if goal else None,
        runs={side: [found[figure] for found in each] for side, each in runs.items()},
        also={key: statistics.median(each[key] for each in rounds) for key in rounds[0] if key != figure},
        about=facts,
    )


def number(value: float | None) -> str:
    """Four digits of it, nothing for nothing."""
    return "" if value is None else f"{value:.4g}"


def cells(row: Row) -> list[str]:
    """A row in words, in the order of HEADS."""
    met = {True: "yes", False: "NO", None: ""}[row.met]
    numbers = [number(value) for value in (row.ours, row.peer, row.ratio)]
    return [row.name, row.figure, row.against, *numbers, row.goal, met]


def table(rows: Sequence[Row]) -> str:
    """For people, in a terminal; below it the runs, whose spread says how far to trust the rest."""
    lines = ["".join(head.ljust(width) for head, width in zip(HEADS, WIDTHS))]
    lines += ["".join(cell.ljust(width) for cell, width in zip(cells(row), WIDTHS)) for row in rows]
    runs = {(row.figure, side): each for row in rows for side, each in row.runs.items()}
    lines += [f"  {figure}, {side}: {' '.join(map(number, each))}" for (figure, side), each in runs.items()]
    lines += [f"  {key}: {number(value)}" for key, value in rows[-1].also.items()]
    facts = rows[-1].about
    lines.append(f"  {facts['machine']}; {facts['commit']}; load before {facts['load_before']:.2f}")
    return "\n".join(lines)


def markdown(found: Iterable[dict[str, Any]]) -> str:
    """The table of RESULTS.md, from rows read back."""
    lines = ["| model | measure | ours | peer | ratio | goal |", "|---|---|---|---|---|---|"]
    for row in found:
        peer = f"{number(row['peer'])} ({row['against']})" if row["against"] else ""
        goal = row["goal"] + {True: ", met", False: ", **not met**", None: ""}[row["met"]]
        model, name = row["model"].removesuffix(".gguf"), f"{row['name']}: {row['figure']}"
        lines.append(
            f"| {model} | {name} | {number(row['ours'])} | {peer} | {number(row['ratio'])} | {goal} |"
        )
    return "\n".join(lines)
