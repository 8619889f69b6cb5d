"""One step: schedule, run, commit. Nothing else advances state; no text, no threads, no time of day.

    depth 0   schedule 1, run 1, commit 1, schedule 2, run 2, ...
    depth 1   schedule 1, launch 1, schedule 2, launch 2, wait for 1, commit 1, schedule 3, ...

A device that computes by itself (depth 1) has its next step in line before one is done: what a step needs of
the one before is on the device. Driven by its caller: tests call `step` until nothing is left, service.py
does so on a thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence as Seq
from dataclasses import dataclass

from .config import EngineConfig
from .errors import DeviceFull, EngineError
from .fitting.memory_plan import MemoryPlan, ModelFacts
from .running.drawing import Sampled
from .running.runner import Runner
from .running.smaller_steps import run_in_pieces
from .scheduling.block_pool import BlockPool, Chain, Identity
from .scheduling.pace import STRETCH, Pace
from .scheduling.plan import Plan, Progress
from .scheduling.pool_picture import MemoryPicture, draw
from .scheduling.recent import Recent
from .scheduling.scheduler import Scheduler
from .scheduling.sequence import Sequence
from .scheduling.speculation import Speculation
from .tiers.tiers import Tiers
from .types import EngineStats


@dataclass(frozen=True, slots=True)
class InFlight:
    """A step that the device has been given; `collect` waits for its tokens."""

    plan: Plan
    collect: Callable[[], list[Sampled]]


class Engine:
    """A scheduler and the runner that does what it decides. `wants_drafts` says of the running sequences
    whether guesses are worth more than a step in flight: only where all tokens are known can one be made.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        clock: Callable[[], float] = time.monotonic,
        wants_drafts: Callable[[Seq[Sequence]], bool] = lambda running: False,
    ) -> None:
        self.scheduler, self.runner, self.clock = scheduler, runner, clock
        self.recent = Recent()
        self.tiers: Tiers | None = None
        self._in_flight: deque[InFlight] = deque()
        self._wants_drafts = wants_drafts

    def step(self) -> list[Progress]:
        """Launch one batch and take in the oldest in flight, at depth 0 the same one: what every sequence in
        it got, or how it ended.
        """
        progress: list[Progress] = []
        if self._in_flight and self._wants_drafts(self.scheduler.running):
            progress += self._land()
        if plan := self.scheduler.schedule(self.clock()):
            progress += self._launch(plan)
        if self._in_flight and (not plan or len(self._in_flight) > self.runner.depth):
            progress += self._land()
        if self.tiers and not (plan or progress):
            self.tiers.rest()
        return progress

    def _launch(self, plan: Plan) -> list[Progress]:
        """Nothing, as a rule; where the device has no room for the step, all that comes of it in pieces."""
        try:
            self._in_flight.append(InFlight(plan, self.runner.launch(plan)))
            return []
        except DeviceFull as error:
            full = error
        progress = self._land() if self._in_flight else []
        done = run_in_pieces(self.runner.run, plan, full)
        self.scheduler.shorten_steps()
        self.scheduler.discard(done.put_off)
        return progress + self._commit(done.plan, done.sampled)

    def _land(self) -> list[Progress]:
        step = self._in_flight.popleft()
        sampled = step.collect()
        if self.tiers:
            self.tiers.settle()
        return self._commit(step.plan, sampled)

    def _commit(self, plan: Plan, sampled: list[Sampled]) -> list[Progress]:
        failed = [
            self.scheduler.fail(item.sequence, str(tokens))
            for item, tokens in zip(plan.items, sampled, strict=True)
            if isinstance(tokens, EngineError) and item.sequence.finish_reason is None
        ]
        tokens = [[] if isinstance(result, EngineError) else result for result in sampled]
        now = self.clock()
        progress = failed + self.scheduler.commit(plan, tokens, now)
        self.recent.note(now, plan, progress, self.scheduler.tables.pools[0])
        return progress

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._in_flight) or self.scheduler.has_work()

    def foresee(self, seq: Sequence) -> tuple[int, float]:
        """How much of a prompt is cached, and the seconds that the rest would take now. For any thread."""
        scheduler = self.scheduler
        seq.root = scheduler.root(seq.owner)
        if self.tiers:
            num_blocks, read_s = self.tiers.foresee(seq)
        else:
            num_blocks, read_s = len(scheduler.tables.prefix(seq)[0]), 0.0
        num_cached = num_blocks * scheduler.tables.block_size
        seconds = scheduler.pace.prompts_s([(num_cached, seq.num_prompt - num_cached)])
        return num_cached, read_s + seconds * (STRETCH / (STRETCH - 1) if scheduler.running else 1.0)

    def tidy(self) -> float | None:
        """Save a little of what chats left behind; seconds until there may be more to do. For idle times."""
        return self.tiers.tidy() if self.tiers else None

    # ---- the memory, as people see it; all between two steps

    def picture(self) -> MemoryPicture:
        """Who holds what, and what the last minutes did."""
        scheduler, tables = self.scheduler, self.scheduler.tables
        pools = draw(tables.pools, scheduler.running + scheduler.leaving, tables.ledger)
        tiers = self.tiers.picture() if self.tiers else ()
        return MemoryPicture(pools, self.recent.until(self.clock()), self.runner.cache.gives_back, tiers)

    def free_cached(self) -> int:
        """Forget what no answer uses now and give its memory back; how many bytes there are more."""
        for pool in self.scheduler.tables.pools:
            pool.drop_cached()
        return self._give_back()

    def forget(self, chat: str) -> None:
        """A chat was deleted: what nobody but it used is gone from all tiers, unless an answer still runs."""
        scheduler, tables = self.scheduler, self.scheduler.tables
        others = [seq for seq in scheduler.running + scheduler.leaving if seq.group != chat]
        gone = tables.ledger.forget(chat) - {chain.chain_hash for seq in others for chain in seq.chains}
        for pool in tables.pools:
            pool.drop(gone)
        if self.tiers:
            self.tiers.forget(chat, gone)

    def clear_disk(self) -> None:
        """Remove all blocks from the disk. Raises OSError."""
        if self.tiers:
            self.tiers.clear_disk()

    def resize(self, num_bytes: int | None) -> None:
        """Keep the pools to about so many bytes, and give back what they leave; None: all that was planned.

        One chat of full length always fits, and answers that run keep their blocks until they end.
        """
        scheduler = self.scheduler
        planned = sum((pool.num_blocks - 1) * pool.kind.bytes_per_block for pool in scheduler.tables.pools)
        scheduler.tables.resize(planned if num_bytes is None else num_bytes, scheduler.max_length)
        if num_bytes is not None and num_bytes < planned:
            self._give_back()

    @property
    def held_bytes(self) -> int:
        """What the blocks take of the machine's memory now."""
        pools = self.scheduler.tables.pools
        return sum(pool.num_written * pool.kind.bytes_per_block for pool in pools)

    def _give_back(self) -> int:
        if self.tiers:
            self.tiers.settle()
        cache = self.runner.cache
        if not cache.gives_back:
            return 0
        pools = self.scheduler.tables.pools
        return sum(cache.give_back(kind, pool.take_idle()) for kind, pool in enumerate(pools))

    def stats(self, *, healthy: bool, fault: str, lost: bool = False) -> EngineStats:
        """Counts as they stand."""
        pool = self.scheduler.tables.pools[0]
        return EngineStats(
            running=len(self.scheduler.running),
            waiting=len(self.scheduler.waiting),
            total_blocks=pool.num_usable,
            used_blocks=pool.num_used,
            cached_blocks=pool.num_cached,
            healthy=healthy,
            fault=fault,
            lost=lost,
            drafted_tokens=self.scheduler.num_drafted,
            accepted_tokens=self.scheduler.num_accepted,
        )


def make_engine(
    runner: Runner, plan: MemoryPlan, facts: ModelFacts, config: EngineConfig, secret: bytes
) -> Engine:
    """A runner's engine, over empty pools of the planned size. `secret` keys the hashes of prefixes."""
    pools = tuple(
        BlockPool(kind, num_blocks, plan.block_size)
        for kind, num_blocks in zip(plan.kinds, plan.num_blocks, strict=True)
    )

    def root(owner: str) -> Chain:
        identity = Identity(owner, facts.fingerprint, facts.formats, facts.kv_dtype, plan.block_size)
        return Chain.root(secret, identity)

    pace = Pace(config.target_step_s)
    speculation = Speculation(pace)
    scheduler = Scheduler(
        pools,
        root,
        pace,
        context_length=plan.context_length,
        max_num_seqs=plan.max_num_seqs,
        max_step_tokens=plan.max_step_tokens,
        propose=speculation.propose if config.speculation == "auto" else None,
    )
    return Engine(scheduler, runner, wants_drafts=speculation.is_promising)
