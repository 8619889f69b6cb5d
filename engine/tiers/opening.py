"""The tiers of a loaded model: how large they are, and what blocks must have in common to be the same.

Every "auto" is decided here by a pure function of what is free.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..config import EngineConfig
from ..fitting.memory_plan import GIB, MemoryFacts, ModelFacts
from ..program_text import SOURCES
from ..scheduling.scheduler import Scheduler
from .disk import Disk
from .host import Host
from .picture import TierPicture
from .segments import Seal
from .store import FAILED, BlockStore
from .tiers import Device, Tiers

MOST_HOST, HOST_SHARE = 4 * GIB, 4  # bytes that are taken without being asked; of the free memory a quarter
MOST_DISK, DISK_SHARE = 20 * 10**9, 10  # of the disk's free bytes, and what lies there already, a tenth
COMPUTE = ("torch", "numba", "llvmlite")  # another version may round in another way


def swap_space(config: EngineConfig, memory: MemoryFacts, host_available: int) -> int:
    """Bytes of the host tier: 0 where the device's memory is the machine's, a block would only move."""
    if config.swap_space is not None:
        return min(config.swap_space, host_available)
    return 0 if memory.unified else min(MOST_HOST, host_available // HOST_SHARE)


def disk_quota(quota: int | None, free: int, taken: int) -> int:
    """Bytes that segments may take; as set, or by the room that there is."""
    return quota if quota is not None else min(MOST_DISK, (free + taken) // DISK_SHARE)


def computed_by(facts: ModelFacts, block_bytes: Sequence[int]) -> str:
    """Who computed a block: whatever may change a bit of it, beside what its chain hash holds."""
    versions = [_version(name) for name in COMPUTE]
    parts = facts.fingerprint, facts.formats, facts.kv_dtype, tuple(block_bytes), platform.machine(), versions
    return f"{SOURCES} {parts}"


def open_tiers(
    scheduler: Scheduler,
    device: Device,
    facts: ModelFacts,
    secret: bytes,
    swap_bytes: int,
    folder: Path | None,
    quota: int | None,
) -> Tiers | None:
    """What stands below the device. `folder` None or quota 0: nothing is written, nor read."""
    host = Host(swap_bytes) if swap_bytes else None
    disk = None
    if folder is not None and quota != 0:
        sizes = [pool.kind.bytes_per_block for pool in scheduler.tables.pools]
        seal = Seal(secret, computed_by(facts, sizes))
        picture = disk_picture(folder, quota)
        disk = Disk(BlockStore(folder), seal, picture.most)
    return Tiers(scheduler, device, host, disk) if host or disk else None


def disk_picture(folder: Path, quota: int | None) -> TierPicture:
    """The disk tier while no model has it."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        taken, blocks = BlockStore(folder).totals()
    except FAILED:  # it is begun anew when a model is loaded
        taken = blocks = 0
    most = disk_quota(quota, shutil.disk_usage(there).free, taken)
    return TierPicture("disk", taken, blocks, most)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
