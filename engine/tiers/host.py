"""The host tier: blocks that the device gave up, in the machine's own memory, the oldest given up first.

Nothing of it outlives the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from ..scheduling.block_pool import Chain
from .segments import Block, Contents, Copied

BYTES_PER_S = 2e9  # a careful guess: it is memory


class Host:
    """At most so many bytes of blocks."""

    def __init__(self, most: int) -> None:
        self.most, self.num_bytes, self.hits = most, 0, 0
        self._blocks: OrderedDict[tuple[int, bytes], Block] = OrderedDict()
        self._coming: dict[tuple[int, bytes], Copied] = {}  # of these, what may still be on its way

    @property
    def num_blocks(self) -> int:
        """How many are here."""
        return len(self._blocks)

    def put(self, block: Block) -> None:
        """Keep a block as the youngest, and what fits beside it."""
        key = block.kind, block.chain.chain_hash
        self._remove(key)
        if block.num_bytes <= self.most:
            self._blocks[key] = block
            self._coming[key] = block.copied
            self.num_bytes += block.num_bytes
        while self.num_bytes > self.most:
            self._remove(next(iter(self._blocks)))

    def settle(self) -> None:
        """Wait for what is on its way."""
        for copied in self._coming.values():
            copied()
        self._coming.clear()

    def has(self, kind: int, chain: Chain) -> bool:
        """Whether this very block is here: tokens are compared."""
        found = self._blocks.get((kind, chain.chain_hash))
        return found is not None and chain.same(found.chain)

    def load(self, wanted: Sequence[tuple[int, Chain]]) -> Future[list[Contents | None]]:
        """The contents of blocks, at once; None for those that are not here."""
        answer: Future[list[Contents | None]] = Future()
        answer.set_result([self._take(kind, chain) for kind, chain in wanted])
        return answer

    def seconds(self, num_bytes: int) -> float:
        """How long they take to load."""
        return num_bytes / BYTES_PER_S

    def forget(self, hashes: Iterable[bytes]) -> None:
        """Away with the blocks of these chains."""
        gone = set(hashes)
        for key in [key for key in self._blocks if key[1] in gone]:
            self._remove(key)

    def _take(self, kind: int, chain: Chain) -> Contents | None:
        if not self.has(kind, chain):
            return None
        self._blocks.move_to_end((kind, chain.chain_hash))
        self.hits += 1
        return self._blocks[kind, chain.chain_hash].contents

    def _remove(self, key: tuple[int, bytes]) -> None:
        if found := self._blocks.pop(key, None):
            self.num_bytes -= found.num_bytes
            self._coming.pop(key, None)
