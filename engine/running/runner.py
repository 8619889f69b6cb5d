"""All device work of a loaded model: weights, pools, and a recorded forward pass run step after step.

Given a plan, it copies what must be copied, fills the batch, runs the record and samples. It decides nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence as Seq
from contextlib import contextmanager, suppress
from itertools import count

import numpy as np
import torch

from kernels import Ops

from ..errors import DeviceFull, DeviceLost, EngineError, NotFinite
from ..fitting.memory_plan import MemoryPlan
from ..models import Buffers, Model
from ..scheduling.plan import UNKNOWN, Plan, PlanItem
from ..scheduling.sequence import Sequence
from .batch import BatchWriter, card_of, is_sound, make_batch
from .drawing import BackendSampler, HostSampler, Sampled
from .fault_place import find_fault
from .graphs import recorded
from .kv_cache import make_kv_cache
from .sampler import SamplingRow, sample

log = logging.getLogger("octavo.engine")

DEVICE_ERRORS = ("CUDA error", "HIP error", "Triton Error")  # how such a RuntimeError begins
# what one says of memory that torch did not ask for itself
NO_MEMORY = re.compile(r"out\sof\smemory|ALLOC_FAILED")


def is_from_device(error: Exception) -> bool:
    """Whether a device, or what drives it, failed."""
    return isinstance(error, torch.AcceleratorError) or str(error).startswith(DEVICE_ERRORS)


def is_full(error: Exception) -> bool:
    """Whether only memory was missing: the device is as good as before."""
    first_line = str(error).partition("\n")[0]
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        is_from_device(error) and bool(NO_MEMORY.search(first_line))
    )


class Runner:
    """A model on its device. One thread calls it."""

    def __init__(self, model: Model, ops: Ops, plan: MemoryPlan) -> None:
        self.model, self.ops = model, ops
        self.cache = make_kv_cache(model.config, ops, plan.num_blocks, plan.block_size)
        max_blocks = -(-plan.context_length // plan.block_size) + 1
        kinds = len(plan.kinds)
        sizes = plan.max_step_tokens, plan.max_num_seqs, max_blocks, plan.max_rows, kinds
        self.batch = batch = make_batch(*sizes, card_of(ops))
        self._writer = BatchWriter(self.batch, plan.block_size)
        self._limits = model.config.vocab_size, plan.num_blocks, plan.block_size
        buffers = Buffers.make(model.config, ops, plan.max_step_tokens, plan.max_rows)
        self.logits = buffers.logits
        layers = self.cache.layers

        def forward(ops: Ops) -> None:  # it does not name `self`, so that all ends with its last user
            model.forward(ops, batch, layers, buffers)

        self._forward = forward
        self.depth = ops.depth
        slots = plan.max_num_seqs
        sampler = ops.sampler(plan.max_rows, model.config.vocab_size, slots)
        self._sampler = (
            BackendSampler(sampler, self.logits, sample_item, slots)
            if sampler
            else HostSampler(self.logits, sample_item)
        )
        self._row_of: dict[Sequence, int] = {}  # whose next token the last step draws, and in which row
        self.replay = recorded(ops, lambda: forward(ops), self.batch, plan.max_num_seqs)

    def run(self, plan: Plan) -> list[Sampled]:
        """The tokens sampled for each item, in order; an item's own fault instead of its tokens. Raises what
        `launch` raises.
        """
        return self.launch(plan)()

    def launch(self, plan: Plan) -> Callable[[], list[Sampled]]:
        """Give the device a step to compute; called, the result waits for it and is what `run` gives.

        At depth 1 one step may be on its way already. Raises DeviceFull, after which a plan without unknown
        tokens may be run, whole or in parts; DeviceLost, after which nothing may.
        """
        with self._explained(plan):
            collect = self._launch(plan)

        def collected() -> list[Sampled]:
            with self._explained(plan):
                sampled = collect()
            for at, item in enumerate(plan.items):
                if isinstance(error := sampled[at], NotFinite):
                    sampled[at] = self._located(error, item)
            return sampled

        return collected

    def _launch(self, plan: Plan) -> Callable[[], list[Sampled]]:
        for kind, pool in enumerate(self.cache.pools):
            if pairs := [(copy.source, copy.target) for copy in plan.copies if copy.kind == kind]:
                self.ops.copy_blocks(pool, *zip(*pairs, strict=True))
        self._writer.write(plan.items, self._row_of)
        self.model.reach(max((item.start + item.num_tokens for item in plan.items), default=0))
        host = self.batch.host  # of a card
        awaited = len(self.logits) if self._row_of else 0
        assert host is None or is_sound(host, *self._limits, awaited), "a step names what is not there"
        if self._row_of and any(item.token_ids[0] == UNKNOWN for item in plan.items):
            self._sampler.fill(self.batch.token_ids[: sum(item.num_tokens for item in plan.items)])
        self.replay()
        if self.depth:
            self._row_of, row = {}, 0
            for item in plan.items:
                if item.samples == 1:
                    self._row_of[item.sequence] = row
                row += item.samples
        return self._sampler.launch(plan.items)

    @contextmanager
    def _explained(self, plan: Plan) -> Iterator[None]:
        """What a device raises, as the engine's own errors."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            first_line = str(error).partition("\n")[0]
            if is_full(error):
                torch.cuda.empty_cache()  # does nothing where there is no card
                raise DeviceFull(
                    f"There was no memory left for {sum(item.num_tokens for item in plan.items)} tokens of "
                    f"this answer ({first_line.partition('.')[0]}). Other answers go on; close other "
                    "programs, or load a smaller model."
                ) from error
            if not is_from_device(error):
                raise
            raise DeviceLost(f"{self.ops.device} failed ({first_line}). Octavo has to start anew.") from error

    def _located(self, error: NotFinite, item: PlanItem) -> EngineError:
        """The same error, which says where it came from: the item is computed once more, alone. Of its rows
        the first is looked at.
        """
        place = ""
        with suppress(DeviceFull), self._explained(Plan((item,), (), 0.0)):
            self._writer.write([item.with_known_tokens()])
            place = find_fault(self._forward, self.ops, item.num_tokens - item.samples, 0)
        return EngineError(f"{error} What was no number came out of: {place}." if place else str(error))

    def close(self) -> None:
        """Stop the backend's threads."""
        self.ops.close()


def sample_item(rows: np.ndarray, item: PlanItem, untold: Seq[int] = ()) -> Sampled:
    """One token for each of an item's rows [samples, vocabulary], up to the first that is not its draft.
    `untold`: what follows the sequence's tokens already, drawn by the step before.
    """
    seq, sampled = item.sequence, list[int]()
    try:
        for position, logits, draft in zip(count(item.first_position), rows, (*item.drafts, None)):
            before = [*seq.tokens, *untold, *sampled] if untold or sampled else seq.tokens
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
