"""The guard against regressions: ratios measured now against ratios kept in ratios.json.

Times differ from machine to machine and from minute to minute; what two programs reach in turn in one run,
much less. So only ratios to a peer are compared, and only what fell by more than the tolerance is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("ratios.json")
TOLERANCE = 0.15


def read_rows(logs: Iterable[Path]) -> list[dict[str, Any]]:
    """The rows in what `python -m benchmarks` printed; the last of a kind counts."""
    lines = [line for log in logs for line in log.read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return list({key(row): row for row in rows}.values())


def key(row: dict[str, Any]) -> str:
    """What a ratio is kept under."""
    return " | ".join((row["name"], row["figure"], row["model"], row["against"]))


def ratios(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The ratios of all rows that have one."""
    return {key(row): round(row["ratio"], 3) for row in rows if row["ratio"] is not None}


def fallen(now: dict[str, float], kept: dict[str, float], tolerance: float = TOLERANCE) -> list[str]:
    """A sentence for each ratio that fell too far; what was not measured now is not judged."""
    return [
        f"{name}: {now[name]:.3f}, kept is {before:.3f}; that is {1 - now[name] / before:.0%} less"
        for name, before in kept.items()
        if name in now and now[name] < before * (1 - tolerance)
    ]


def keep(now: dict[str, float], place: Path = KEPT) -> None:
    """Write the ratios measured now over those of the same name."""
    place.write_text(json.dumps(read_kept(place) | now, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_kept(place: Path = KEPT) -> dict[str, float]:
    """The ratios as they were kept."""
    return dict(json.loads(place.read_text(encoding="utf-8"))) if place.exists() else {}
