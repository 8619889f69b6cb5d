"""All device work of a loaded model: weights, pools, and a recorded forward pass run step after step.

Given a plan, it copies what must be copied, fills the batch, runs the record and samples. It decides nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence as Seq
from itertools import count

import numpy as np
import torch

from kernels import Ops

from .batch import BatchWriter, card_of, is_sound, make_batch
from .device_sampler import DeviceSampler
from .errors import DeviceFull, DeviceLost, EngineError, NotFinite
from .fault_place import find_fault
from .graphs import recorded
from .kv_cache import make_kv_cache
from .memory_plan import MemoryPlan
from .models import Buffers, Model
from .plan import Plan, PlanItem
from .sampler import SamplingRow, sample

log = logging.getLogger("octavo.engine")

DEVICE_ERRORS = ("CUDA error", "HIP error", "Triton Error")  # how such a RuntimeError begins


class Runner:
    """A model on its device. One thread calls it."""

    def __init__(self, model: Model, ops: Ops, plan: MemoryPlan) -> None:
        self.model, self.ops = model, ops
        self.cache = make_kv_cache(model.config, ops, plan.num_blocks, plan.block_size)
        max_blocks = -(-plan.context_length // plan.block_size) + 1
        kinds = len(plan.kinds)
        sizes = plan.max_step_tokens, plan.max_num_seqs, max_blocks, plan.max_rows, kinds
        self.batch = make_batch(*sizes, card_of(ops))
        self._writer = BatchWriter(self.batch, plan.block_size)
        self._limits = model.config.vocab_size, plan.num_blocks, plan.block_size
        buffers = Buffers.make(model.config, ops, plan.max_step_tokens, plan.max_rows)
        self.logits = buffers.logits

        def forward(ops: Ops) -> None:
            model.forward(ops, self.batch, self.cache.layers, buffers)

        self._forward = forward
        sampler = ops.sampler(plan.max_rows, model.config.vocab_size)
        self._draw = DeviceSampler(sampler, self.logits, sample_item).draw if sampler else self._draw_here
        self.replay = recorded(ops, lambda: forward(ops), self.batch, plan.max_num_seqs)

    def run(self, plan: Plan) -> list[list[int] | EngineError]:
        """The tokens sampled for each item, in order; an item's own fault instead of its tokens.

        Raises DeviceFull, after which it may be run again, whole or in parts; DeviceLost, after which nothing
        may.
        """
        try:
            return self._run(plan)
        except (torch.OutOfMemoryError, MemoryError) as error:
            torch.cuda.empty_cache()  # does nothing where there is no card
            raise DeviceFull(
                f"There was no memory left for {sum(item.num_tokens for item in plan.items)} tokens of this "
                f"answer ({str(error).partition('.')[0]}). Other answers go on; close other programs, or "
                "load a smaller model."
            ) from error
        except RuntimeError as error:
            first_line = str(error).partition("\n")[0]
            if not (isinstance(error, torch.AcceleratorError) or first_line.startswith(DEVICE_ERRORS)):
                raise
            raise DeviceLost(f"{self.ops.device} failed ({first_line}). Octavo has to start anew.") from error

    def _run(self, plan: Plan) -> list[list[int] | EngineError]:
        for kind, pool in enumerate(self.cache.pools):
            if pairs := [(copy.source, copy.target) for copy in plan.copies if copy.kind == kind]:
                self.ops.copy_blocks(pool, *zip(*pairs, strict=True))
        self._writer.write(plan.items)
        host = self.batch.host  # of a card
        assert host is None or is_sound(host, *self._limits), "a step names what is not there"
        self.replay()
        sampled, row = self._draw(plan.items), 0
        for at, item in enumerate(plan.items):
            if isinstance(error := sampled[at], NotFinite):
                sampled[at] = self._located(error, row)
            row += item.samples
        return sampled

    def _draw_here(self, items: Seq[PlanItem]) -> list[list[int] | EngineError]:
        logits, row = self.logits.cpu().numpy(), 0
        sampled = []
        for item in items:
            sampled.append(sample_item(logits[row : row + item.samples], item))
            row += item.samples
        return sampled

    def _located(self, error: NotFinite, row: int) -> EngineError:
        """The same error, which says where it came from. Of an item's rows the first is looked at."""
        host = self.batch.host or self.batch
        place = find_fault(self._forward, self.ops, int(host.logit_rows[row]), row)
        return EngineError(f"{error} What was no number came out of: {place}." if place else str(error))

    def close(self) -> None:
        """Stop the backend's threads and let go of the memory."""
        self.ops.close()


def sample_item(rows: np.ndarray, item: PlanItem) -> list[int] | EngineError:
    """One token for each of an item's rows [samples, vocabulary], up to the first that is not its draft."""
    seq, sampled = item.sequence, list[int]()
    try:
        for position, logits, draft in zip(count(item.first_position), rows, (*item.drafts, None)):
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
