"""A fake model on a fake device: numbers where keys and values would be.

The number of a token is a hash of the token, its place, its owner and all numbers that a real layer would
look at, read back through the block tables; the next token is a hash of the newest number. So one wrong,
foreign or stale block anywhere gives other tokens than `Ask`, which computes the same without blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from engine.scheduling.block_pool import PADDING, BlockPool
from engine.scheduling.plan import UNKNOWN, Plan, PlanItem
from engine.scheduling.sequence import Sequence

VOCABULARY = 997
GARBAGE = -(10**9)


def number_of(token: int, place: int, owner: str, views: Iterable[tuple[int, ...]]) -> int:
    """What the fake model keeps for a token; `views` are the numbers that each kind's layers look at."""
    return hash((token, place, *map(ord, owner), *map(hash, views)))


@dataclass
class Ask:
    """What a sequence's `request` is here, and the one right answer, computed as far as anyone asked."""

    owner: str
    seed: int
    prompt: list[int]
    windows: tuple[int, ...]
    vocabulary: int = VOCABULARY  # tokens that occur in the answer, the last ones; few: it repeats itself
    numbers: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def token(self, place: int) -> int:
        """The true token at a place: the prompt's, or the one that a run alone without blocks samples."""
        tokens, numbers = self.tokens, self.numbers
        if not tokens:
            tokens += self.prompt
        while len(tokens) <= place:
            while len(numbers) < len(tokens):
                at = len(numbers)
                views = [tuple(numbers[max(0, at + 1 - w) if w else 0 :]) for w in self.windows]
                numbers.append(number_of(tokens[at], at, self.owner, views))
            tokens.append(self.next_token(numbers[-1]))
        return tokens[place]

    def next_token(self, number: int) -> int:
        """What follows, sampled with the request's seed."""
        return VOCABULARY - self.vocabulary + hash((number, self.seed)) % self.vocabulary


class FakeDevice:
    """Pools of numbers, and steps run strictly in order."""

    def __init__(self, pools: tuple[BlockPool, ...], rng: Random) -> None:
        self.pools, self.rng = pools, rng
        self.memory = [[[GARBAGE] * pool.block_size for _ in range(pool.num_blocks)] for pool in pools]
        self.last: dict[Sequence, int] = {}  # the newest sampled token, as a device would keep it

    def run(self, plan: Plan, breaks: bool = False) -> list[list[int]]:
        """The sampled tokens of each item. A step that breaks leaves garbage where it should have written."""
        if not breaks or self.rng.random() < 0.5:
            copied = [list(self.memory[c.kind][c.source]) for c in plan.copies]
            for copy, numbers in zip(plan.copies, copied):
                self.memory[copy.kind][copy.target] = numbers
        return [self._run(item, breaks) for item in plan.items]

    def read_block(self, kind: int, block: int) -> Callable[[], list[int]]:
        """A copy of a block's numbers, as they are now."""
        numbers = list(self.memory[kind][block])
        return lambda: numbers

    def write_block(self, kind: int, block: int, contents: list[int]) -> None:
        """Numbers that came from below."""
        self.memory[kind][block] = list(contents)

    def _run(self, item: PlanItem, breaks: bool) -> list[int]:
        seq, sampled = item.sequence, []
        first_sample = item.num_tokens - item.samples
        contents = [
            [number for block in table for number in memory[block]]
            for memory, table in zip(self.memory, seq.block_tables)
        ]
        for offset, token in enumerate(item.token_ids):
            place = item.start + offset
            if token == UNKNOWN:
                token = self.last[seq]
            views = []
            for pool, numbers in zip(self.pools, contents):
                window = pool.kind.window
                views.append(tuple(numbers[max(0, place + 1 - window) if window else 0 : place]))
            number = GARBAGE if breaks else number_of(token, place, seq.owner, views)
            for pool, memory, table, numbers in zip(self.pools, self.memory, seq.block_tables, contents):
                block = table[place // pool.block_size]
                assert block != PADDING
                memory[block][place % pool.block_size] = numbers[place] = number
            if offset >= first_sample:
                sampled.append(seq.request.next_token(number))
        if item.samples == 1:
            self.last[seq] = sampled[0]
        return sampled
