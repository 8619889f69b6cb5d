"""How much room models take, have, and may have: the disk's, and the quota that the person set.

Only counts and refuses; deleting is model_store.py's.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from engine import in_words

from ..errors import PullFailed
from .model_store import ModelStore, bytes_in

GB = 10**9
SPARE = 256 * 2**20  # bytes of the disk that a download leaves to others


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes. `models` counts downloads under way; `quota` 0: there is none."""

    models: int
    packed: int
    free: int
    quota: int

    @property
    def room(self) -> int:
        """What can still be fetched."""
        room = self.free - SPARE
        return min(room, self.quota - self.models) if self.quota else room


def disk_use(store: ModelStore, packed: Path, quota_gb: int) -> DiskUse:
    """As it is now."""
    return DiskUse(bytes_in(store.folder), bytes_in(packed), free_bytes(store.folder), quota_gb * GB)


def free_bytes(folder: Path) -> int:
    """Of the disk that the folder is on, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check_room(store: ModelStore, name: str, needed: int, quota_gb: int) -> None:
    """Raises PullFailed, with the numbers, where `needed` more bytes don't fit."""
    free = free_bytes(store.folder)
    if free < needed + SPARE:
        raise PullFailed(
            f"{name} needs {in_words(needed)} more and {in_words(SPARE)} to spare, but only {in_words(free)} "
            f"are free in {store.folder}. Delete something, then try again."
        )
    used = bytes_in(store.folder) if quota_gb else 0
    if quota_gb and used + needed > quota_gb * GB:
        raise PullFailed(
            f"{name} needs {in_words(needed)} more, but models take {in_words(used)} of the "
            f"{in_words(quota_gb * GB)} that they may (models_quota). Delete one, or allow more."
        )
