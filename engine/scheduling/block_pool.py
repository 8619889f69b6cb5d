"""The blocks of one page kind: who holds each, which prefix it carries, which may be given to someone else.

A block is free, used (it stands in a block table), cached (in none, but it carries a prefix that the next
conversation may want) or kept out of use by `resize`. Cached blocks are given up oldest first, a chain's tail
before its head. Block 0 is never given out: padding may point at it.

    free ---- acquire ----> used ---- release ----> free, if it carries no prefix
    cached -- acquire, share --^   `- release ----> cached, if it does

Knows neither sequences (block_tables.py) nor bytes (kv_cache.py): a block is a number here.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b

PADDING = 0  # the block that is never given out; in a block table: nothing is needed here


@dataclass(frozen=True, slots=True)
class PageKind:
    """Layers that keep memory alike. With a window, a token sees itself and the window - 1 before it."""

    name: str
    layers: tuple[int, ...]
    bytes_per_block: int
    window: int = 0

    def first_block(self, num_computed: int, block_size: int) -> int:
        """The first block that the next token needs; those before it have slid out of the window."""
        return max(0, num_computed + 1 - self.window) // block_size if self.window else 0

    def blocks_across(self, num_tokens: int, block_size: int) -> int:
        """The most blocks that so many new tokens and their window can touch, wherever they begin."""
        return (self.window + num_tokens - 2 + block_size - 1) // block_size + 1


@dataclass(frozen=True, slots=True)
class Identity:
    """What two must have in common to share a prefix: whose it is, and what computed it."""

    owner: str
    model: str  # the checkpoint's fingerprint
    formats: str  # of its weights in memory
    kv_dtype: str
    block_size: int
    adapter: str = ""
    rank: int = 0
    num_ranks: int = 1


@dataclass(slots=True, eq=False)
class Chain:
    """A full block's identity: the chain before it, its tokens, and the chain hash, a keyed BLAKE2b of both.

    `extras` are what stands in a text and is no token (an image's digest). The root, which stands before the
    first block, has its Identity there. Without the key nobody can prepare two chains that collide.
    """

    parent: Chain | None
    tokens: tuple[int, ...]
    extras: bytes
    key: bytes = field(repr=False)
    hash_size: int
    chain_hash: bytes = field(init=False)

    def __post_init__(self) -> None:
        before = self.parent.chain_hash if self.parent else b""
        tokens = struct.pack(f"<{len(self.tokens) + 1}q", len(self.tokens), *self.tokens)
        data = before + tokens + self.extras
        self.chain_hash = blake2b(data, key=self.key, digest_size=self.hash_size).digest()

    @staticmethod
    def root(secret: bytes, identity: Identity, hash_size: int = 16) -> Chain:
        """Before any token. `secret` is the installation's. Tests shorten the hash until it collides."""
        return Chain(None, (), repr(identity).encode(), blake2b(secret).digest(), hash_size)

    def extend(self, tokens: tuple[int, ...], extras: bytes = b"") -> Chain:
        """The chain, one full block longer."""
        return Chain(self, tokens, extras, self.key, self.hash_size)

    def same(self, other: Chain) -> bool:
        """Whether both carry the same tokens from the same root, whatever their hashes say."""
        ours: Chain | None = self
        theirs: Chain | None = other
        while ours is not theirs:
            if ours is None or theirs is None or ours.tokens != theirs.tokens or ours.extras != theirs.extras:
                return False
            ours, theirs = ours.parent, theirs.parent
        self.parent = other.parent  # now they share their ancestors, so the next block is compared at once
        return True


class BlockPool:
    """Reference counts, chain hash -> block, and the cached blocks, oldest first."""

    FREE, KEPT, CACHED, USED = range(4)  # what `states` says of a block

    def __init__(self, kind: PageKind, num_blocks: int, block_size: int) -> None:
        assert num_blocks > 1 and block_size > 0
        self.kind, self.num_blocks, self.block_size = kind, num_blocks, block_size
        self._free = list(range(num_blocks - 1, PADDING, -1))  # the next one stands at the end
        self._refs = [0] * num_blocks
        self._chains: dict[int, Chain] = {}  # block -> the prefix it carries
        self._blocks: dict[bytes, int] = {}  # chain hash -> the block that carries it
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._kept: list[int] = []  # out of use, as long as the pool is smaller than it may be
        self._size = num_blocks - 1  # how many blocks it should have now
        self._written = bytearray(num_blocks)  # 1: the system may have provided memory for it
        # told of a block and its prefix before they part; until it returns, the contents are there
        self.on_give_up: Callable[[int, Chain], None] | None = None

    @property
    def num_usable(self) -> int:
        """All blocks but the padding and those that are kept out of use."""
        return self.num_blocks - 1 - len(self._kept)

    @property
    def num_cached(self) -> int:
        """Blocks in no table that a prefix may bring back."""
        return len(self._cached)

    @property
    def num_available(self) -> int:
        """Blocks that `acquire` can give out: free and cached."""
        return len(self._free) + len(self._cached)

    @property
    def num_used(self) -> int:
        """Blocks that stand in a block table."""
        return self.num_usable - self.num_available

    def acquire(self) -> int:
        """A block of one's own, its contents unknown. There must be one available."""
        block = self._free.pop() if self._free else self._give_up_oldest()
        self._refs[block] = self._written[block] = 1
        return block

    def share(self, block: int) -> int:
        """One holder more, for a block that is used or cached."""
        self._cached.pop(block, None)
        self._refs[block] += 1
        return block

    def release(self, block: int) -> None:
        """One holder less. After the last one it is cached if it carries a prefix, else free."""
        self._refs[block] -= 1
        assert self._refs[block] >= 0, f"block {block} was released once too often"
        if self._refs[block] == 0:
            if self.num_usable > self._size:
                self._give_up(block)
                self._kept.append(block)
            elif block in self._chains:
                self._cached[block] = None
            else:
                self._free.append(block)

    def is_shared(self, block: int) -> bool:
        """Whether another holder would see it change."""
        return self._refs[block] > 1

    def is_cached(self, block: int) -> bool:
        """Whether sharing it leaves one block less to acquire."""
        return block in self._cached

    def register(self, block: int, chain: Chain) -> None:
        """Let a full block be found by its chain. It stays private if another carries the same hash."""
        assert self._refs[block] > 0 and block not in self._chains
        if chain.chain_hash not in self._blocks:
            self._blocks[chain.chain_hash] = block
            self._chains[block] = chain

    def lookup(self, chain: Chain) -> int:
        """The block that carries this chain, else PADDING. Tokens are compared, so a collision is a miss.

        Any thread may ask: what the engine's changes meanwhile is a miss or a hit.
        """
        block = self._blocks.get(chain.chain_hash, PADDING)
        carried = self._chains.get(block)
        return block if carried is not None and chain.same(carried) else PADDING

    def unregister(self, block: int) -> None:
        """It carries no prefix any more: someone is about to write to it."""
        if chain := self._chains.pop(block, None):
            del self._blocks[chain.chain_hash]

    def block_of(self, chain_hash: bytes) -> int:
        """The block that carries a prefix of this hash, else PADDING; for pictures, where a wrong one does
        no harm.
        """
        return self._blocks.get(chain_hash, PADDING)

    def states(self) -> bytes:
        """FREE, KEPT, CACHED or USED of every block but the padding."""
        states = bytearray(self.USED if refs else self.FREE for refs in self._refs)
        for state, blocks in ((self.KEPT, self._kept), (self.CACHED, self._cached)):
            for block in blocks:
                states[block] = state
        return bytes(states[1:])

    # ---- shrinking, growing, and what it leaves to other programs

    def resize(self, size: int) -> None:
        """Have so many usable blocks, of those there are; blocks in use leave when they are released."""
        self._size = min(size, self.num_blocks - 1)
        surplus = max(0, self.num_usable - self._size)
        self._kept += self._free[:surplus]
        del self._free[:surplus]
        while self.num_usable > self._size and self._cached:
            self._kept.append(self._give_up_oldest())
        while self.num_usable < self._size:
            self._free.append(self._kept.pop())

    def drop_cached(self) -> int:
        """Forget all prefixes that nobody uses now; how many blocks became free."""
        count = len(self._cached)
        while self._cached:
            self._free.append(self._give_up_oldest())
        return count

    def drop(self, hashes: Iterable[bytes]) -> None:
        """Forget these prefixes where nobody uses them now, for good: nobody is told."""
        for chain_hash in hashes:
            if (block := self.block_of(chain_hash)) in self._cached:
                del self._cached[block]
                self.unregister(block)
                self._free.append(block)

    @property
    def num_written(self) -> int:
        """Blocks that memory was provided for, since nobody can write to the others."""
        return sum(self._written)

    def take_idle(self) -> list[int]:
        """Blocks whose contents nobody needs, of those with memory: it may be given back now."""
        idle = [block for block in sorted([*self._free, *self._kept]) if self._written[block]]
        for block in idle:
            self._written[block] = 0
        return idle

    def _give_up_oldest(self) -> int:
        block, _ = self._cached.popitem(last=False)
        self._give_up(block)
        return block

    def _give_up(self, block: int) -> None:
        if self.on_give_up and (chain := self._chains.get(block)):
            self.on_give_up(block, chain)
        self.unregister(block)

    def check(self, tables: Iterable[Iterable[int]]) -> None:
        """Verify all counts against the block tables of everyone who holds blocks. For tests: O(blocks)."""
        held = Counter(block for table in tables for block in table if block != PADDING)
        free, cached, carrying = {*self._free, *self._kept}, self._cached.keys(), self._chains.keys()
        assert self.num_usable <= self._size or not self.num_available, "larger than it should be"
        assert self._refs == [held[block] for block in range(self.num_blocks)], "counts differ from holders"
        assert len(self._free) + len(cached) + len(held) == self.num_usable, "free + cached + used != total"
        assert all(self._written[block] for block in {*cached, *held}), "in use without memory"
        assert free | cached | held.keys() == set(range(1, self.num_blocks)), "a block is lost"
        assert cached <= carrying and not free & carrying, "cached without a prefix, or free with one"
        hashes = {chain.chain_hash: block for block, chain in self._chains.items()}
        assert hashes == self._blocks, "a hash without its block, or a block without its hash"
