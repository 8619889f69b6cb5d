"""How attention's programs are cut on each target: rows, tokens at a time, warps, stages. Numbers only.

Found by compiling: the largest tiles whose registers are not spilled, with room for two programs and more on
a core. A row is a new token and a query head that looks at the program's head of keys (attention.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .targets import MATRIX, TARGETS


@dataclass(frozen=True, slots=True)
class Tiles:
    """How a program is cut: BM rows, BN tokens, and what it is compiled with."""

    rows: int
    tokens: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Shapes:
    """A target's tiles: for heads of up to 128 values, the same in 8 bits, for up to 256, and longer ones."""

    short: Tiles
    short_8bit: Tiles
    long: Tiles
    longest: Tiles

    def of(self, dim: int, is_8bit: bool) -> Tiles:
        if dim > 128:
            return self.longest if dim > 256 else self.long
        return self.short_8bit if is_8bit else self.short


_ANSWERS = Shapes(Tiles(16, 64, 2, 2), Tiles(16, 64, 2, 2), Tiles(16, 32, 4, 2), Tiles(16, 16, 8, 1))
_PROMPTS = Shapes(Tiles(128, 64, 8, 2), Tiles(64, 32, 8, 2), Tiles(64, 32, 8, 2), Tiles(32, 16, 8, 1))
_NEW_PROMPTS = Shapes(Tiles(128, 64, 8, 3), Tiles(128, 32, 8, 3), Tiles(64, 32, 8, 2), Tiles(32, 16, 8, 1))
_SUMS = Shapes(Tiles(4, 16, 2, 1), Tiles(4, 16, 2, 1), Tiles(4, 16, 4, 1), Tiles(4, 16, 8, 1))
ANSWERS = {
    **dict.fromkeys((*TARGETS, "interpreter"), _ANSWERS),
    "sm_75": _SUMS,
    "gfx1100": Shapes(Tiles(16, 32, 4, 1), Tiles(16, 32, 4, 1), Tiles(16, 16, 8, 1), Tiles(16, 16, 8, 1)),
    "gfx942": Shapes(Tiles(16, 64, 4, 2), Tiles(16, 64, 4, 2), Tiles(16, 32, 4, 2), Tiles(16, 16, 8, 1)),
}
# sm_75 has none: its prompts are gathered and left to torch.
PROMPTS = {
    **dict.fromkeys((*MATRIX, "interpreter"), _PROMPTS),
    **dict.fromkeys(("sm_90", "sm_100"), _NEW_PROMPTS),
    "gfx1100": Shapes(Tiles(32, 32, 4, 1), Tiles(32, 16, 4, 1), Tiles(16, 16, 8, 1), Tiles(16, 16, 8, 1)),
    "gfx942": Shapes(Tiles(64, 64, 4, 2), Tiles(64, 32, 4, 2), Tiles(32, 32, 4, 1), Tiles(16, 16, 8, 1)),
}
