"""What this machine is and how much of it is free right now.

Asked once before a model is loaded, and by `octavo doctor`. Memory limits set by a container (cgroups)
count as the machine's own. Loads neither torch nor numba; what a processor's kernels can use is decided in
kernels/.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import psutil

CGROUP = Path("/sys/fs/cgroup")
# limit and usage files of the two cgroup versions
CGROUP_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device that can run a model. Memory in bytes; `reason` says why this one was taken."""

    name: str
    kind: str  # torch's device type: "cpu"
    memory_total: int
    memory_available: int
    cores: int  # physical, as far as the system says
    unified: bool  # its memory is the system's memory
    reason: str


def cgroup_memory(root: Path = CGROUP) -> tuple[int, int] | None:
    """(limit, used) of the container this process runs in; None where there is no limit."""
    for limit_file, used_file in CGROUP_FILES:
        try:
            limit, used = ((root / name).read_text().strip() for name in (limit_file, used_file))
        except OSError:
            continue
        # version 1 writes "no limit" as a number near 2^63
        if limit.isdecimal() and used.isdecimal() and int(limit) < 2**60:
            return int(limit), int(used)
    return None


def processor_name() -> str:
    """The processor's marketing name, or its architecture where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def usable_cores() -> int:
    """Physical cores that this process may run on."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def detect(cgroup_root: Path = CGROUP) -> DeviceFacts:
    """The device that models run on, with the memory that is free at this moment."""
    memory = psutil.virtual_memory()
    total, available, reason = memory.total, memory.available, "Models run on the processor."
    if limit := cgroup_memory(cgroup_root):
        total, available = min(total, limit[0]), min(available, max(0, limit[0] - limit[1]))
        reason += " Its memory is limited by the container it runs in."
    return DeviceFacts(processor_name(), "cpu", total, available, usable_cores(), True, reason)
