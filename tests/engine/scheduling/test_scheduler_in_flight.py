"""A step planned before the last one is committed, and drafts: what is known when, and whose blocks stay."""

from __future__ import annotations

import pytest

from engine.scheduling.plan import UNKNOWN
from engine.types import FinishReason, Priority

from .machine import Machine, right

# ---- depth 1


def test_the_next_step_is_planned_before_the_token_is_known() -> None:
    machine = Machine()
    seq = machine.add(6, 3)
    first = machine.schedule()
    second = machine.schedule()
    assert second.items[0].token_ids == (UNKNOWN,) and second.items[0].start == 6
    assert not machine.schedule()  # it may be at its end: nothing to plan
    machine.commit(first)
    machine.commit(second)
    assert right(seq) and len(seq.tokens) == 8


def test_no_step_is_wasted_on_what_will_have_ended() -> None:
    machine = Machine()
    seq = machine.add(6, 1)
    first = machine.schedule()
    assert not machine.schedule()
    machine.commit(first)
    assert seq.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("stop", ["abort", "end token", "fail"])
def test_blocks_stay_until_no_step_in_flight_names_them(stop: str) -> None:
    machine = Machine()
    seq = machine.make(6, 10)
    if stop == "end token":
        seq.end_ids = frozenset({seq.request.token(6)})
    machine.scheduler.add(seq, 0.0)
    first, second = machine.schedule(), machine.schedule()
    if stop == "abort":
        machine.scheduler.abort(seq.id)
    elif stop == "fail":
        machine.scheduler.fail(seq, "")
    machine.commit(first)
    assert seq.finish_reason and machine.pools[0].num_used == 2 and not machine.scheduler.has_work()
    assert machine.commit(second) == []
    assert machine.pools[0].num_used == 0


def test_a_preempted_sequence_in_flight_keeps_its_token_and_its_blocks_until_then() -> None:
    machine = Machine(num_blocks=6)
    first, last = machine.add([1] * 7, 14), machine.add([2] * 7, 14)
    plan = machine.schedule()
    while last not in machine.scheduler.waiting:
        following = machine.schedule()
        machine.commit(plan)
        plan = following
    machine.finish()
    assert right(first) and right(last) and len(last.tokens) == 21


def test_nobody_behind_takes_the_blocks_that_someone_waits_for() -> None:
    machine = Machine(max_num_seqs=4, max_step_tokens=20)
    behind, leaving = machine.add(3, 9), machine.add([7] * 3, 9)
    machine.step()
    first = machine.add([8] * 32, priority=Priority.FOREGROUND)
    machine.schedule()  # `behind` needs a new block next, `first` four
    machine.scheduler.abort(leaving.id)
    pool = machine.pools[0]
    while pool.num_available > 1:
        pool.acquire()
    assert not machine.scheduler.schedule(machine.now).items
    assert machine.scheduler.running == [behind, first]  # and nobody else was sent away meanwhile


def test_after_a_step_that_did_not_run_nobody_starts_while_a_later_one_is_in_flight() -> None:
    machine = Machine()
    seq = machine.add(6, 5)
    first, second = machine.schedule(), machine.schedule()
    machine.scheduler.discard(first)
    assert not machine.schedule() and machine.pools[0].num_used == 2
    machine.scheduler.discard(second)
    machine.finish()
    assert right(seq)


# ---- drafts


def test_drafts_count_as_far_as_they_are_right() -> None:
    guesses: list[int] = []
    machine = Machine(propose=lambda seq, limit: guesses[:limit])
    seq = machine.add(6, 12)
    true = [seq.request.token(6 + n) for n in range(12)]
    machine.step()
    for right_ones, wrong_ones in ((3, 1), (0, 2), (2, 0)):
        at = len(seq.tokens) - 6
        guesses[:] = [*true[at : at + right_ones], *[-5] * wrong_ones]
        plan = machine.schedule()
        assert plan.items[0].samples == 1 + len(guesses) and plan.items[0].drafts == tuple(guesses)
        assert not machine.schedule()  # nobody knows yet where to go on
        (progress,) = machine.commit(plan)
        assert list(progress.token_ids) == true[at : at + right_ones + 1]
    guesses[:] = [1] * 99
    assert len(machine.schedule().items[0].drafts) == seq.max_length - len(seq.tokens) - 1


def test_an_end_token_among_drafts_ends_the_answer_there() -> None:
    machine = Machine(
        propose=lambda seq, limit: [seq.request.token(len(seq.tokens) + n) for n in range(limit)]
    )
    seq = machine.make(6, 20)
    seq.end_ids = frozenset({seq.request.token(10)})
    machine.scheduler.add(seq, 0.0)
    machine.finish()
    assert len(seq.tokens) == 11 and seq.finish_reason is FinishReason.STOP


def test_drafts_take_no_block_from_anyone() -> None:
    machine = Machine(num_blocks=4, propose=lambda seq, limit: [1] * limit)
    first, second = machine.add([1] * 6, 3), machine.add([2] * 6, 3)
    machine.step()
    plan = machine.step()
    assert {item.sequence for item in plan.items} == {first, second}
    assert all(len(item.drafts) <= 1 for item in plan.items)
    machine.finish()
