"""A rope's table, worked out piece by piece, holds what is worked out at once in float64."""

from __future__ import annotations

import torch

from engine.models.rope import PIECE, plain

END = 3 * PIECE + 5


def test_a_table_reaches_as_far_as_it_is_asked_to() -> None:
    config = plain(1e4, 32)
    table = config.table(END)
    angles = torch.outer(torch.arange(END).double(), torch.tensor(config.frequencies, dtype=torch.float64))
    for end in (1, PIECE + 1, 3, END + 100):  # further, back, and beyond its end
        rope, known = table.reach(end), min(end, END)
        assert torch.equal(rope.cos[:known], angles.cos().float()[:known])
        assert torch.equal(rope.sin[:known], angles.sin().float()[:known])
