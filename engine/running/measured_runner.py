"""A runner whose memory was measured when it was warm, and the plan that is true of it.

What graphs, workspaces and a library's own buffers take of a card is known only there. So a runner is made as
planned, computes the largest step that there may be, and what it took is compared with the plan. Where that
was more, the plan is made again with the difference, at the pool's cost, and so is the runner. On processors
nothing is measured: nothing is hidden.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable

import torch

from kernels import Ops

from ..errors import DeviceFull, ModelTooLarge
from ..fitting.memory_plan import MemoryPlan, in_words
from ..models import Model
from ..scheduling.plan import Plan, PlanItem
from ..scheduling.sequence import Sequence
from .runner import Runner, is_full

log = logging.getLogger("octavo.engine")

TRIES = 3
SLACK = 1 << 26  # bytes more than planned that are let pass: an allocator rounds up
MORE = 1 << 28  # bytes to plan for more where what was missing is not known


def make_runner(
    model: Model, ops: Ops, plan: MemoryPlan, plan_again: Callable[[int], MemoryPlan]
) -> tuple[Runner, MemoryPlan]:
    """The runner and its plan. `plan_again` plans for so many bytes more beside weights and pool. Raises
    ModelTooLarge.
    """
    unplanned = 0
    for _ in range(TRIES):
        gc.collect()  # a graph that is left over holds memory
        torch.cuda.empty_cache()  # does nothing where there is no card
        before = ops.free_memory()
        if before is None:
            return Runner(model, ops, plan), plan
        runner, over = _tried(model, ops, plan, before)
        if runner:
            return runner, plan
        unplanned += over
        log.info("%s more than planned beside weights and pool: planned again", in_words(unplanned))
        plan = plan_again(unplanned)
    raise ModelTooLarge(
        f"A step needs over {in_words(unplanned)} more than planned each time it is tried. Set "
        "context_length or max_step_tokens lower, or close other programs that use the card."
    )


def _tried(model: Model, ops: Ops, plan: MemoryPlan, before: int) -> tuple[Runner | None, int]:
    """A warm runner that takes what was planned; or None, and how many bytes were too many."""
    try:
        runner = Runner(model, ops, plan)
        runner.run(largest_step(plan))
    except (RuntimeError, DeviceFull) as error:
        if isinstance(error, RuntimeError) and not is_full(error):
            raise
        return None, MORE
    taken = before - (ops.free_memory() or 0)
    over = taken - plan.kv_bytes - plan.activation_bytes
    log.info("a warm runner takes %s, planned or not", in_words(taken))
    return (runner, 0) if over <= SLACK else (None, over)


def largest_step(plan: MemoryPlan) -> Plan:
    """Prompts of as many tokens as a step may have, on the block that is nobody's; one token is sampled."""
    longest = min(plan.context_length, plan.max_step_tokens)
    lengths = [longest] * min(plan.max_num_seqs, plan.max_step_tokens // longest)
    tables = ([0] * -(-longest // plan.block_size),) * len(plan.kinds)
    items = [PlanItem(Sequence("", [0], block_tables=tables), 0, (0,) * length, (), 0) for length in lengths]
    return Plan(tuple(items), (), 0.0)
