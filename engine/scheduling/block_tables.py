"""The block tables of sequences, of all page kinds at once: finding prefixes, growing, giving back.

A sequence that has computed n tokens holds, of each kind, the blocks that its next token looks at: all of
them, or those of its window. A prefix of n tokens is a hit when every kind still has those blocks. What slid
out of the window stands in the table as PADDING:

    full    [ 7, 4, 9, 2 ]        window  [ 0, 0, 5, 3 ]

Says what fits. Who goes first, and who must give way, is the scheduler's affair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence as Seq

from .block_pool import PADDING, BlockPool, Chain
from .plan import BlockCopy
from .pool_picture import Ledger
from .sequence import Sequence


class BlockTables:
    """What sequences hold of the pools: one pool per page kind, all with the same block size."""

    def __init__(self, pools: tuple[BlockPool, ...], max_step_tokens: int) -> None:
        self.pools = pools
        self.block_size = pools[0].block_size
        self.ledger = Ledger()
        self.on_release: Callable[[Sequence], None] | None = None  # told while it still has its blocks
        assert all(pool.block_size == self.block_size for pool in pools)
        # The most blocks one sequence may hold of each kind; where that is little, its steps are cut short.
        self._most = tuple(
            min(pool.num_usable, pool.kind.blocks_across(max_step_tokens, self.block_size))
            if pool.kind.window
            else pool.num_usable
            for pool in pools
        )

    def max_length(self, at_most: int) -> int:
        """The longest sequence that fits when it is alone. Its last token is sampled, but never stored."""
        for pool in self.pools:
            slides = pool.kind.window and pool.kind.blocks_across(1, self.block_size) <= pool.num_usable
            if not slides:
                at_most = min(at_most, pool.num_usable * self.block_size + 1)
        return at_most

    # ---- finding a prefix and starting from it

    def prefix(self, seq: Sequence) -> tuple[list[int], ...]:
        """The tables of the longest cached prefix, short of the last token, whose logits are wanted."""
        longest, found = self._reach(seq, [pool.lookup for pool in self.pools])
        firsts = self.firsts(longest * self.block_size)
        return tuple([PADDING] * first + blocks[first:longest] for first, blocks in zip(firsts, found))

    def reach(self, seq: Sequence, lookups: Seq[Callable[[Chain], int]]) -> int:
        """How many blocks long its prefix would be if each kind had what its lookup finds."""
        return self._reach(seq, lookups)[0]

    def _reach(
        self, seq: Sequence, lookups: Seq[Callable[[Chain], int]]
    ) -> tuple[int, tuple[list[int], ...]]:
        """The longest prefix in blocks, and what each kind's lookup found on the way."""
        found: tuple[list[int], ...] = tuple([] for _ in self.pools)
        runs = [0] * len(self.pools)  # how many blocks were found in a row, up to here
        longest = 0
        for n in range(1, (len(seq.tokens) - 1) // self.block_size + 1):
            chain = seq.chain(n - 1, self.block_size)
            for kind, lookup in enumerate(lookups):
                found[kind].append(block := lookup(chain))
                runs[kind] = runs[kind] + 1 if block else 0
            if all(run >= n - first for run, first in zip(runs, self.firsts(n * self.block_size))):
                longest = n
            elif any(run < n and not pool.kind.window for run, pool in zip(runs, self.pools)):
                break  # a gap that no later block can make good
        return longest, found

    def fits(self, seq: Sequence, prefix: tuple[list[int], ...], running: Iterable[Sequence]) -> bool:
        """Whether it finds room for all its tokens, and those running still do for theirs."""
        for kind, (pool, table) in enumerate(zip(self.pools, prefix)):
            hits = [block for block in table if block != PADDING]
            available = pool.num_available - sum(pool.is_cached(block) for block in hits)
            promised = sum(self._wanting(kind, other, self._num_held(kind, other)) for other in running)
            if self._wanting(kind, seq, len(hits)) + promised > available:
                return False
        return True

    def adopt(self, seq: Sequence, prefix: tuple[list[int], ...]) -> None:
        """Start from the blocks of a prefix, as one more holder of each."""
        seq.block_tables = tuple(
            [pool.share(block) if block != PADDING else PADDING for block in table]
            for pool, table in zip(self.pools, prefix)
        )
        seq.num_computed = seq.num_scheduled = len(prefix[0]) * self.block_size

    def fork(self, parent: Sequence, child: Sequence, num_tokens: int) -> bool:
        """Start the child from the parent's first tokens, sharing even a block that they fill in part.

        False, and nothing done, where the parent's window has slid past what the child needs.
        """
        end = self._num_blocks(num_tokens)
        tables = tuple(table[:end] for table in parent.block_tables)
        if any(PADDING in table[first:] for table, first in zip(tables, self.firsts(num_tokens))):
            return False
        self.adopt(child, tables)
        child.num_computed = child.num_scheduled = num_tokens
        return True

    # ---- growing

    def room(self, seq: Sequence) -> int:
        """How many more tokens may be scheduled before its windows have to slide."""
        ends = (first + most for first, most in zip(self.firsts(seq.num_computed), self._most))
        return min(ends) * self.block_size - seq.num_scheduled

    def can_grow(self, seq: Sequence, end: int) -> bool:
        """Whether tokens up to `end` find room now."""
        return all(n <= pool.num_available for pool, n in zip(self.pools, self._missing(seq, end)))

    def slack(self, seq: Sequence, end: int) -> int:
        """How many tokens beyond `end` would find room now as well."""
        over = min(pool.num_available - n for pool, n in zip(self.pools, self._missing(seq, end)))
        return self._num_blocks(end) * self.block_size - end + over * self.block_size

    def grow(self, seq: Sequence, end: int) -> list[BlockCopy]:
        """Acquire blocks for the tokens up to `end`; where the first one written to is shared, a copy."""
        copies = []
        index = seq.num_scheduled // self.block_size
        for kind, (pool, table) in enumerate(zip(self.pools, seq.block_tables)):
            if self._first_is_shared(kind, seq):
                shared, table[index] = table[index], pool.acquire()
                copies.append(BlockCopy(kind, shared, table[index]))
                pool.release(shared)
            elif index < len(table):
                pool.unregister(table[index])  # one who shared it filled it in another way, and has gone
            table.extend(pool.acquire() for _ in range(self._num_blocks(end) - len(table)))
        return copies

    # ---- moving on and giving back

    def advance(self, seq: Sequence, num_computed: int) -> None:
        """Tokens up to here are certain: let the blocks they filled be found, release those that slid out."""
        for index in range(seq.num_computed // self.block_size, num_computed // self.block_size):
            chain = seq.chain(index, self.block_size)
            for pool, table in zip(self.pools, seq.block_tables):
                pool.register(table[index], chain)
        seq.num_computed = num_computed
        for pool, table, first in zip(self.pools, seq.block_tables, self.firsts(num_computed)):
            index = first - 1
            while index >= 0 and table[index] != PADDING:  # no step in flight looks back that far
                pool.release(table[index])
                table[index] = PADDING
                index -= 1

    def release(self, seq: Sequence) -> None:
        """Give everything back, the tail first, so that it is also given up first."""
        if self.on_release:
            self.on_release(seq)
        self.ledger.note(seq.group, seq.chains, self.pools)
        for pool, table in zip(self.pools, seq.block_tables):
            for block in reversed(table):
                if block != PADDING:
                    pool.release(block)
            table.clear()
        seq.num_computed = seq.num_scheduled = 0

    def check(self, holders: Iterable[Sequence]) -> None:
        """Verify every pool against the tables of everyone who holds blocks. For tests."""
        tables = [seq.block_tables for seq in holders]
        for kind, pool in enumerate(self.pools):
            pool.check(table[kind] for table in tables)

    def resize(self, num_bytes: int, max_length: int) -> None:
        """Let the pools hold about so many bytes, but never less than the longest sequence alone needs."""
        whole = [pool.num_blocks - 1 for pool in self.pools]
        longest = self._num_blocks(max_length - 1)
        least = [
            most if pool.kind.window else min(longest, most) for pool, most in zip(self.pools, self._most)
        ]
        low, high = (sum(n * p.kind.bytes_per_block for n, p in zip(ns, self.pools)) for ns in (least, whole))
        part = min(max((num_bytes - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        for pool, few, all_ in zip(self.pools, least, whole):
            pool.resize(few + int(part * (all_ - few)))

    # ---- counting blocks

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def firsts(self, num_computed: int) -> list[int]:
        """The first block needed of each kind."""
        return [pool.kind.first_block(num_computed, self.block_size) for pool in self.pools]

    def _num_held(self, kind: int, seq: Sequence) -> int:
        first = self.pools[kind].kind.first_block(seq.num_computed, self.block_size)
        return len(seq.block_tables[kind]) - first

    def _wanting(self, kind: int, seq: Sequence, num_held: int) -> int:
        """Blocks it will ask for soon: for all tokens it knows, and one more block for its answer to grow."""
        soon = min(len(seq.tokens) + self.block_size, seq.max_length - 1)
        return max(0, min(self._num_blocks(soon), self._most[kind]) - num_held)

    def _first_is_shared(self, kind: int, seq: Sequence) -> bool:
        """Whether the block that the next token is written to has other holders."""
        table, index = seq.block_tables[kind], seq.num_scheduled // self.block_size
        return index < len(table) and self.pools[kind].is_shared(table[index])

    def _missing(self, seq: Sequence, end: int) -> list[int]:
        """How many blocks of each kind must be acquired for the tokens up to `end`."""
        return [
            max(0, self._num_blocks(end) - len(table)) + self._first_is_shared(kind, seq)
            for kind, table in enumerate(seq.block_tables)
        ]
