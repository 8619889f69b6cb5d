"""A step's tokens, drawn from its logits: by the backend where they lie, or here in numpy.

The same tokens either way, from the same (seed, position). Processors draw with their threads; a card in its
line, behind the forward pass, so that a token a row comes to the host, not a vocabulary a row. The tokens
stay there for the next step, and whoever wants them here waits for them. Answers with penalties have their
counts there, in a slot each. Rows of drafts with penalties are drawn here: each looks at those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence as Seq

import numpy as np
import torch
from torch import Tensor

from kernels import Draw, Sampler, fetch

from ..errors import EngineError, NotFinite
from ..scheduling.plan import UNKNOWN, PlanItem
from ..scheduling.sequence import Sequence
from ..types import SamplingParams
from .sampler import COLDEST, uniform

Sampled = list[int] | EngineError
OnHost = Callable[[np.ndarray, PlanItem, Seq[int]], Sampled]  # rows of logits; a token not told of yet

GREEDY = Draw(0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0, -1, 0.0)


def is_for_host(item: PlanItem) -> bool:
    """Whether a row's token depends on those of the rows before it."""
    return bool(item.drafts) and item.sequence.request.params.has_penalties


class HostSampler:
    """For the reference: draws at once, from logits that lie here or are fetched; `draw` does it for one."""

    def __init__(self, logits: Tensor, draw: OnHost) -> None:
        self._logits, self._draw = logits, draw
        self._tokens = [0] * len(logits)  # of the last launch, by rows
        self._drawn: dict[Sequence, int] = {}  # the same, by sequences

    def launch(self, items: Seq[PlanItem]) -> Callable[[], list[Sampled]]:
        """What gives for each item its tokens, up to the first that is not its draft; or its fault."""
        logits, row = self._logits.cpu().numpy(), 0
        before, self._drawn = self._drawn, {}
        results = list[Sampled]()
        for item in items:
            untold = [before.get(item.sequence, 0)] if item.token_ids[0] == UNKNOWN else ()
            results.append(sampled := self._draw(logits[row : row + item.samples], item, untold))
            if item.samples and not isinstance(sampled, EngineError):
                self._tokens[row] = self._drawn[item.sequence] = sampled[0]
            row += item.samples
        return lambda: results

    def fill(self, token_ids: Tensor) -> None:
        """Ids that stand for rows of the last launch become the tokens drawn there."""
        known = [self._tokens[-1 - each] if each < 0 else each for each in token_ids.tolist()]
        token_ids.copy_(torch.tensor(known))


class BackendSampler:
    """Has the backend draw; `on_host` does it for an item whose drafts have penalties."""

    def __init__(self, sampler: Sampler, logits: Tensor, on_host: OnHost, num_slots: int) -> None:
        self._sampler, self._logits, self._on_host = sampler, logits, on_host
        self._tokens = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        self._slots = Slots(sampler, num_slots)

    def launch(self, items: Seq[PlanItem]) -> Callable[[], list[Sampled]]:
        """See HostSampler.launch."""
        draws = [draw for item in items for draw in self._draws(item, items)]
        tokens = self._tokens[: len(draws)]
        if draws:
            self._sampler.set(draws)
            self._sampler.sample(self._logits[: len(draws)], tokens)
        if any(draw.slot >= 0 for draw in draws):
            self._sampler.count(tokens)
        drawn_here, row = dict[int, Sampled](), 0
        for at, item in enumerate(items):
            if is_for_host(item):
                rows = self._logits[row : row + item.samples].cpu().numpy()
                drawn_here[at] = self._on_host(rows, item, ())
            row += item.samples
        fetched = fetch(tokens)

        def collect() -> list[Sampled]:
            drawn = iter(fetched().tolist())  # the step's one wait for a card
            each = [[next(drawn) for _ in range(item.samples)] for item in items]
            return [drawn_here.get(at) or _accepted(each[at], item) for at, item in enumerate(items)]

        return collect

    def fill(self, token_ids: Tensor) -> None:
        """See HostSampler.fill."""
        self._sampler.fill(token_ids, self._tokens)

    def _draws(self, item: PlanItem, items: Seq[PlanItem]) -> list[Draw]:
        """What the rows of an item are drawn with; those that the host draws, for nothing."""
        if not item.samples:
            return []
        request = item.sequence.request
        params: SamplingParams = request.params
        if is_for_host(item) or (params.temperature < COLDEST and not params.has_penalties):
            return [GREEDY] * item.samples
        slot = self._slots.of(item, items) if params.has_penalties else -1
        numbers = (
            params.temperature, params.top_p, params.min_p, params.repetition_penalty,
            params.frequency_penalty, params.presence_penalty, params.top_k, slot,
        )  # fmt: skip
        return [
            Draw(*numbers, uniform(request.seed, position))
            for position in range(item.first_position, item.first_position + item.samples)
        ]


class Slots:
    """Whose counts lie where, and how many tokens they have taken in."""

    def __init__(self, sampler: Sampler, num_slots: int) -> None:
        self._sampler = sampler
        self._free = list(range(num_slots))
        self._held: dict[Sequence, tuple[int, int]] = {}  # its slot; its tokens that are counted there

    def of(self, item: PlanItem, items: Seq[PlanItem]) -> int:
        """The slot with the counts of all tokens before the one that is drawn, which is counted next.

        A step that was not computed after all leaves counts that are of no use: they are made anew.
        """
        seq, place = item.sequence, item.first_position
        slot, counted = self._held.get(seq) or (self._take(items), -1)
        if counted != place:
            assert place <= len(seq.tokens), "a token that is not known was not counted where it was drawn"
            self._sampler.begin(slot, seq.prompt, seq.tokens[seq.num_prompt : place])
        self._held[seq] = slot, place + 1
        return slot

    def _take(self, items: Seq[PlanItem]) -> int:
        """A slot of nobody, or of one who is not in this step."""
        if not self._free:
            here = {item.sequence for item in items}
            self._free = [self._held.pop(seq)[0] for seq in [*self._held] if seq not in here]
        return self._free.pop()


def _accepted(tokens: Seq[int], item: PlanItem) -> Sampled:
    kept = item.accepted(tokens)
    if kept and kept[-1] < 0:  # no draft is that
        where = f"for the token at position {item.first_position + len(kept) - 1}"
        return NotFinite(f"The model computed no number {where}; it was stopped.")
    return kept
