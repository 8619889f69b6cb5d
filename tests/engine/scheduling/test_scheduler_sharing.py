"""Prefixes, forks and windows: what is computed once, copied once, and given back early."""

from __future__ import annotations

import pytest

from .machine import BLOCK, Machine, counts, right

# ---- prefixes


def test_a_shared_prefix_is_computed_once() -> None:
    machine = Machine()
    system = [5] * 22
    first, stranger = machine.add([*system, 1, 2]), machine.add([*system, 3, 4], owner="you")
    machine.step()
    second = machine.add([*system, 3, 4])
    plan = machine.step()
    assert (first.num_cached, stranger.num_cached, second.num_cached) == (0, 0, 20)
    assert counts(plan)[second] == 4
    machine.finish()


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_last_token_of_a_prompt_is_always_computed(extra: int) -> None:
    machine = Machine()
    prompt = [9] * (3 * BLOCK + extra)
    machine.add(prompt)
    machine.finish()
    again = machine.add(prompt)
    machine.step()
    assert again.num_cached == (2 if extra < 1 else 3) * BLOCK
    machine.finish()


def test_the_next_turn_finds_prompt_and_answer() -> None:
    machine = Machine()
    first = machine.add(10, 10)
    machine.finish()
    second = machine.add([*first.tokens, 1, 2, 3])
    machine.finish()
    assert second.num_cached == 16  # of the 20 tokens the last was never computed


def test_a_full_pool_gives_up_cached_prefixes() -> None:
    machine = Machine(num_blocks=8)
    machine.add([1] * 16, 1)
    machine.finish()
    assert machine.pools[0].num_cached == 4
    machine.add([2] * 28, 1)
    machine.finish()
    again = machine.add([1] * 16, 1)
    machine.finish()
    assert again.num_cached == BLOCK  # three blocks were taken, the tail first


def test_with_a_window_a_prefix_needs_only_its_last_blocks() -> None:
    machine = Machine(windows=(0, 6), num_blocks=20)
    machine.add(40, 1)
    machine.finish()
    window = machine.pools[1]
    for block in list(window._cached)[:6]:  # the oldest slid out first
        window.unregister(block)
        del window._cached[block]
        window._free.append(block)
    again = machine.add([*range(40), 1], 1)
    machine.step()
    assert again.num_cached == 40
    machine.finish()


# ---- copy on write


def test_forks_share_all_blocks_until_one_writes() -> None:
    machine = Machine()
    parent = machine.add(10, 8)
    machine.step()
    children = [machine.make(10, 8, seed=seed) for seed in (1, 2)]
    for child in children:
        machine.scheduler.fork(parent, child, machine.now)
    assert machine.pools[0].num_used == 3 and [child.num_cached for child in children] == [9, 9]
    plan = machine.step()
    # three write to the third block: the first two copy it, the last has it to itself
    assert len(plan.copies) == 2 and {copy.source for copy in plan.copies} == {3}
    assert machine.pools[0].num_used == 2 + 3
    machine.finish()
    assert len({tuple(seq.tokens) for seq in (parent, *children)}) == 3


def test_a_branch_shares_what_both_have_in_common() -> None:
    machine = Machine()
    parent = machine.add(10, 8)
    machine.step()
    branch = machine.make([*range(7), 70, 71], 3)
    machine.scheduler.fork(parent, branch, machine.now)
    assert branch.num_computed == 7 and machine.pools[0].num_used == 3
    machine.finish()


def test_the_last_holder_of_a_block_writes_in_place_and_takes_it_from_the_cache() -> None:
    machine = Machine(num_blocks=3)
    parent = machine.add(6, 6)
    machine.step()
    child = machine.make(6, 6, seed=1)
    machine.scheduler.fork(parent, child, machine.now)
    machine.scheduler.abort(parent.id)
    plan = machine.step()
    assert plan.copies == () and counts(plan) == {child: 1}
    machine.finish()
    assert right(child)


def test_the_last_holder_takes_a_block_out_of_the_cache_before_it_writes() -> None:
    machine = Machine()
    parent = machine.add(10, 8)
    machine.step()
    branch = machine.make([*range(6), 70], 8)
    machine.scheduler.fork(parent, branch, machine.now)
    machine.scheduler.abort(parent.id)
    machine.step()
    again = machine.add(10, 1)
    machine.step()
    assert branch.num_cached == 6 and again.num_cached == 4
    machine.finish()


def test_without_a_block_for_the_copy_the_other_holder_gives_way() -> None:
    machine = Machine(num_blocks=2)
    parent = machine.add(6, 3)
    machine.step()
    child = machine.make(6, 3, seed=1)
    machine.scheduler.fork(parent, child, machine.now)
    plan = machine.step()
    assert counts(plan) == {parent: 1} and plan.copies == () and child in machine.scheduler.waiting
    machine.finish()
    assert right(child)


def test_a_fork_of_one_in_flight_shares_only_full_blocks() -> None:
    machine = Machine()
    parent = machine.add(10, 8)
    machine.step()
    plan = machine.schedule()
    child = machine.make(10, 8, seed=1)
    machine.scheduler.fork(parent, child, machine.now)
    assert child.num_computed == 8
    machine.commit(plan)
    machine.finish()


def test_without_a_seat_or_a_running_parent_a_fork_waits_like_anyone() -> None:
    machine = Machine(max_num_seqs=1)
    parent = machine.add(10, 4)
    machine.step()
    child = machine.make(10, 4, seed=1)
    machine.scheduler.fork(parent, child, machine.now)
    assert child in machine.scheduler.waiting
    machine.finish()
    late = machine.make(10, 4, seed=2)
    machine.scheduler.fork(parent, late, machine.now)
    machine.finish()
    assert child.num_cached == late.num_cached == 8


# ---- windows


def test_blocks_that_slid_out_are_free_for_others() -> None:
    machine = Machine(windows=(0, 6), num_blocks=30)
    machine.add(20, 40)
    full, window = machine.pools
    machine.step()
    while machine.scheduler.has_work():
        assert window.num_used <= 3
        machine.step()
    assert full.num_used == 0


def test_a_small_window_pool_cuts_steps_short_instead_of_refusing() -> None:
    machine = Machine(windows=(6,), num_blocks=3)
    seq = machine.add(50, 10)
    assert machine.scheduler.max_length == 1000
    assert max(counts(machine.step())[seq] for _ in range(5)) <= 12
    machine.finish()
    assert right(seq) and len(seq.tokens) == 60
