"""Who is let in, who goes first, who gives way, how a sequence ends. Random lives: test_simulator.py."""

from __future__ import annotations

import pytest

from engine.errors import BadRequest, PromptTooLong
from engine.scheduling.pace import Pace
from engine.scheduling.scheduler import AGE_S
from engine.types import FinishReason, Priority

from .machine import BLOCK, Machine, counts, right

# ---- at the door


def test_what_can_never_fit_is_refused_with_both_numbers() -> None:
    machine = Machine(context_length=50)
    with pytest.raises(
        PromptTooLong, match="prompt has 40 tokens and its answer needs 11, together 51; at most 50"
    ):
        machine.add(40, 11)
    with pytest.raises(PromptTooLong, match=r"^This conversation has 50 tokens; 50 fit, the answer"):
        machine.add(50, None)
    with pytest.raises(BadRequest, match="empty"):
        machine.add([])
    assert not machine.scheduler.has_work()
    assert machine.add(40, 10).max_length == 50
    assert machine.add(40, None).max_length == 50
    machine.finish()


def test_the_pool_limits_length_too_but_the_last_token_needs_no_place() -> None:
    machine = Machine(num_blocks=5, context_length=50)
    assert machine.scheduler.max_length == 5 * BLOCK + 1
    with pytest.raises(PromptTooLong, match="together 22; at most 21"):
        machine.add(12, 10)
    seq = machine.add(12, 9)
    machine.finish()
    assert len(seq.tokens) == 21 and seq.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("warm", [False, True])
