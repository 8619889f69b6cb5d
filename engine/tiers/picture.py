"""A tier for people: how much lies there, how much may, and whether it is of use.

Plain numbers; the page draws them, and `octavo doctor` prints them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TierPicture:
    """`hits` blocks came back from it since the model was loaded. It may have `most` bytes."""

    name: str  # "host" or "disk"
    num_bytes: int
    num_blocks: int
    most: int
    hits: int = 0
