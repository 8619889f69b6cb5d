"""A step's record, or where a backend's record serves one shape only, one for each number of answers.

    5 answers of one token each  ->  the record made for 8: three of its rows are padding
    prompts, drafts, more        ->  op by op

A record is made with the batch's numbers on the host standing for so many answers, and those on the card for
none: it launches for all of them, and nothing is written. Whoever replays it has fewer on the card. Whoever
waits for a model does not wait for records of all sizes: when their time is over the next larger ones serve.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable

import torch

from kernels import ForwardBatch, Ops

log = logging.getLogger("octavo.engine")

RECORDS_S = 4.0  # for all records; what is compiled for the first of them is not counted


def record_sizes(most: int) -> list[int]:
    """Numbers of answers that have a record of their own: 1, 2, 4, 8, then every 8, from 64 on every 32."""
    sizes = [*(1, 2, 4), *range(8, 64, 8), *range(64, most + 32, 32)]
    return [size for size in sizes if size < most] + [most]


def recorded(
    ops: Ops,
    forward: Callable[[], None],
    batch: ForwardBatch,
    most_answers: int,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
    """What runs `forward` on whatever the batch holds by then. For up to `most_answers` it is recorded, the
    largest first: the others find room in what that took. Then the small ones, as far as time allows.
    """
    if not ops.records_by_size:
        return ops.record(forward)
    sizes = record_sizes(most_answers) if most_answers else []
    records, end = dict[int, Callable[[], None]](), 0.0
    for size in (*sizes[-1:], *sizes[:-1]):
        if records and clock() >= end:
            log.info("records were made for %s answers; the others' time was over", sorted(records))
            break
        stand_for(batch, size)
        records[size] = ops.record(forward)
        end = end or clock() + RECORDS_S
    sizes = sorted(records)
    stand_for(batch, 0)

    def run() -> None:
        assert batch.host is not None
        tokens, seqs, rows = batch.host.counts.tolist()
        if tokens == seqs == rows and 0 < seqs <= most_answers:
            records[sizes[bisect_left(sizes, seqs)]]()
        else:
            forward()

    return run


def stand_for(batch: ForwardBatch, answers: int) -> None:
    """Let the numbers on the host be those of so many answers; the card's are left as they are."""
    host = batch.host
    assert host is not None, "records by size are for batches on a card"
    host.counts.fill_(answers)
    torch.arange(answers + 1, out=host.cu_lens[: answers + 1])