def test_every_size_around_a_small_pool_is_refused_or_served(warm: bool) -> None:
    """Exhaustive at 16 blocks; whoever stands behind in the line is served in any case."""
    size = 16 * BLOCK
    text = [n % 7 for n in range(size + 2 * BLOCK)]
    for prompt in range(1, size + 2 * BLOCK):
        for answer in (None, 1, 2, 3, BLOCK, size + 1 - prompt, size + 2 - prompt):
            if answer is not None and answer < 1:
                continue
            machine = Machine(num_blocks=16)
            if warm:
                machine.add(text[: prompt // 2 + 1], 1)
                machine.finish()
            if prompt + (answer or 1) > size + 1:
                with pytest.raises(PromptTooLong):
                    machine.add(text[:prompt], answer)
            else:
                machine.add(text[:prompt], answer)
            machine.add(3, 2)
            machine.finish()


# ---- one step, no phases


def test_a_prompt_is_computed_in_chunks_beside_an_answer() -> None:
    machine = Machine(pace=(pace := Pace(0.05)))
    answering = machine.add(5, 50)
    machine.step()
    reading = machine.add([7] * 100, 2)
    for chunk in (48, 48, 4):
        pace.token_s, pace.place_s = 0.001, 0.0
        assert counts(machine.step()) == {answering: 1, reading: chunk}
    assert counts(machine.step()) == {answering: 1, reading: 1}
    machine.finish()


def test_a_step_is_never_larger_than_allowed() -> None:
    machine = Machine(max_num_seqs=4, max_step_tokens=32)
    for n in range(6):
        machine.add([n] * 40, 5)
    while machine.scheduler.has_work():
        plan = machine.step()
        assert sum(counts(plan).values()) <= 32 and len(plan.items) <= 4


def test_only_the_last_chunk_samples() -> None:
    machine = Machine(max_num_seqs=4, max_step_tokens=20)
    machine.add(40, 3)
    items = [machine.step().items[0] for _ in range(5)]
    assert [(item.start, item.num_tokens, item.samples) for item in items] == [
        (0, 16, 0),
        (16, 16, 0),
        (32, 8, 1),
        (40, 1, 1),
        (41, 1, 1),
    ]
    assert not machine.scheduler.has_work()


def test_an_end_token_stops_and_is_kept() -> None:
    machine = Machine()
    seq = machine.make(6, 20)
    seq.end_ids = frozenset({seq.request.token(8)})
    machine.scheduler.add(seq, 0.0)
    machine.finish()
    assert seq.finish_reason is FinishReason.STOP and len(seq.tokens) == 9


# ---- a full pool


def test_the_least_urgent_gives_way_and_comes_back() -> None:
    machine = Machine(num_blocks=10)
    first, last = machine.add([1] * 12, 20), machine.add([2] * 12, 20)
    preempted = 0
    for _ in range(100):
        if not machine.scheduler.has_work():
            break
        plan = machine.step()
        assert first.finish_reason or first in counts(plan)  # the most urgent never waits
        preempted += last in machine.scheduler.waiting
    assert preempted and right(first) and right(last) and last.num_cached == 0
    assert len(first.tokens) == len(last.tokens) == 32


def test_one_that_does_not_fit_waits_and_is_not_overtaken() -> None:
    machine = Machine(num_blocks=10)
    machine.add([1] * 16, 10)
    machine.step()
    large, small = machine.add([2] * 32, 2), machine.add([3] * 2, 2)
    machine.step()
    assert machine.scheduler.waiting == [large, small]
    machine.finish()
    assert large.started is not None and small.started is not None and large.started <= small.started


def test_seats_are_limited() -> None:
    machine = Machine(max_num_seqs=2)
    for n in range(5):
        machine.add([n] * 8, 3)
    while machine.scheduler.has_work():
        assert len(machine.step().items) <= 2
        assert len(machine.scheduler.running) <= 2


# ---- who goes first


def test_classes_go_in_order_and_waiting_raises_urgency() -> None:
    machine = Machine(max_num_seqs=1)
    patient = machine.add(3, 1, priority=Priority.BACKGROUND)
    machine.now = 2 * AGE_S
    chat = machine.add(3, 1, priority=Priority.CHAT)
    shown = machine.add(3, 1, priority=Priority.FOREGROUND)
    order = [machine.step().items[0].sequence for _ in range(3)]
    assert order == [shown, patient, chat]  # 2 classes and 2 * AGE_S: a tie, which the earlier one wins


def test_background_work_starts_however_many_come_later() -> None:
    machine = Machine(max_num_seqs=1)
    patient = machine.add(3, 1, priority=Priority.BACKGROUND)
    while patient.started is None:
        machine.add(3, 1, priority=Priority.FOREGROUND)
        machine.now += 10
        machine.step()
    assert patient.started <= 3 * AGE_S + 20


def test_the_chat_on_screen_takes_a_seat_from_lower_classes_only() -> None:
    machine = Machine(max_num_seqs=2)
    chat, api = machine.add(3, 50, priority=Priority.FOREGROUND), machine.add(3, 50, priority=Priority.API)
    machine.step()
    shown, more = (machine.add(3, 50, priority=Priority.FOREGROUND) for _ in range(2))
    assert shown in counts(machine.step()) and api in machine.scheduler.waiting
    machine.step()
    assert more in machine.scheduler.waiting and set(machine.scheduler.running) == {chat, shown}
    machine.finish()
    assert right(api) and len(api.tokens) == 53


def test_long_waiting_throws_nobody_out_of_a_higher_class() -> None:
    machine = Machine(num_blocks=20, max_num_seqs=3)
    chat = machine.add(20, 40, priority=Priority.FOREGROUND)
    machine.step()
    patient = machine.add([1] * 60, 1, priority=Priority.BACKGROUND)
    machine.now = 10 * AGE_S
    branch = machine.make(20, 40, priority=Priority.FOREGROUND, seed=1)
    machine.scheduler.fork(chat, branch, machine.now)
    machine.step()
    assert patient.urgency < branch.urgency and machine.scheduler.running == [chat, branch]
    machine.finish()


# ---- stopping and failing


def test_abort_gives_everything_back_at_every_moment() -> None:
    for steps in range(12):
        machine = Machine(pace=Pace(0.016, 0.001))
        other = machine.add([3] * 9, 8)
        seq = machine.add(50, 6)
        for _ in range(steps):
            machine.step()
        running = seq.finish_reason is None
        assert machine.scheduler.abort(seq.id) is (seq if running else None)
        assert machine.scheduler.abort(seq.id) is None and machine.scheduler.abort("nobody") is None
        assert seq.finish_reason is (FinishReason.CANCELLED if running else FinishReason.LENGTH)
        machine.scheduler.check()
        assert not any(seq.block_tables)
        machine.finish()
        assert right(other)


def test_one_that_fails_takes_nobody_along() -> None:
    machine = Machine()
    bad, good = machine.add(5), machine.add(6)
    plan = machine.schedule()
    sampled = machine.device.run(plan)
    failed = machine.scheduler.fail(bad, "not a number")
    assert (failed.sequence, failed.reason, failed.error) == (bad, FinishReason.ERROR, "not a number")
    progress = machine.scheduler.commit(plan, [[], sampled[1]], 1.0)
    assert [each.sequence for each in progress] == [good]
    machine.scheduler.check()
    machine.finish()
    assert right(good) and bad not in machine.scheduler.running


def test_a_step_that_did_not_run_is_done_again() -> None:
    machine = Machine()
    one, two = machine.add(20, 5), machine.add([1] * 9, 5)
    machine.step()
    machine.scheduler.discard(machine.schedule())
    machine.scheduler.check()
    assert machine.scheduler.running == [] and one.num_computed == 0 and len(one.tokens) == 21
    plan = machine.step()
    assert counts(plan) == {one: 1, two: 2}  # the rest came from the prefix cache
    assert one.num_cached == 0
    machine.finish()
