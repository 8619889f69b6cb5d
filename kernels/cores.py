"""Which processors a thread each is worth: one of every core that this process may use.

The two processors that a system shows of one core share what computes; where that can't be told, each counts
as a core. How many threads there are is not decided here.
"""

from __future__ import annotations

import os
from pathlib import Path


def physical_cores() -> list[int]:
    """One logical processor of each core this process may use; where that cannot be told, every processor it
    may use.
    """
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    seen: set[str] = set()
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        core = siblings.read_text() if siblings.exists() else str(cpu)
        if core not in seen:
            seen.add(core)
            found.append(cpu)
    return found
