"""A whole engine on a tiny model, driven step by step; keeps the logits that each token came from."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence as Seq
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import torch

from engine.checkpoints import open_checkpoint
from engine.engine import Engine
from engine.fitting.memory_plan import MemoryPlan
from engine.models import load_decoder, read_config
from engine.running.kv_cache import kind_facts
from engine.running.runner import Runner
from engine.scheduling.block_pool import BlockPool, Chain, Identity
from engine.scheduling.pace import Pace
from engine.scheduling.plan import Plan
from engine.scheduling.scheduler import Scheduler
from engine.scheduling.sequence import Sequence
from engine.scheduling.speculation import MOST_IN_STEP
from engine.tiers.disk import Disk
from engine.tiers.host import Host
from engine.tiers.segments import Seal
from engine.tiers.store import BlockStore
from engine.tiers.tiers import Tiers
from engine.types import FinishReason, Priority, SamplingParams
from kernels import Ops

CONTEXT = 256


@dataclass
class Outcome:
    """What a sequence got."""

    tokens: list[int] = field(default_factory=list)
    logits: list[torch.Tensor] = field(default_factory=list)
    reason: FinishReason | None = None
    error: str = ""
    num_cached: int = 0


class Ladder:
    """Few blocks, small steps: all that makes an engine's life hard can be set."""

    def __init__(
        self,
        path: Path,
        ops: Ops,
        *,
        num_blocks: int = 65,
        block_size: int = 16,
        chunk: int = 512,  # tokens of prompts in a step
        max_num_seqs: int = 8,
        propose: Callable[[list[tuple[Sequence, int]]], list[list[int]]] | None = None,
        depth: int = 0,
        wants_drafts: Callable[[Seq[Sequence]], bool] = lambda running: False,
        host_bytes: int = 0,
        folder: Path | None = None,  # of the disk tier
    ) -> None:
        with open_checkpoint(path) as checkpoint:
            config = read_config(checkpoint)
            model = load_decoder(checkpoint, config, ops, CONTEXT, lambda part: None)
        kinds = tuple(facts.with_blocks(block_size) for facts in kind_facts(config, ops.kv_dtype))
        blocks, max_rows = (num_blocks,) * len(kinds), max_num_seqs + MOST_IN_STEP
        sizes = (block_size, CONTEXT, kinds, blocks, 0, 0, 0, max_num_seqs, 512, max_rows, ())
        self.runner = Runner(model, ops, MemoryPlan(*sizes))
        self.now = 0.0
        root = Chain.root(b"", Identity("", "", "", "", block_size))
        self.scheduler = Scheduler(
            tuple(BlockPool(kind, num_blocks, block_size) for kind in kinds),
            lambda owner: Chain.root(b"", Identity(owner, "", "", "", block_size)) if owner else root,
            # steps take no time on this clock, so the first guess of the pace stands
            Pace(target_s=1.0, token_s=1.0 / chunk),
            context_length=CONTEXT,
            max_num_seqs=max_num_seqs,
            max_step_tokens=512,
            propose=propose,
        )
        self.runner.depth = depth
        self._given, self.runner.launch = self.runner.launch, self._launch  # type: ignore[method-assign]
        self._logits: defaultdict[Sequence, deque[list[torch.Tensor]]] = defaultdict(deque)
        self.engine = Engine(self.scheduler, self.runner, lambda: self.now, wants_drafts)
        if host_bytes or folder:
            host = Host(host_bytes) if host_bytes else None
            disk = Disk(BlockStore(folder), Seal(b"", repr(kinds)), 2**40) if folder else None
            self.engine.tiers = Tiers(self.scheduler, self.runner.cache, host, disk)
        self.outcomes: dict[str, Outcome] = {}
        self.preemptions = 0

    def add(
        self,
        name: str,
        prompt: list[int],
        num_tokens: int,
        params: SamplingParams | None = None,
        **more: object,
    ) -> Sequence:
        """Queue a request; greedy unless told otherwise."""
        request = SimpleNamespace(params=params or SamplingParams(temperature=0), seed=7)
        seq = Sequence(name, list(prompt), num_tokens, request=request, priority=Priority.CHAT, **more)
        self.scheduler.add(seq, self.now)
        self.outcomes[name] = Outcome()
        return seq

    def step(self) -> None:
        """One step, every count verified after it."""
        running = list(self.scheduler.running)
        for got in self.engine.step():
            outcome, seq = self.outcomes[got.sequence.id], got.sequence
            rows = self._logits[seq].popleft() if self._logits[seq] else []
            outcome.logits += rows[: len(got.token_ids)]
            outcome.tokens += got.token_ids
            outcome.reason, outcome.error = got.reason, got.error
            outcome.num_cached = seq.num_cached
        self.preemptions += sum(
            seq.finish_reason is None and seq not in self.scheduler.running for seq in running
        )
        self.scheduler.check()

    def _launch(self, plan: Plan) -> Callable[[], list]:
        """The runner's, and each item's rows of logits are kept until it is told what it got."""
        collect, row = self._given(plan), 0
        for item in plan.items:
            kept = self.runner.logits[row : row + item.samples].double()
            self._logits[item.sequence].append([line.clone() for line in kept])
            row += item.samples
        return collect

    def run(self) -> dict[str, Outcome]:
        """Until nothing is left."""
        while self.engine.has_work():
            self.step()
        return self.outcomes

    def close(self) -> None:
        """Save what was left behind."""
        assert self.engine.tiers
        self.engine.tiers.close()


def alone(
    path: Path, ops: Ops, prompt: Iterable[int], num_tokens: int, params: SamplingParams | None = None
) -> Outcome:
    """The same request in an engine of its own: the truth that company must not change."""
    ladder = Ladder(path, ops)
    ladder.add("alone", list(prompt), num_tokens, params)
    return ladder.run()["alone"]
