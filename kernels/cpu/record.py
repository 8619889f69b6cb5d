"""A forward pass as it is taken down: rows of a program, and what runs them again.

walk.py draws a row. A record holds addresses: what stands there when it runs is what counts, and what they
belong to lives as long as the record.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .threads import Team
from .walk import ROW

DTYPES = {torch.float32, torch.float16, torch.int8, torch.int64, torch.uint8}  # what kernels read and write


@dataclass(slots=True)
class Record:
    """Rows of a program, and what must live as long as they are run."""

    rows: list[list[int]] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)
    streams: list[tuple[int, ...]] = field(default_factory=list)  # row; address, units, their size

    def at(self, owner: Tensor | np.ndarray) -> int:
        """The address of a buffer."""
        self.kept.append(owner)
        if isinstance(owner, Tensor):
            assert owner.dtype in DTYPES and (owner.stride(-1) == 1 or owner.shape[-1] == 1), owner
            return owner.data_ptr()
        return int(owner.ctypes.data)

    def counter(self) -> int:
        """The address of a zero that threads count with, alone in its cache line."""
        return self.at(np.zeros(16, np.int64))

    def add(self, kernel: int, *args: int, meet: bool = True) -> None:
        """A row: a kernel by its address, its arguments, and whether all threads meet after it."""
        spare = ROW - 2 - len(args)
        self.rows.append([kernel, int(meet), *args, *[0] * spare])

    def add_stream(self, kernel: int, *args: int, meet: bool = True) -> None:
        """A row that reads weights; its first arguments say where: address, units, bytes of a unit. In the
        program they are those of the next such row, which it fetches in advance; after the last, the first.
        """
        self.streams.append((len(self.rows), *args[:3]))
        self.add(kernel, *args, meet=meet)

    def program(self) -> np.ndarray:
        """The table that is walked."""
        for (row, *_), (_, *following) in zip(self.streams, self.streams[1:] + self.streams[:1], strict=True):
            self.rows[row][2:5] = following
        return np.array(self.rows, np.int64).reshape(-1, ROW)


@dataclass(frozen=True, slots=True)
class Replay:
    """Runs a record."""

    team: Team
    walk: int  # walk.make_walk's address
    program: np.ndarray
    clock: np.ndarray  # one cache line
    arguments: np.ndarray  # of the walk
    kept: list[Any]

    @staticmethod
    def of(record: Record, team: Team, walk: int, give_way: int) -> Replay:
        """That of a record, whose rows do not change any more."""
        program, clock = record.program(), np.zeros(16, np.int64)
        numbers = program.ctypes.data, len(program), clock.ctypes.data, give_way
        return Replay(team, walk, program, clock, np.array(numbers, np.int64), record.kept)

    def __call__(self) -> None:
        self.clock[0] = 0
        self.team.run(self.walk, self.arguments.ctypes.data)
