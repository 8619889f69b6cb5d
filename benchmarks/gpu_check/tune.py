"""Which tiles would be better: candidates for four-bit products, the best of each printed beside the one that
is shipped and written down for configs.py.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from kernels.triton import linear
from kernels.triton.configs import Tile, form_of

from .products import calls, several
from .report import Row
from .setup import Setup, seconds
from .weights import shape_of

FOUND = "tiles.json"
CANDIDATES = {
    1: [
        Tile(8, n, c, w, s)
        for n, c, w, s in itertools.product((32, 64), (2, 4), (1, 2), (3, 4))
        if n >= 32 * w
    ],
    16: [
        Tile(16, n, c, w, s)
        for n, c, w, s in itertools.product((32, 64), (2, 4), (1, 2), (3, 4))
        if n >= 32 * w
    ],
    64: [Tile(r, n, 2, 4, s) for r, n, s in itertools.product((32, 64), (64, 128), (2, 3))],
}


def tune(setup: Setup) -> Iterator[Row]:
    """The best tile for each matrix and number of rows, beside the one that is shipped."""
    found: dict[str, dict[str, object]] = {}
    for name, (n, k) in shape_of(setup).matrices.items():
        packed = several(setup, "w4 g128", n, k)
        for rows, candidates in CANDIDATES.items():
            shipped = form_of(setup.ops.target, packed[0].parts[0], rows)
            times = {}
            for tile in candidates if not setup.dry else candidates[:1]:
                try:
                    times[tile] = with_tile(setup, packed, rows, tile)
                except Exception as error:  # a candidate may need more than the card has
                    yield Row("tune", f"{name} {tile}", 0, "", note=f"{type(error).__name__}: {error}"[:80])
            if not times:
                continue
            now, best = with_tile(setup, packed, rows, None), min(times, key=times.__getitem__)
            found[f"{name} {rows}"] = {"tile": str(best), "us": times[best] * 1e6, "shipped us": now * 1e6}
            note = f"{best}; shipped {shipped} takes {now * 1e6:.1f}"
            yield Row(
                "tune", f"{name}, {rows} rows", times[best] * 1e6, "us", share=now / times[best], note=note
            )
    (setup.folder / FOUND).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def with_tile(setup: Setup, packed: list, rows: int, tile: Tile | None) -> float:
    """Seconds of a product with this tile, or as it is shipped."""
    original = linear.form_of
    if tile:
        linear.form_of = lambda *_: tile
    try:
        return seconds(setup, calls(setup, packed, rows))
    finally:
        linear.form_of = original
