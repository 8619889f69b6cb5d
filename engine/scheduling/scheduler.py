"""Who computes what in the next step: `schedule` makes a plan, `commit` takes in what came of it.

On a device that runs steps in order, one more may be scheduled before the last is committed (depth 1).
Sequences go by urgency, which waiting raises. Whoever is answering has one token of every step; prompts share
what the pace allows, and a step without prompts may hold drafts. Whoever runs out of blocks takes them from
the least urgent, which starts over later, mostly from the prefix cache. The most urgent never gives way, and
anyone alone fits: so every request ends. Knows no device and no clock: time is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence as Seq
from itertools import count
from operator import attrgetter

from ..errors import BadRequest, PromptTooLong
from ..types import FinishReason
from .block_pool import BlockPool, Chain
from .block_tables import BlockTables
from .pace import Pace
from .plan import UNKNOWN, BlockCopy, Plan, PlanItem, Progress
from .sequence import Sequence

# Waiting this long makes up for one class of priority. So a request is overtaken only by those that come
# within 3 * AGE_S after it, and starts at the latest when all that came before these have ended.
AGE_S = 120.0

by_urgency = attrgetter("urgency")


class Scheduler:
    """The sequences that run and those that wait."""

    def __init__(
        self,
        pools: tuple[BlockPool, ...],
        root: Callable[[str], Chain],
        pace: Pace,
        *,
        context_length: int,
        max_num_seqs: int,
        max_step_tokens: int,
        propose: Callable[[list[tuple[Sequence, int]]], list[list[int]]] | None = None,
    ) -> None:
        """One pool per page kind. `root(owner)` begins the chains of an owner's prefixes.

        `propose` is given the answering sequences of a step, and guesses for each at most so many tokens that
        come next; None: no drafts.
        """
        assert max_step_tokens >= max_num_seqs + 16, "answers would leave prompts no room"
        self.tables = BlockTables(pools, max_step_tokens)
        self.running: list[Sequence] = []  # they hold blocks
        self.waiting: list[Sequence] = []  # they hold none, or are still leaving
        self.leaving: list[Sequence] = []  # ended or preempted, but a step in flight names their blocks
        self.max_length = self.tables.max_length(at_most=context_length)
        self.root, self.pace, self._propose = root, pace, propose
        self._max_num_seqs, self._max_step_tokens = max_num_seqs, max_step_tokens
        self._arrivals = count()
        self._line_open = True  # whether the step being made still takes sequences from the line
        self._committed = 0.0  # when
        self.fetch: Callable[[Sequence], bool] | None = None  # from tiers below; True: wait, it is on its way
        self.num_drafted = self.num_accepted = 0  # drafts that were computed, and those that were right

    # ---- coming and going

    def admit(self, seq: Sequence) -> None:
        """Refuse what can never be served, and set the length at which the answer ends. For any thread.

        max_tokens None becomes what fits; a number is kept, or refused. Raises BadRequest, PromptTooLong.
        """
        prompt, answer = seq.num_prompt, seq.max_tokens or 1
        if prompt == 0:
            raise BadRequest("The prompt is empty; at least one token is needed.")
        if prompt + answer > self.max_length and seq.max_tokens is None:
            raise PromptTooLong(
                f"This conversation has {prompt:,} tokens; {self.max_length:,} fit, the answer included. "
                "Shorten it or start a new chat."
            )
        if prompt + answer > self.max_length:
            raise PromptTooLong(
                f"The prompt has {prompt:,} tokens and its answer needs {answer:,}, together "
                f"{prompt + answer:,}; at most {self.max_length:,} fit. Shorten the conversation, or ask for "
                "a shorter answer."
            )
        seq.max_length = prompt + answer if seq.max_tokens else self.max_length

    def add(self, seq: Sequence, now: float) -> None:
        """Put a sequence into the waiting line. Raises what `admit` raises."""
        self.admit(seq)
        seq.root = self.root(seq.owner)
        seq.urgency = (now + AGE_S * seq.priority, next(self._arrivals))
        seq.block_tables = tuple([] for _ in self.tables.pools)
        self.waiting.append(seq)

    def fork(self, parent: Sequence, child: Sequence, now: float) -> None:
        """Add a sequence that begins like `parent` and shares its blocks, also the one not full yet: for
        several answers to one prompt. Nobody but tests asks for that yet.

        Where the parent does not run any more, or there is no seat, the child waits like any other.
        """
        assert parent.owner == child.owner
        self.add(child, now)
        pairs = zip(parent.tokens, child.tokens)
        common = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(child.tokens))
        num_shared = min(common, parent.num_computed, len(child.tokens) - 1)
        if parent.num_in_flight:  # the block that it is writing to stays its own
            num_shared -= num_shared % self.tables.block_size
        has_seat = parent in self.running and len(self.running) < self._max_num_seqs
        if has_seat and self.tables.fork(parent, child, num_shared):
            self._seat(child, now)

    def abort(self, sequence_id: str) -> Sequence | None:
        """End a sequence, at any moment; None if it has ended already. Its blocks are back in two steps."""
        seq = next((seq for seq in self.running + self.waiting if seq.id == sequence_id), None)
        if seq:
            self._finish(seq, FinishReason.CANCELLED)
        return seq

    def fail(self, seq: Sequence, error: str) -> Progress:
        """End a sequence whose part of a step went wrong. The step itself is still to be committed."""
        self._finish(seq, FinishReason.ERROR)
        return Progress(seq, (), FinishReason.ERROR, error)

    def has_work(self) -> bool:
        """Whether anyone runs or waits."""
        return bool(self.running or self.waiting)

    def _seat(self, seq: Sequence, now: float) -> None:
        self.waiting.remove(seq)
        self.running.append(seq)
        if seq.started is None:
            seq.started, seq.num_cached = now, seq.num_computed

    def _finish(self, seq: Sequence, reason: FinishReason) -> None:
        if seq.finish_reason is None:
            seq.finish_reason = reason
            (self.running if seq in self.running else self.waiting).remove(seq)
            self._leave(seq)

    def _preempt(self, seq: Sequence) -> None:
        """Back into the line, to be computed again, as far as the prefix cache does not keep it."""
        self.running.remove(seq)
        self.waiting.append(seq)
        self._line_open = False
        self._leave(seq)

    def _leave(self, seq: Sequence) -> None:
        """Give its blocks back, at the latest when no step in flight names them any more."""
        if seq.num_in_flight == 0:
            self.tables.release(seq)
        elif seq not in self.leaving:
            self.leaving.append(seq)

    def shorten_steps(self) -> None:
        """Steps of half as many tokens from now on: the device had no memory for one."""
        self._max_step_tokens = max(self._max_num_seqs + 16, self._max_step_tokens // 2)

    # ---- schedule

    def schedule(self, now: float) -> Plan:
        """The next step, most urgent first. Empty if there is nothing to do before the next commit."""
        turns: list[tuple[Sequence, int]] = []  # and how many tokens it computes
        copies: list[BlockCopy] = []
        num_answers = sum(seq.num_todo == 1 for seq in self.running)
        spare = self.pace.allowance(num_answers, self._max_step_tokens - self._max_num_seqs)
        self._line_open = True
        for seq in sorted(self.running + self.waiting, key=by_urgency):
            if seq not in self.running and not (spare and self._take_in(seq, now)):
                continue
            todo = min(seq.num_todo, self.tables.room(seq))
            num_tokens = spare.take(seq.num_scheduled, todo) if todo > 1 else todo
            if num_tokens < 1:
                continue
            end = seq.num_scheduled + num_tokens
            if not self._make_room(seq, end):
                break  # nobody behind may take the blocks it waits for
            copies += self.tables.grow(seq, end)
            turns.append((seq, num_tokens))
        items = []
        for (seq, num_tokens), guesses in zip(turns, self._guesses(turns)):
            end = seq.num_scheduled + num_tokens
            drafts = tuple(guesses[: self.tables.slack(seq, end)]) if guesses else ()
            if drafts:
                copies += self.tables.grow(seq, end + len(drafts))
            items.append(self._plan_item(seq, num_tokens, drafts))
        return Plan(tuple(items), tuple(copies), now)

    def _take_in(self, seq: Sequence, now: float) -> bool:
        """Let a waiting sequence run. If it does not fit, those behind it wait too, or it might for ever."""
        self._line_open = self._line_open and seq not in self.leaving
        while self._line_open:
            prefix = self.tables.prefix(seq)
            if len(self.running) < self._max_num_seqs and self.tables.fits(seq, prefix, self.running):
                if self.fetch and self.fetch(seq):
                    return False  # others may go first meanwhile
                self.tables.adopt(seq, self.tables.prefix(seq) if self.fetch else prefix)
                self._seat(seq, now)
                return True
            self._line_open = self._displace(seq)
        return False

    def _displace(self, seq: Sequence) -> bool:
        """Preempt the least urgent for a waiting `seq` of a higher class: the chat on screen goes first."""
        last = max(self.running, key=by_urgency, default=None)
        if self.leaving or not last or last.priority <= seq.priority or last.urgency < seq.urgency:
            return False
        self._preempt(last)
        return True

    def _make_room(self, seq: Sequence, end: int) -> bool:
        """Preempt the least urgent until tokens up to `end` find room. False if `seq` has to wait for it."""
        while not self.tables.can_grow(seq, end):
            if self.leaving:
                return False  # blocks are on their way back
            self._preempt(last := max(self.running, key=by_urgency))
            if last is seq:
                return False  # back in the line
        return True

    def _guesses(self, turns: list[tuple[Sequence, int]]) -> list[list[int]]:
        """Drafts for each; none beside a prompt, which takes what time there is."""
        if self._propose is None or any(num_tokens > 1 for _, num_tokens in turns):
            return [[]] * len(turns)
        limits = []
        for seq, _ in turns:
            end = seq.num_scheduled + 1
            known = end == len(seq.tokens)  # else the last token is still in flight
            limits.append((seq, min(self.tables.room(seq), seq.max_length - end) - 1 if known else 0))
        return self._propose(limits)

    def _plan_item(self, seq: Sequence, num_tokens: int, drafts: tuple[int, ...]) -> PlanItem:
        start, end = seq.num_scheduled, seq.num_scheduled + num_tokens
        known = seq.tokens[start:end]
        unknown = [UNKNOWN] * (num_tokens - len(known))
        samples = 1 + len(drafts) if end == seq.num_expected else 0
        seq.num_scheduled += num_tokens + len(drafts)
        seq.num_awaited += samples
        seq.num_in_flight += 1
        return PlanItem(seq, start, (*known, *unknown, *drafts), drafts, samples)

    # ---- commit

    def commit(self, plan: Plan, sampled: Seq[Seq[int]], now: float) -> list[Progress]:
        """Take in a step's tokens: those sampled for each item, at least up to the first that is not its
        draft; or any if its sequence has ended meanwhile.
        """
        if plan:
            seconds = now - max(plan.scheduled, self._committed)
            self.pace.observe(plan.num_answer_tokens, plan.chunks, seconds)
        self._committed = now
        progress = []
        for item, token_ids in zip(plan.items, sampled, strict=True):
            seq = self._count_back(item)
            if seq.finish_reason is None:
                progress.append(self._advance(item, token_ids))
            self._settle(seq)
        return progress

    def discard(self, plan: Plan) -> None:
        """A step did not run: those in it start over. A later one in flight has to be discarded as well."""
        for item in plan.items:
            seq = self._count_back(item)
            if seq in self.running:
                self._preempt(seq)
            self._settle(seq)

    def _count_back(self, item: PlanItem) -> Sequence:
        item.sequence.num_in_flight -= 1
        item.sequence.num_awaited -= item.samples
        return item.sequence

    def _settle(self, seq: Sequence) -> None:
        if seq in self.leaving and seq.num_in_flight == 0:
            self.leaving.remove(seq)
            self.tables.release(seq)

    def _advance(self, item: PlanItem, token_ids: Seq[int]) -> Progress:
        assert len(token_ids) <= item.samples
        seq, new = item.sequence, item.accepted(token_ids)
        assert bool(new) == bool(item.samples)
        num_rejected = item.samples - len(new)
        seq.tokens += new
        seq.num_scheduled -= num_rejected
        self.num_drafted += len(item.drafts)
        self.num_accepted += len(item.drafts) - num_rejected
        self.tables.advance(seq, item.start + item.num_tokens - num_rejected)
        reason = None
        if new and new[-1] in seq.end_ids:
            reason = FinishReason.STOP
        elif len(seq.tokens) >= seq.max_length:
            reason = FinishReason.LENGTH
        if reason:
            self._finish(seq, reason)
        return Progress(seq, new, reason)

    def check(self) -> None:
        """Verify every count of every pool. For tests."""
        assert all(not any(seq.block_tables) for seq in self.waiting if seq not in self.leaving)
        assert all(seq.num_in_flight for seq in self.leaving) and not set(self.running) & set(self.leaving)
        self.tables.check(self.running + self.leaving)
