"""One step: schedule, run, commit. Nothing else advances state; no text, no threads, no time of day.

Synchronous and driven by its caller: tests call `step` until nothing is left, service.py does so on a thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from .block_pool import BlockPool, Chain, Identity
from .config import EngineConfig
from .errors import EngineError
from .memory_plan import MemoryPlan, ModelFacts
from .pace import STRETCH, Pace
from .plan import Progress
from .pool_picture import MemoryPicture, draw
from .recent import Recent
from .runner import Runner
from .scheduler import Scheduler
from .sequence import Sequence
from .smaller_steps import run_in_pieces
from .speculation import Speculation
from .types import EngineStats


class Engine:
    """A scheduler and the runner that does what it decides."""

    def __init__(
        self, scheduler: Scheduler, runner: Runner, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scheduler, self.runner, self.clock = scheduler, runner, clock
        self.recent = Recent()

    def step(self) -> list[Progress]:
        """Compute one batch; what every sequence in it got, or how it ended."""
        plan = self.scheduler.schedule(self.clock())
        done = run_in_pieces(self.runner.run, plan)
        if not done.is_whole:
            self.scheduler.shorten_steps()
            self.scheduler.discard(done.put_off)
        plan, sampled = done.plan, done.sampled
        failed = [
            self.scheduler.fail(item.sequence, str(tokens))
            for item, tokens in zip(plan.items, sampled, strict=True)
            if isinstance(tokens, EngineError)
        ]
        tokens = [[] if isinstance(result, EngineError) else result for result in sampled]
        now = self.clock()
        progress = failed + self.scheduler.commit(plan, tokens, now)
        self.recent.note(now, plan, progress, self.scheduler.tables.pools[0])
        return progress

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self.scheduler.has_work()

    def foresee(self, seq: Sequence) -> tuple[int, float]:
        """How much of a prompt is cached, and the seconds that the rest would take now. For any thread."""
        scheduler = self.scheduler
        seq.root = scheduler.root(seq.owner)
        num_cached = len(scheduler.tables.prefix(seq)[0]) * scheduler.tables.block_size
        seconds = scheduler.pace.prompts_s([(num_cached, seq.num_prompt - num_cached)])
        return num_cached, seconds * (STRETCH / (STRETCH - 1) if scheduler.running else 1.0)

    # ---- the memory, as people see it; all between two steps

    def picture(self) -> MemoryPicture:
        """Who holds what, and what the last minutes did."""
        scheduler, tables = self.scheduler, self.scheduler.tables
        pools = draw(tables.pools, scheduler.running + scheduler.leaving, tables.ledger)
        return MemoryPicture(pools, self.recent.until(self.clock()), self.runner.cache.gives_back)

    def free_cached(self) -> int:
        """Forget what no answer uses now and give its memory back; how many bytes there are more."""
        for pool in self.scheduler.tables.pools:
            pool.drop_cached()
        return self._give_back()

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


def make_scheduler(plan: MemoryPlan, facts: ModelFacts, config: EngineConfig, secret: bytes) -> Scheduler:
    """A scheduler over empty pools of the planned size. `secret` keys the hashes of prefixes."""
    pools = tuple(
        BlockPool(kind, num_blocks, plan.block_size)
        for kind, num_blocks in zip(plan.kinds, plan.num_blocks, strict=True)
    )

    def root(owner: str) -> Chain:
        identity = Identity(owner, facts.fingerprint, facts.formats, facts.kv_dtype, plan.block_size)
        return Chain.root(secret, identity)

    pace = Pace(config.target_step_s)
    return Scheduler(
        pools,
        root,
        pace,
        context_length=plan.context_length,
        max_num_seqs=plan.max_num_seqs,
        max_step_tokens=plan.max_step_tokens,
        propose=Speculation(pace).propose if config.speculation == "auto" else None,
    )
