"""Random lives of the real deciding half on a fake device (fake_device.py); a seed decides all that happens.

Chats, next turns, forks and retries arrive; some are stopped, some fail, some steps break. The clock is
virtual, the pools are small, and after every event all counts must agree. A seed replays exactly:

    python -m tests.engine.scheduling.simulator 1234              one seed, told step by step
    python -m tests.engine.scheduling.simulator --seeds 100000    many
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from engine.engine import Engine
from engine.errors import PromptTooLong
from engine.scheduling.block_pool import BlockPool, Chain, Identity, PageKind
from engine.scheduling.pace import CALM, Pace
from engine.scheduling.plan import Plan
from engine.scheduling.pool_picture import draw
from engine.scheduling.scheduler import Scheduler, by_urgency
from engine.scheduling.sequence import Sequence
from engine.scheduling.speculation import Speculation
from engine.tiers.host import Host
from engine.tiers.tiers import PORTION, Tiers
from engine.types import FinishReason, Priority

from ..fake_disk import FakeDisk
from .fake_device import GARBAGE, VOCABULARY, Ask, FakeDevice

END_IDS = frozenset(range(0, VOCABULARY, 31))
MOST_STEPS_WITHOUT_TOKENS = 200
BLOCK_BYTES = PORTION // 3


@dataclass
class InFlight:
    """A step on its way: its blocks must stay put until it is committed or discarded."""

    plan: Plan
    sampled: list[list[int]]
    broken: bool
    blocks: list[set[int]]  # by kind


class Simulation:
    """One seed's machine, requests and misfortunes."""

    def __init__(self, seed: int, say: bool = False) -> None:
        self.say, self.rng = say, (rng := Random(seed))
        self.block_size = rng.choice((2, 3, 4, 8))
        window = rng.randint(1, 20)
        self.windows: tuple[int, ...] = rng.choice(((0,), (0,), (0, window), (0, window), (window,)))
        self.pools = tuple(BlockPool(self.kind(w), self.some_blocks(), self.block_size) for w in self.windows)
        self.depth = rng.randrange(2)
        self.weak_hash = rng.random() < 0.3
        self.draft_rate = rng.choice((0.0, 0.5, 0.9))
        self.trouble = rng.choice((0.0, 0.01, 0.05))
        self.arrival_rate = rng.choice((0.1, 0.4, 0.9))
        self.num_to_come = rng.randint(5, 25)
        self.context_length = rng.choice((20, 100, 1000))
        max_num_seqs = rng.randint(1, 6)
        pace = Pace(0.25, rng.choice((0.001, 0.02)))
        (cheap := Pace(1.0)).observe(1, [], 1.0)  # to the real proposer drafts look worth while
        self.speculation = Speculation(cheap) if rng.random() < 0.3 else None
        self.scheduler = Scheduler(
            self.pools,
            self.root,
            pace,
            context_length=self.context_length,
            max_num_seqs=max_num_seqs,
            max_step_tokens=max_num_seqs + rng.choice((16, 40)),
            propose=self.propose,
        )
        self.device = FakeDevice(self.pools, rng)
        self.seen: Counter[str] = Counter()
        self.engine = Engine(self.scheduler, None, lambda: self.now)
        self.tiers = self.engine.tiers = self.below() if rng.random() < 0.75 else None
        self.now = 1000.0
        self.longest = self.longest_servable()
        self.usual = max(2, min(70, self.longest) * rng.randint(2, 9) // 10)  # most prompts are shorter
        self.texts = [[rng.randrange(1, 5) for _ in range(80)] for _ in range(2)]
        self.open: list[Sequence] = []
        self.ended: list[Sequence] = []
        self.in_flight: deque[InFlight] = deque()
        self.leaving_since: dict[Sequence, int] = {}
        self.num_steps = self.num_commits = self.num_idle = 0

    def kind(self, window: int) -> PageKind:
        return PageKind("window" if window else "full", (), BLOCK_BYTES, window)

    def below(self) -> Tiers | None:
        """A host tier, a disk or both."""
        rng = self.rng
        host = Host(rng.randint(1, 40) * self.pools[0].kind.bytes_per_block) if rng.random() < 0.5 else None
        disk = FakeDisk(rng, self.trouble, self.seen) if not host or rng.random() < 0.5 else None
        return Tiers(self.scheduler, self.device, host, disk, lambda: self.now)

    def some_blocks(self) -> int:
        return self.rng.choice((self.rng.randint(2, 10), self.rng.randint(2, 64)))

    def root(self, owner: str) -> Chain:
        identity = Identity(owner, "model", "Int4", "float16", self.block_size)
        return Chain.root(b"secret", identity, hash_size=1 if self.weak_hash else 16)

    def propose(self, answering: list[tuple[Sequence, int]]) -> list[list[int]]:
        """Drafts that are mostly right; in some lives, those of the real proposer."""
        if self.speculation:
            return self.speculation.propose(answering)
        return [self.drafts(seq, limit) for seq, limit in answering]

    def drafts(self, seq: Sequence, limit: int) -> list[int]:
        count, at = self.rng.randint(0, max(0, min(limit, 4))), len(seq.tokens)
        return [
            seq.request.token(at + i) if self.rng.random() < self.draft_rate else VOCABULARY + i
            for i in range(count)
        ]

    # ---- requests

    def arrive(self) -> None:
        """A new chat, a next turn, a retry, or a fork of what runs now."""
        rng = self.rng
        parents = rng.choice((self.scheduler.running, self.open + self.ended[-3:]))
        parent = rng.choice(parents) if parents and rng.random() < 0.7 else None
        if parent is None:
            prompt = list(rng.choice(self.texts)[: self.some_length()])
            owner = rng.choice("ab")
        else:
            prompt = parent.tokens[: rng.choice((parent.num_prompt, len(parent.tokens), self.some_length()))]
            owner = parent.owner if rng.random() < 0.8 else "c"
        prompt += [rng.randrange(1, 5) for _ in range(rng.choice((0, 0, 1, 3)))]
        ask = Ask(owner, rng.randrange(3), prompt, self.windows, rng.choice((VOCABULARY, 3)))
        max_tokens = rng.choice((None, 1, rng.randint(1, 30), rng.randint(1, 30)))
        self.enter(self.sequence(ask, max_tokens, rng.choice(tuple(Priority))), parent)

    def sequence(self, ask: Ask, max_tokens: int | None, priority: Priority) -> Sequence:
        name = str(len(self.open) + len(self.ended))
        seq = Sequence(name, ask.prompt, max_tokens, ask.owner, priority, END_IDS, ask)
        seq.group, seq.keep = f"{ask.owner}{self.rng.randrange(4)}", self.rng.random() < 0.8
        return seq

    def some_length(self) -> int:
        """Around whole blocks, where mistakes live."""
        most = self.usual if self.rng.random() < 0.9 else 80
        whole = self.rng.randint(0, most) // self.block_size * self.block_size
        return max(1, whole + self.rng.choice((-1, 0, 1)))

    def enter(self, seq: Sequence, parent: Sequence | None) -> None:
        wanted, limit = seq.num_prompt + (seq.max_tokens or 1), self.longest
        try:
            if parent and parent.owner == seq.owner and self.rng.random() < 0.7:
                self.scheduler.fork(parent, seq, self.now)
                self.seen["forked"] += seq in self.scheduler.running
            else:
                self.scheduler.add(seq, self.now)
        except PromptTooLong:
            assert wanted > limit
            self.seen["refused"] += 1
        else:
            assert wanted <= limit
            self.open.append(seq)

    def longest_servable(self) -> int:
        """Said once more in other words: what one sequence alone can be long."""
        longest = self.context_length
        for pool in self.pools:
            window, size = pool.kind.window, pool.block_size
            touched = max((place // size) - max(0, place + 1 - window) // size + 1 for place in range(200))
            if not window or touched > pool.num_usable:
                longest = min(longest, pool.num_usable * size + 1)
        return longest

    # ---- one tick

    def tick(self) -> None:
        rng = self.rng
        usual, odd = (0.0, 0.01, 0.3, 0.3, 5.0), (-3600.0, 3600.0)
        self.now += rng.choice(usual if rng.random() < 0.99 else odd)
        while self.num_to_come and (rng.random() < self.arrival_rate or not self.open):
            self.num_to_come -= 1
            self.arrive()
        plan = self.schedule()
        if plan:
            self.launch(plan)
        self.check()
        self.misfortune()
        if self.in_flight and (not plan or len(self.in_flight) > self.depth):
            self.land()
        self.misfortune()
        if self.tiers and not self.in_flight and self.rng.random() < 0.3:
            self.tiers.tidy()
        if self.tiers and self.tiers.disk:
            self.tiers.disk.tick()
        self.num_steps += 1

    def schedule(self) -> Plan:
        """A plan that is fair: the most urgent gets on, and nobody in the line is overtaken."""
        scheduler, ran = self.scheduler, set(self.scheduler.running)
        plan = scheduler.schedule(self.now)
        head = min(scheduler.running, key=by_urgency, default=None)
        planned = {item.sequence for item in plan.items}
        moves = not head or head in planned or head.num_in_flight or scheduler.leaving
        assert moves or scheduler.pace._num_mixed >= CALM, "the first has to wait"
        last_in = max((seq.urgency for seq in scheduler.running if seq not in ran), default=None)
        in_line = [s for s in scheduler.waiting if not self.tiers or s not in self.tiers._fetches]
        assert not last_in or all(last_in < seq.urgency for seq in in_line), "someone was overtaken"
        self.seen["preempted"] += len(ran & set(scheduler.waiting))
        self.tell(plan)
        return plan

    def launch(self, plan: Plan) -> None:
        blocks = [{copy.target for copy in plan.copies if copy.kind == k} for k in range(len(self.pools))]
        for item in plan.items:
            for named, pool, table in zip(blocks, self.pools, item.sequence.block_tables):
                named.update(table[pool.kind.first_block(item.start, pool.block_size) :])
        broken = self.rng.random() < self.trouble or any(step.broken for step in self.in_flight)
        self.in_flight.append(InFlight(plan, self.device.run(plan, broken), broken, blocks))
        self.seen["copies"] += len(plan.copies)
        self.seen["drafts"] += sum(len(item.drafts) for item in plan.items)
        self.seen["together"] += len(plan.items) > 1

    def land(self) -> None:
        step = self.in_flight.popleft()
        self.num_commits += 1
        if step.broken:
            self.seen["discarded"] += 1
            self.scheduler.discard(step.plan)
            while self.in_flight:
                self.scheduler.discard(self.in_flight.popleft().plan)
            self.check()
            return
        for item in step.plan.items:
            if self.rng.random() < self.trouble / 4 and item.sequence.finish_reason is None:
                self.scheduler.fail(item.sequence, "the fake model stumbled")
                self.end(item.sequence)
        self.num_idle = 0
        for progress in self.scheduler.commit(step.plan, step.sampled, self.now):
            seq = progress.sequence
            for place in range(len(seq.tokens) - len(progress.token_ids), len(seq.tokens)):
                assert seq.tokens[place] == seq.request.token(place), f"{seq.id}: wrong token at {place}"
            kept = "real drafts kept" if self.speculation else "drafts kept"
            self.seen[kept] += max(0, len(progress.token_ids) - 1)
            if progress.reason:
                self.end(seq)
        self.check()

    def misfortune(self) -> None:
        """Someone presses Stop, a window is closed, a network drops, another program wants memory."""
        if self.rng.random() < self.trouble:
            self.squeeze()
        if self.rng.random() < self.trouble:
            self.engine.forget(self.rng.choice("abc") + str(self.rng.randrange(4)))
            self.check()
        if self.open and self.rng.random() < self.trouble:
            seq = self.rng.choice(self.open)
            assert self.scheduler.abort(seq.id) is seq and self.scheduler.abort(seq.id) is None
            self.end(seq)
            self.check()
            if self.rng.random() < 0.5:
                self.enter(self.sequence(seq.request, seq.max_tokens, seq.priority), seq)

    def squeeze(self) -> None:
        """The pools get smaller or larger; what nobody needs loses its contents."""
        tables, rng = self.scheduler.tables, self.rng
        most = BLOCK_BYTES * sum(pool.num_blocks for pool in self.pools)
        tables.resize(rng.choice((0, rng.randint(0, most), most)), self.scheduler.max_length)
        if rng.random() < 0.2:
            for pool in self.pools:
                pool.drop_cached()
        for pool, memory in zip(self.pools, self.device.memory):
            for block in pool.take_idle():
                memory[block] = [GARBAGE] * pool.block_size
            self.seen["squeezed"] += pool.num_usable < pool.num_blocks - 1
        for picture in draw(self.pools, self.scheduler.running, tables.ledger):
            assert len(picture.states) == len(picture.sharers) == len(picture.owners) // 2
        self.check()

    def end(self, seq: Sequence) -> None:
        self.open.remove(seq)
        self.ended.append(seq)
        self.leaving_since[seq] = self.num_commits
        self.seen[str(seq.finish_reason)] += 1
        self.seen["cached"] += seq.num_cached
        assert seq.num_cached < seq.num_prompt
        if seq.finish_reason in (FinishReason.STOP, FinishReason.LENGTH):
            assert (seq.tokens[-1] in END_IDS) == (seq.finish_reason == FinishReason.STOP)
            assert seq.tokens[-1] in END_IDS or len(seq.tokens) == seq.max_length
            assert not END_IDS & set(seq.tokens[seq.num_prompt : -1])

    def check(self) -> None:
        """What must hold between any two events."""
        self.scheduler.check()
        for step in self.in_flight:
            for pool, blocks in zip(self.pools, step.blocks):
                assert all(pool._refs[block] for block in blocks), "freed while a step in flight names it"
        for seq in self.scheduler.leaving:
            assert seq.finish_reason is None or self.num_commits - self.leaving_since[seq] < 2

    def run(self) -> Counter[str]:
        """Until every request has ended; then all blocks must be back."""
        while self.open or self.num_to_come or self.in_flight:
            self.num_idle += 1
            assert self.num_idle < MOST_STEPS_WITHOUT_TOKENS, "nothing moves"
            self.tick()
        assert all(pool.num_used == 0 for pool in self.pools)
        self.seen["steps"] += self.num_steps
        self.seen["from host"] += self.tiers.host.hits if self.tiers and self.tiers.host else 0
        return self.seen

    def tell(self, plan: Plan) -> None:
        if self.say:
            items = [f"{item.sequence.id}[{item.start}+{item.num_tokens}]" for item in plan.items]
            waiting = [seq.id for seq in self.scheduler.waiting]
            print(f"{self.num_steps:4} {' '.join(items) or '-':60} waiting {' '.join(waiting) or '-'}")


def run_seeds(seeds: Iterable[int]) -> Counter[str]:
    """Run them all; the first failure names its seed."""
    total: Counter[str] = Counter()
    for seed in seeds:
        try:
            total += Simulation(seed).run()
        except Exception as error:
            error.add_note(f"replay with: python -m tests.engine.scheduling.simulator {seed}")
            raise
    return total


if __name__ == "__main__":
    if sys.argv[1] == "--seeds":
        started = time.perf_counter()
        print(dict(run_seeds(range(int(sys.argv[2])))), f"{time.perf_counter() - started:.1f} s")
    else:
        print(dict(Simulation(int(sys.argv[1]), say=True).run()))
