"""A scheduler, a fake device and a clock that moves a second per step: for tests of one behaviour each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from engine.scheduling.block_pool import BlockPool, Chain, Identity, PageKind
from engine.scheduling.pace import Pace
from engine.scheduling.plan import Plan, Progress
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Sequence

from .fake_device import VOCABULARY, Ask, FakeDevice

BLOCK = 4


class Machine:
    """A scheduler, a fake device, and a clock that moves a second per step."""

    def __init__(
        self,
        num_blocks: int = 100,
        *,
        windows: tuple[int, ...] = (0,),
        context_length: int = 1000,
        max_num_seqs: int = 4,
        max_step_tokens: int = 512,
        pace: Pace | None = None,
        propose: Callable[[Sequence, int], list[int]] | None = None,
    ) -> None:
        self.windows, self._drafts = windows, propose
        self.pools = tuple(BlockPool(PageKind("", (), 1, w), num_blocks + 1, BLOCK) for w in windows)
        self.scheduler = Scheduler(
            self.pools,
            lambda owner: Chain.root(b"", Identity(owner, "", "", "", BLOCK)),
            pace or Pace(1000.0),
            context_length=context_length,
            max_num_seqs=max_num_seqs,
            max_step_tokens=max_step_tokens,
            propose=self.propose if propose else None,
        )
        self.device = FakeDevice(self.pools, Random(0))
        self.now, self.num_commits, self.ids = 0.0, 0, count()

    def make(self, prompt: list[int] | int, max_tokens: int | None = 4, **asked: Any) -> Sequence:
        tokens = list(range(prompt)) if isinstance(prompt, int) else prompt
        owner = asked.pop("owner", "me")
        seed, vocabulary = asked.pop("seed", 0), asked.pop("vocabulary", VOCABULARY)
        request = Ask(owner, seed, tokens, self.windows, vocabulary)
        return Sequence(str(next(self.ids)), tokens, max_tokens, owner, request=request, **asked)

    def add(self, prompt: list[int] | int, max_tokens: int | None = 4, **asked: Any) -> Sequence:
        seq = self.make(prompt, max_tokens, **asked)
        self.scheduler.add(seq, self.now)
        return seq

    def propose(self, answering: list[tuple[Sequence, int]]) -> list[list[int]]:
        assert self._drafts
        return [self._drafts(seq, limit) if limit > 0 else [] for seq, limit in answering]

    def schedule(self) -> Plan:
        plan = self.scheduler.schedule(self.now)
        self.scheduler.check()
        return plan

    def commit(self, plan: Plan) -> list[Progress]:
        self.now += 1
        self.num_commits += 1
        assert self.num_commits < 5000, "this does not end"
        progress = self.scheduler.commit(plan, self.device.run(plan), self.now)
        self.scheduler.check()
        return progress

    def step(self) -> Plan:
        plan = self.schedule()
        self.commit(plan)
        return plan

    def finish(self) -> None:
        """Run until nothing is left; every answer must be the oracle's."""
        everyone = self.scheduler.running + self.scheduler.waiting
        for _ in range(1000):
            if not self.scheduler.has_work():
                break
            self.step()
        assert all(seq.finish_reason for seq in everyone)
        assert all(right(seq) for seq in everyone) and all(pool.num_used == 0 for pool in self.pools)


def right(seq: Sequence) -> bool:
    return seq.tokens == [seq.request.token(place) for place in range(len(seq.tokens))]


def counts(plan: Plan) -> dict[Sequence, int]:
    return {item.sequence: item.num_tokens for item in plan.items}
