"""Where Triton keeps what it compiled for a card. Other findings about the card belong beside that: who
deletes one should lose the other. Knows no card.
"""

from __future__ import annotations

from pathlib import Path


def cache_folder() -> Path:
    """As Triton's settings say, or its usual place where there is no Triton."""
    try:
        from triton import knobs
    except ImportError:
        return Path.home() / ".triton" / "cache"
    return Path(knobs.cache.dir)
