"""The host tier: blocks that the device gave up, in the machine's own memory, the oldest given up first.

Nothing of it outlives the model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from ..scheduling.block_pool import Chain
from .segments import Contents

BYTES_PER_S = 2e9  # a careful guess: it is memory


class Host:
    """At most so many bytes of blocks."""

    def __init__(self, most: int) -> None:
        self.most, self.num_bytes, self.hits = most, 0, 0
        self._blocks: OrderedDict[tuple[int, bytes], tuple[Chain, Contents]] = OrderedDict()

    @property
    def num_blocks(self) -> int:
        """How many are here."""
        return len(self._blocks)

    def put(self, kind: int, chain: Chain, contents: Contents) -> None:
        """Keep a block as the youngest, and what fits beside it."""
        self._remove((kind, chain.chain_hash))
        if len(contents) <= self.most:
            self._blocks[kind, chain.chain_hash] = chain, contents
            self.num_bytes += len(contents)
        while self.num_bytes > self.most:
            self._remove(next(iter(self._blocks)))

    def has(self, kind: int, chain: Chain) -> bool:
        """Whether this very block is here: tokens are compared."""
        found = self._blocks.get((kind, chain.chain_hash))
        return found is not None and chain.same(found[0])

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

    def clear(self) -> None:
        """Away with all."""
        self._blocks.clear()
        self.num_bytes = 0

    def _take(self, kind: int, chain: Chain) -> Contents | None:
        if not self.has(kind, chain):
            return None
        self._blocks.move_to_end((kind, chain.chain_hash))
        self.hits += 1
        return self._blocks[kind, chain.chain_hash][1]

    def _remove(self, key: tuple[int, bytes]) -> None:
        if found := self._blocks.pop(key, None):
            self.num_bytes -= len(found[1])
