"""A picture of the pools for people: who holds which block, what is shared, what could be given up.

A group is whoever is named: the requests of one chat. What a group has computed stays behind when its answer
has ended, as cached blocks; the ledger remembers which, so that an idle chat is seen as well. A block that
several groups hold belongs to the one that came first. Knows chats as names only, and changes nothing.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence as Seq
from dataclasses import dataclass

from ..tiers.picture import TierPicture
from .block_pool import BlockPool, Chain
from .recent import Second
from .sequence import Sequence

MOST = 2**16 - 1  # groups that can be told apart
NOTED = 4  # times as many prefixes as there are blocks; then those that are gone are forgotten


@dataclass(frozen=True, slots=True)
class Group:
    """What one group holds of a pool, in blocks: `used` by its own answers now, `shared` with others."""

    name: str
    held: int
    used: int
    shared: int


@dataclass(frozen=True, slots=True)
class PoolPicture:
    """One page kind. For block i + 1: states[i] as BlockPool.states says, owners[2 i] and the next byte the
    place in `groups` of whoever holds it, from 1 on (0: nobody that is known), sharers[i] how many do.
    """

    kind: str
    window: int
    block_size: int
    bytes_per_block: int
    num_written: int  # blocks that memory was provided for
    groups: tuple[Group, ...]
    states: bytes
    owners: bytes
    sharers: bytes


@dataclass(frozen=True, slots=True)
class MemoryPicture:
    """All page kinds, the last minutes second by second, whether memory can be given back, and the tiers
    below the device.
    """

    pools: tuple[PoolPicture, ...]
    recent: tuple[Second, ...]
    gives_back: bool
    tiers: tuple[TierPicture, ...] = ()


class Ledger:
    """Which prefixes each group has left in the pools."""

    def __init__(self) -> None:
        self.left: dict[str, dict[bytes, None]] = {}

    def note(self, group: str, chains: Iterable[Chain], pools: Seq[BlockPool]) -> None:
        """A sequence of this group gives its blocks back."""
        if group:
            self.left.setdefault(group, {}).update((chain.chain_hash, None) for chain in chains)
            if sum(map(len, self.left.values())) > NOTED * sum(pool.num_blocks for pool in pools):
                self.forget_gone(pools)

    def forget(self, group: str) -> set[bytes]:
        """This group is gone; the prefixes that it left and no other did."""
        left = self.left.pop(group, {})
        return left.keys() - {each for hashes in self.left.values() for each in hashes}

    def forget_gone(self, pools: Seq[BlockPool]) -> None:
        """Forget prefixes that no pool has any more."""
        left = {
            group: {each: None for each in hashes if any(pool.block_of(each) for pool in pools)}
            for group, hashes in self.left.items()
        }
        self.left = {group: hashes for group, hashes in left.items() if hashes}


def draw(pools: Seq[BlockPool], holders: Seq[Sequence], ledger: Ledger) -> tuple[PoolPicture, ...]:
    """A picture of each pool; `holders` are the sequences that have block tables."""
    ledger.forget_gone(pools)
    return tuple(_draw(kind, pool, holders, ledger) for kind, pool in enumerate(pools))


def _draw(kind: int, pool: BlockPool, holders: Seq[Sequence], ledger: Ledger) -> PoolPicture:
    held: dict[str, set[int]] = {}
    used: Counter[str] = Counter()
    for group, hashes in ledger.left.items():
        held[group] = {block for each in hashes if (block := pool.block_of(each))}
    for seq in holders:
        if seq.block_tables:
            blocks = {block for block in seq.block_tables[kind] if block}
            held.setdefault(seq.group, set()).update(blocks)
            used[seq.group] += len(blocks)
    states, num_blocks = pool.states(), pool.num_blocks
    owners, sharers = array("H", bytes(2 * num_blocks)), bytearray(num_blocks)
    for number, blocks in enumerate(list(held.values())[:MOST], 1):
        for block in blocks:
            owners[block] = owners[block] or number
            sharers[block] = min(sharers[block] + 1, 255)
    if sys.byteorder == "big":
        owners.byteswap()
    groups = tuple(
        Group(name, len(blocks), used[name], sum(sharers[block] > 1 for block in blocks))
        for name, blocks in list(held.items())[:MOST]
    )
    return PoolPicture(
        pool.kind.name,
        pool.kind.window,
        pool.block_size,
        pool.kind.bytes_per_block,
        pool.num_written,
        groups,
        states,
        owners.tobytes()[2:],
        bytes(sharers[1:]),
    )
