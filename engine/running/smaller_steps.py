"""A step that the device has no memory for is computed in pieces, ever smaller ones.

What does not even fit alone ends that one request; the others that did not fit are put off to the next step,
where there is more room. Copies of blocks are made before whatever is computed first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..errors import DeviceFull, EngineError
from ..scheduling.plan import Plan, PlanItem

Run = Callable[[Plan], list[list[int] | EngineError]]
Piece = tuple[tuple[int, PlanItem], ...]  # items, or a part of one, with their places in the plan


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a plan: the items that were computed, or failed, and those that were not."""

    plan: Plan
    sampled: list[list[int] | EngineError]
    put_off: Plan


def run_in_pieces(run: Run, plan: Plan, error: DeviceFull) -> Outcome:
    """Run a plan that there was no memory for (`error`) when it was run whole, in as few pieces as fit.

    At most one of its requests fails. Those that have ended meanwhile are put off, too.
    """
    found: dict[int, list[int] | EngineError] = {}
    put_off = {place for place, item in enumerate(plan.items) if item.sequence.finish_reason}
    ahead: list[Piece] = []

    def shrink(piece: Piece, error: DeviceFull) -> None:
        if smaller := _halves(piece):
            ahead.extend(reversed(smaller))
        elif any(isinstance(result, DeviceFull) for result in found.values()):
            put_off.add(piece[0][0])
        else:
            found[piece[0][0]] = error

    copies = plan.copies
    shrink(tuple((place, item.with_known_tokens()) for place, item in enumerate(plan.items)), error)
    while ahead:
        piece = tuple(each for each in ahead.pop() if each[0] not in put_off and not _is_over(found, each[0]))
        if not piece:
            continue
        try:
            sampled = run(Plan(tuple(item for _, item in piece), copies, plan.scheduled))
        except DeviceFull as error:
            shrink(piece, error)
            continue
        copies = ()
        found |= {place: result for (place, _), result in zip(piece, sampled, strict=True)}
    kept, rest = (
        tuple(item for place, item in enumerate(plan.items) if (place in put_off) == is_off)
        for is_off in (False, True)
    )
    results = [found[place] for place in range(len(plan.items)) if place not in put_off]
    return Outcome(replace(plan, items=kept), results, Plan(rest, (), plan.scheduled))


def _is_over(found: dict[int, list[int] | EngineError], place: int) -> bool:
    return isinstance(found.get(place), EngineError)


def _halves(piece: Piece) -> list[Piece]:
    """Two smaller ones; of a single item its earlier and its later tokens. None where it is one token, or all
    of its tokens are sampled after.
    """
    if len(piece) > 1:
        return [piece[: len(piece) // 2], piece[len(piece) // 2 :]]
    if not piece:
        return []
    ((place, item),) = piece
    length = min(item.num_tokens // 2, item.num_tokens - item.samples)
    if length < 1:
        return []
    begin = replace(item, token_ids=item.token_ids[:length], drafts=(), samples=0)
    rest = replace(item, start=item.start + length, token_ids=item.token_ids[length:])
    return [((place, begin),), ((place, rest),)]
