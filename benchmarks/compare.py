"""A comparison: sides are started and loaded, then measured in turn, round after round, in one run.

In turn, because a machine changes under one's hands: what is measured a minute apart is not comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from .environments import say
from .measures import Measure
from .sides import Contender, Figures, Side


def compare(measure: Measure, contenders: Sequence[Contender], rounds: int) -> dict[str, list[Figures]]:
    """Each side's figures, round by round. Raises SideFailed."""
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(who)) for who in contenders]
        if measure.loads:
            for side in sides:
                say(f"{side.name} loads")
                side.ask("load", seqs=measure.seqs, context=measure.context)
        found: dict[str, list[Figures]] = {side.name: [] for side in sides}
        for turn in range(rounds):
            for side in sides:
                say(f"round {turn + 1} of {rounds}: {side.name}")
                found[side.name].append(measure.round(side, turn))
        return found
