"""All device work of a loaded model: weights, pools, and a recorded forward pass run step after step.

Given a plan, it copies what must be copied, fills the batch, runs the record and samples. It decides nothing.
"""

from __future__ import annotations

import logging
from itertools import count

import numpy as np

from kernels import Ops

from .batch import BatchWriter, make_batch
from .errors import EngineError
from .kv_cache import make_kv_cache
from .memory_plan import MemoryPlan
from .models import Buffers, Decoder
from .plan import Plan, PlanItem
from .sampler import SamplingRow, sample

log = logging.getLogger("octavo.engine")


class Runner:
    """A model on its device. One thread calls it."""

    def __init__(self, model: Decoder, ops: Ops, plan: MemoryPlan) -> None:
        self.ops = ops
        self.cache = make_kv_cache(model.config, ops, plan.num_blocks, plan.block_size)
        max_blocks = -(-plan.context_length // plan.block_size) + 1
        kinds = len(plan.kinds)
        self.batch = make_batch(plan.max_step_tokens, plan.max_num_seqs, max_blocks, plan.max_rows, kinds)
        self._writer = BatchWriter(self.batch, plan.block_size)
        buffers = Buffers.make(model.config, ops, plan.max_step_tokens, plan.max_rows)
        self.logits = buffers.logits
        self.replay = ops.record(lambda: model.forward(ops, self.batch, self.cache.layers, buffers))

    def run(self, plan: Plan) -> list[list[int] | EngineError]:
        """The tokens sampled for each item, in order; an item's own fault instead of its tokens."""
        for kind, pool in enumerate(self.cache.pools):
            if pairs := [(copy.source, copy.target) for copy in plan.copies if copy.kind == kind]:
                self.ops.copy_blocks(pool, *zip(*pairs, strict=True))
        self._writer.write(plan.items)
        self.replay()
        logits, row = self.logits.cpu().numpy(), 0
        sampled: list[list[int] | EngineError] = []
        for item in plan.items:
            sampled.append(sample_item(logits[row : row + item.samples], item))
            row += item.samples
        return sampled

    def close(self) -> None:
        """Stop the backend's threads and let go of the memory."""
        self.ops.close()


def sample_item(rows: np.ndarray, item: PlanItem) -> list[int] | EngineError:
    """One token for each of an item's rows [samples, vocabulary], up to the first that is not its draft."""
    seq, sampled = item.sequence, list[int]()
    first = item.start + item.num_tokens - item.samples + 1
    try:
        for position, logits, draft in zip(count(first), rows, (*item.drafts, None)):
            before = [*seq.tokens, *sampled] if sampled else seq.tokens
            row = SamplingRow(seq.request.params, seq.request.seed, position, before, seq.num_prompt)
            sampled.append(sample(logits, row))
            if sampled[-1] != draft:
                break
    except EngineError as error:
        return error
    except Exception as error:  # nothing was changed yet: whatever it is, it is this request's alone
        log.exception("a token could not be sampled")
        return EngineError(f"The next token could not be chosen: {type(error).__name__}: {error}.")
    return sampled
