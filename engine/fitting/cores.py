"""How many threads compute: the cores that this process may keep busy, counted here and nowhere else.

Fewer than the machine has where the process is bound to some, or a container has a quota of their time
(cgroups). Which thread takes which is kernels' to decide.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from kernels import physical_cores

CGROUP = Path("/sys/fs/cgroup")
# what a container may take of each period, in microseconds: of the two cgroup versions
QUOTA_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


def cpu_quota(root: Path = CGROUP) -> int | None:
    """How many processors a container may keep busy; None where there is no limit."""
    for files in QUOTA_FILES:
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = " ".join((root / name).read_text() for name in files).split()
            if int(quota) > 0:  # "max" in version 2, -1 in version 1: no limit
                return max(1, int(quota) // int(period))
    return None


def usable_cores(root: Path = CGROUP) -> int:
    """Cores that this process may keep busy, at least one."""
    limits = (len(physical_cores()), psutil.cpu_count(logical=False), cpu_quota(root))
    return max(1, min(limit for limit in limits if limit))


def threads_for(wanted: int | None) -> int:
    """How many threads compute. By default one core is left to the page and the rest of the machine where
    there are more than four; a wish is granted up to what the processor runs at once: more would stand in
    each other's way.
    """
    if wanted:
        return min(wanted, os.cpu_count() or 1)
    cores = usable_cores()
    return cores - 1 if cores > 4 else cores
