"""Steps of answers are replayed from the smallest record that holds them, all else goes op by op; a batch on
a card has the same numbers as its twin on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from engine.running import batch as engine_batch, runner as engine_runner
from engine.running.batch import BatchWriter, is_sound, make_batch, whole
from engine.running.graphs import record_sizes, recorded
from engine.scheduling.plan import PlanItem
from engine.scheduling.sequence import Sequence
from kernels import ForwardBatch
from kernels.reference import ReferenceOps
from tests.engine.ladder import Ladder
from tests.tiny_models import write_tiny_gguf

HERE = torch.device("cpu")


class Recording(ReferenceOps):
    """A backend whose records have a size; it notes which was replayed, and what ran without one."""

    records_by_size = True

    def __init__(self) -> None:
        super().__init__()
        self.batch: ForwardBatch | None = None
        self.made, self.replayed = list[int](), list[int]()

    def record(self, forward: Callable[[], None]) -> Callable[[], None]:
        assert self.batch and self.batch.host
        size = int(self.batch.host.counts[1])
        assert self.batch.host.counts.tolist() == [size] * 3 and not self.batch.counts.any()
        assert self.batch.host.cu_lens.tolist()[: size + 1] == list(range(size + 1))
        self.made.append(size)

        def replay() -> None:
            self.replayed.append(size)
            forward()

        return replay


def test_sizes() -> None:
    assert record_sizes(1) == [1]
    assert record_sizes(8) == [1, 2, 4, 8]
    assert record_sizes(100) == [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 100]


def test_answers_are_replayed_and_prompts_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf").path
    ops, steps = Recording(), list[tuple[int, int]]()
    original = engine_runner.recorded

    def noted(given: Recording, forward: Callable[[], None], batch: ForwardBatch, most: int) -> object:
        given.batch = batch
        run = original(given, forward, batch, most)

        def counted() -> None:
            before = len(given.replayed)
            run()
            steps.append((int(batch.counts[0]), len(given.replayed) - before))

        return counted

    plain = Ladder(path, ReferenceOps(), max_num_seqs=6)
    monkeypatch.setattr(engine_runner, "recorded", noted)
    monkeypatch.setattr(engine_runner, "card_of", lambda ops: HERE)
    ladder = Ladder(path, ops, max_num_seqs=6)
    assert ops.made == [6, 1, 2, 4], "the largest first, then the small ones"
    for each in (ladder, plain):
        for n, prompt in enumerate(([3, 4, 5], [6], [7, 8])):
            each.add(str(n), prompt, 3 + 2 * n)
    got, wanted = ladder.run(), plain.run()
    assert {n: each.tokens for n, each in got.items()} == {n: each.tokens for n, each in wanted.items()}
    assert steps == [(6, 0), (3, 1), (3, 1), (2, 1), (2, 1), (1, 1), (1, 1)]
    assert ops.replayed == [4, 4, 2, 2, 1, 1]


def test_when_their_time_is_over_larger_records_serve() -> None:
    """The first, which compiles, is not counted; after it two more fit into the time."""
    ops, now = Recording(), iter([100.0, 100.0, 102.0, 104.0])
    batch = make_batch(64, 16, 4, 16, 1, HERE)
    ops.batch = batch
    run = recorded(ops, lambda: None, batch, 16, lambda: next(now))
    assert ops.made == [16, 1, 2]
    for seqs, serves in ((1, 1), (2, 2), (3, 16), (16, 16)):
        table = Sequence("", [], block_tables=([1],))
        BatchWriter(batch, 16).write([PlanItem(table, 0, (7,), (), 1)] * seqs)
        run()
        assert ops.replayed[-1] == serves


def test_without_records_everything_goes_op_by_op() -> None:
    ops, ran = Recording(), list[int]()
    batch = make_batch(16, 4, 4, 4, 1, HERE)
    run = recorded(ops, lambda: ran.append(int(batch.host.counts[0])), batch, 0)  # type: ignore[union-attr]
    BatchWriter(batch, 16).write([PlanItem(Sequence("", [], block_tables=([1],)), 0, (7,), (), 1)])
    run()
    assert ran == [1] and not ops.made


@pytest.mark.parametrize("num_kinds", [1, 2])
def test_a_card_has_what_the_host_has(num_kinds: int) -> None:
    batch = make_batch(40, 4, 4, 8, num_kinds, HERE)
    writer, host = BatchWriter(batch, 16), batch.host
    assert host and whole(batch).data_ptr() != whole(host).data_ptr()
    first = Sequence("", [], block_tables=([5, 2],) * num_kinds)
    second = Sequence("", [], block_tables=([9],) * num_kinds)
    writer.write([PlanItem(first, 15, (1, 2, 3), (), 1), PlanItem(second, 0, (4,), (), 1)])
    assert batch.slots[0][:4].tolist() == [95, 32, 33, 144] and batch.logit_rows[:2].tolist() == [2, 3]
    first.block_tables[0].append(7)
    writer.write([PlanItem(first, 32, (8,), (), 1)])
    assert batch.counts.tolist() == [1, 1, 1] and batch.slots[0][0] == 112
    for mine, theirs in zip((whole(batch), *batch.block_tables), (whole(host), *host.block_tables)):
        assert torch.equal(mine, theirs)


def test_what_is_not_there_is_noticed_on_the_host() -> None:
    batch = make_batch(16, 4, 4, 4, 1)
    writer = BatchWriter(batch, 16)

    def step(token: int, table: list[int], awaited: int = 0) -> bool:
        writer.write([PlanItem(Sequence("", [], block_tables=(table,)), 0, (token,), (), 1)])
        return is_sound(batch, 50, [9], 16, awaited)

    assert step(49, [8]) and not step(50, [8]) and not step(-1, [8])
    assert step(-2, [8], awaited=2) and not step(-3, [8], awaited=2)
    assert not step(4, [9]) and not step(4, [8, 9]) and not step(4, [-1])


def test_parts_of_a_batch_begin_on_borders_of_64_bytes() -> None:
    batch = make_batch(17, 3, 2, 5, 1)
    parts = (
        batch.token_ids,
        batch.positions,
        batch.cu_lens,
        batch.context_lens,
        batch.logit_rows,
        *batch.slots,
    )
    begin = batch.counts.data_ptr()
    assert all((part.data_ptr() - begin) % 64 == 0 for part in parts) and len(batch.token_ids) == 17
    assert engine_batch.card_of(ReferenceOps()) is None
