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
from .types import EngineStats


class Engine:
    """A scheduler and the runner that does what it decides."""

    def __init__(
        self, scheduler: Scheduler, runner: Runner, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scheduler, self.runner, self.clock = scheduler, runner, clock
        self.num_steps = self.num_generated = self.num_prompt = self.num_cached = 0

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
        progress = failed + self.scheduler.commit(plan, tokens, self.clock())
        self._count(progress)
        return progress

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return self.scheduler.has_work()

    def stats(self, *, last_step_s: float, healthy: bool, fault: str) -> EngineStats:
        """Counts as they stand."""
        pool = self.scheduler.tables.pools[0]
        return EngineStats(
            running=len(self.scheduler.running),
            waiting=len(self.scheduler.waiting),
            total_blocks=pool.num_usable,
            used_blocks=pool.num_used,
            cached_blocks=pool.num_cached,
            block_size=pool.block_size,
            context_length=self.scheduler.max_length,
            steps=self.num_steps,
            generated_tokens=self.num_generated,
            prompt_tokens=self.num_prompt,
            cached_tokens=self.num_cached,
            last_step_s=last_step_s,
            healthy=healthy,
            fault=fault,
        )

    def _count(self, progress: list[Progress]) -> None:
        self.num_steps += 1
        self.num_generated += sum(len(each.token_ids) for each in progress)
        for each in progress:
            if each.reason:
                self.num_prompt += each.sequence.num_prompt
                self.num_cached += each.sequence.num_cached


def make_scheduler(plan: MemoryPlan, facts: ModelFacts, config: EngineConfig, secret: bytes) -> Scheduler:
    """A scheduler over empty pools of the planned size. `secret` keys the hashes of prefixes."""
    pools = tuple(
        BlockPool(kind, num_blocks, plan.block_size)
        for kind, num_blocks in zip(plan.kinds, plan.num_blocks, strict=True)
    )

    def root(owner: str) -> Chain:
        identity = Identity(owner, facts.fingerprint, facts.formats, facts.kv_dtype, plan.block_size)
        return Chain.root(secret, identity)

    return Scheduler(
        pools,
        root,
        Pace(config.target_step_s),
        context_length=plan.context_length,
        max_num_seqs=plan.max_num_seqs,
        max_step_tokens=plan.max_step_tokens,
    )
