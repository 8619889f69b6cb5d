"""A fake disk tier: everything takes some ticks, in order; blocks are lost, and writes fail, by chance."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from random import Random

from engine.scheduling.block_pool import Chain


class FakeDisk:
    """What engine.tiers.disk.Disk is to Tiers. `seen` counts what happened."""

    quota, totals, hits = 1000, (0, 0), 0

    def __init__(self, rng: Random, trouble: float, seen: Counter[str]) -> None:
        self.rng, self.trouble, self.seen = rng, trouble, seen
        self.block_s, self.speed = rng.choice((0.0, 0.001, 10.0)), rng.choice((0.1, 0.5))
        self.blocks: dict[tuple[int, bytes], tuple[Chain, list[int]]] = {}
        self.uses: defaultdict[bytes, set[str]] = defaultdict(set)
        self.orders: deque[Callable[[], None]] = deque()
        self.loads: list[tuple[Future, list]] = []

    def has(self, kind: int, chain: Chain) -> bool:
        return (kind, chain.chain_hash) in self.blocks

    def load(self, wanted: list[tuple[int, Chain]]) -> Future:
        self.loads.append((answer := Future(), wanted))
        return answer

    def seconds(self, num_bytes: int) -> float:
        return self.block_s

    def doubt(self, factor: float) -> None:
        self.block_s /= 10 if factor > 1 else 1
        self.seen["late" if factor < 1 else "too slow"] += 1

    @property
    def wait_s(self) -> float:
        return self.rng.choice((0.0, 0.0, 0.05))

    def save(self, blocks: list) -> None:
        self.orders.append(partial(self._save, blocks))

    def use(self, chat: str, hashes: Iterable[bytes]) -> None:
        self.orders.append(partial(self._use, chat, list(hashes)))

    def forget(self, chat: str) -> None:
        self.orders.append(partial(self._forget, chat))

    def tick(self) -> None:
        """Some of what was asked for is done."""
        while self.orders and self.rng.random() < 0.5:
            self.orders.popleft()()
        while self.loads and self.rng.random() < self.speed:
            answer, wanted = self.loads.pop(0)
            answer.set_result([self._read(kind, chain) for kind, chain in wanted])

    def _save(self, blocks: list) -> None:
        for block in blocks:
            assert self.uses[block.chain.chain_hash], "nobody allowed that this is written"
            if self.rng.random() >= self.trouble:
                self.blocks[block.kind, block.chain.chain_hash] = block.chain, block.contents
                self.seen["saved"] += 1

    def _use(self, chat: str, hashes: list[bytes]) -> None:
        for each in hashes:
            self.uses[each].add(chat)

    def _forget(self, chat: str) -> None:
        for chats in self.uses.values():
            chats.discard(chat)
        for kind, chain_hash in [*self.blocks]:
            if not self.uses[chain_hash]:
                del self.blocks[kind, chain_hash]
                self.seen["forgotten"] += 1

    def _read(self, kind: int, chain: Chain) -> list[int] | None:
        found = self.blocks.get((kind, chain.chain_hash))
        if found is None or not chain.same(found[0]) or self.rng.random() < max(self.trouble, 0.1):
            self.blocks.pop((kind, chain.chain_hash), None)
            self.seen["damaged"] += 1
            return None
        self.seen["from disk"] += 1
        return found[1]
