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
from .pace import Pace
from .plan import Progress
from .runner import Runner
from .scheduler import Scheduler
from .speculation import Speculation
from .types import EngineStats


class Engine:
    """A scheduler and the runner that does what it decides."""

    def __init__(
        self, scheduler: Scheduler, runner: Runner, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scheduler, self.runner, self.clock = scheduler, runner, clock

    def step(self) -> list[Progress]:
        """Compute one batch; what every sequence in it got, or how it ended."""
        plan = self.scheduler.schedule(self.clock())
        sampled = self.runner.run(plan)
        failed = [
            self.scheduler.fail(item.sequence, str(tokens))
            for item, tokens in zip(plan.items, sampled, strict=True)
            if isinstance(tokens, EngineError)
        ]
        tokens = [[] if isinstance(result, EngineError) else result for result in sampled]
        return failed + self.scheduler.commit(plan, tokens, self.clock())

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self.scheduler.has_work()

    def stats(self, *, healthy: bool, fault: str) -> EngineStats:
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
