"""What sequences hold: prefixes over several kinds, room promised to others, and forks past a window."""

from __future__ import annotations

from engine.scheduling.block_pool import PADDING, BlockPool, Chain, Identity, PageKind
from engine.scheduling.block_tables import BlockTables
from engine.scheduling.sequence import Sequence

BLOCK = 4
ROOT = Chain.root(b"", Identity("", "", "", "", BLOCK))


def tables_of(*windows: int, num_blocks: int = 20, max_step_tokens: int = 32) -> BlockTables:
    pools = tuple(BlockPool(PageKind(str(w), (), 1, w), num_blocks + 1, BLOCK) for w in windows)
    return BlockTables(pools, max_step_tokens)


def sequence(tables: BlockTables, length: int, max_length: int = 1000) -> Sequence:
    seq = Sequence("s", list(range(length)))
    seq.root, seq.max_length, seq.block_tables = ROOT, max_length, tuple([] for _ in tables.pools)
    return seq


def compute(tables: BlockTables, seq: Sequence, end: int) -> None:
    assert tables.can_grow(seq, end)
    tables.grow(seq, end)
    seq.num_scheduled = end
    tables.advance(seq, end)
    tables.check([seq])


def test_a_prefix_must_have_every_block_of_a_full_kind() -> None:
    tables = tables_of(0)
    seq = sequence(tables, 20)
    compute(tables, seq, 20)
    first, second, *_ = seq.block_tables[0]
    tables.release(seq)
    assert tables.prefix(sequence(tables, 20)) == ([first, second, *seq_tail(tables)],)
    tables.pools[0].unregister(tables.pools[0].share(second))
    assert tables.prefix(sequence(tables, 20)) == ([first],)


def seq_tail(tables: BlockTables) -> list[int]:
    """The third and fourth block of 20 tokens; the fifth holds the last token."""
    seq = sequence(tables, 20)
    return [tables.pools[0].lookup(seq.chain(index, BLOCK)) for index in (2, 3)]


def test_of_a_window_only_the_blocks_it_looks_at() -> None:
    tables = tables_of(0, 6)
    seq = sequence(tables, 21)
    compute(tables, seq, 21)
    assert seq.block_tables[1][:4] == [PADDING] * 4 and len(seq.block_tables[0]) == 6
    tables.release(seq)
    full, window = tables.prefix(sequence(tables, 21))
    assert len(full) == len(window) == 5 and window[:3] == [PADDING] * 3 and PADDING not in window[3:]
    # without the newest of the window's blocks the prefix ends where an older pair is still there
    tables.pools[1].unregister(tables.pools[1].share(window[4]))
    assert [len(table) for table in tables.prefix(sequence(tables, 21))] == [4, 4]


def test_room_is_kept_for_those_who_run() -> None:
    tables = tables_of(0, num_blocks=10)
    running = sequence(tables, 20, max_length=24)
    compute(tables, running, 4)
    waiting = sequence(tables, 12, max_length=14)
    assert tables.fits(waiting, tables.prefix(waiting), [running])  # 6 for the one, 4 for the other
    longer = sequence(tables, 16, max_length=20)
    assert not tables.fits(longer, ([],), [running])
    assert tables.fits(longer, ([],), [])


def test_cached_hits_are_not_counted_as_available_twice() -> None:
    tables = tables_of(0, num_blocks=4)
    seq = sequence(tables, 12)
    compute(tables, seq, 12)
    tables.release(seq)
    again = sequence(tables, 16, max_length=17)
    assert tables.fits(again, tables.prefix(again), [])  # three hits and the free block
    other = sequence(tables, 1, max_length=2)
    compute(tables, other, 1)
    assert not tables.fits(again, tables.prefix(again), [other])


def test_a_fork_past_the_window_is_not_made() -> None:
    tables = tables_of(0, 6)
    parent, child = sequence(tables, 21), sequence(tables, 22)
    compute(tables, parent, 21)
    assert not tables.fork(parent, child, 20)
    assert child.num_computed == 0 and not any(child.block_tables)
    assert tables.fork(parent, child, 21) and child.num_computed == 21
    tables.check([parent, child])


def test_slack_is_what_can_be_had_without_asking_anyone() -> None:
    tables = tables_of(0, num_blocks=5)
    seq = sequence(tables, 6)
    compute(tables, seq, 6)
    assert tables.slack(seq, 7) == 1 + 3 * BLOCK
    assert tables.can_grow(seq, 20) and not tables.can_grow(seq, 21)


def test_the_longest_sequence_is_bounded_by_kinds_that_keep_everything() -> None:
    assert tables_of(0, 6).max_length(1000) == 20 * BLOCK + 1
    assert tables_of(6).max_length(1000) == 1000
    assert tables_of(6, num_blocks=3).max_length(1000) == 1000
    assert tables_of(6, num_blocks=2).max_length(1000) == 2 * BLOCK + 1
