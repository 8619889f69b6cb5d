"""The picture of the memory says who holds what, what is shared, and what idle chats have left."""

from __future__ import annotations

from array import array

from engine.scheduling.block_pool import BlockPool
from engine.scheduling.pool_picture import Group, PoolPicture, draw

from .machine import BLOCK, Machine

SAME = list(range(3 * BLOCK))


def picture(machine: Machine) -> PoolPicture:
    tables = machine.scheduler.tables
    return draw(machine.pools, machine.scheduler.running, tables.ledger)[0]


def groups(machine: Machine) -> dict[str, Group]:
    return {group.name: group for group in picture(machine).groups}


def test_an_empty_pool() -> None:
    seen = picture(Machine(num_blocks=20))
    assert seen.groups == () and seen.num_written == 0
    assert seen.states == bytes(20) and seen.sharers == bytes(20) and seen.owners == bytes(40)


def test_two_chats_that_begin_alike() -> None:
    machine = Machine(num_blocks=20)
    machine.add([*SAME, 50, 51], 4, group="one")
    machine.step()
    machine.add([*SAME, 60, 61], 4, group="two")
    machine.step()
    found = groups(machine)
    assert (found["one"].used, found["one"].shared) == (4, 3) == (found["two"].used, found["two"].shared)
    seen = picture(machine)
    owners = array("H", seen.owners)
    assert seen.states.count(BlockPool.USED) == 5 and seen.sharers.count(2) == 3
    assert sorted(owners)[-5:] == [1, 1, 1, 1, 2]  # what is shared belongs to the first
    machine.finish()
    found = groups(machine)
    assert (found["one"].held, found["one"].used, found["one"].shared) == (4, 0, 3)
    assert picture(machine).states.count(BlockPool.CACHED) == 5


def test_a_chat_s_next_turns_are_counted_once() -> None:
    machine = Machine(num_blocks=40)
    first = machine.add(SAME, 5, group="chat")
    machine.finish()
    machine.add([*first.tokens, 1, 2, 3], 5, group="chat")
    machine.finish()
    (group,) = groups(machine).values()
    assert group.held == machine.pools[0].num_cached and group.shared == 0


def test_what_was_given_up_is_forgotten() -> None:
    machine = Machine(num_blocks=8)
    for number in range(200):
        machine.add([number] * 5, 3, group=f"chat {number}")
        machine.finish()
    assert len(machine.scheduler.tables.ledger.left) <= 5 * 9
    assert len(groups(machine)) <= 8
    machine.pools[0].drop_cached()
    assert not groups(machine)


def test_a_pool_that_was_made_smaller() -> None:
    machine = Machine(num_blocks=20, context_length=20)
    machine.add(SAME, 4, group="chat")
    machine.step()
    pool = machine.pools[0]
    machine.scheduler.tables.resize(0, machine.scheduler.max_length)
    assert pool.num_usable == 5 and picture(machine).states.count(BlockPool.KEPT) == 15  # one whole chat
    machine.finish()
    machine.add([7] * 15, 5)
    machine.finish()
    machine.scheduler.tables.resize(12, machine.scheduler.max_length)
    assert pool.num_usable == 12
    machine.scheduler.tables.resize(99, machine.scheduler.max_length)
    assert pool.num_usable == 20 and BlockPool.KEPT not in picture(machine).states


def test_answers_keep_their_blocks_when_the_pool_shrinks() -> None:
    machine = Machine(num_blocks=40, context_length=40)
    for number in range(3):
        machine.add([number] * 24, 8)
    machine.step()
    assert machine.pools[0].num_used >= 18
    machine.scheduler.tables.resize(0, machine.scheduler.max_length)
    assert machine.pools[0].num_used >= 18 and machine.pools[0].num_available == 0
    machine.finish()
    assert machine.pools[0].num_usable == 10
    machine.scheduler.check()
