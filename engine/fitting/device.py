"""What this machine is and how much of it is free right now.

Asked once before a model is loaded, and by `octavo doctor`. Memory limits set by a container (cgroups)
count as the machine's own. Which device is taken is decided in abilities.py. Loads no torch where there is no
driver of a card; what a processor's kernels can use is decided in kernels/.
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from .abilities import CARDS, SERVED, Card, DeviceFacts, Machine, abilities, choose_device
from .card_check import check, fault_of
from .cores import CGROUP, usable_cores

# limit and usage files of the two cgroup versions, and what they know in detail
CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)
# of NVIDIA, of a Windows machine's Linux, of AMD, of NVIDIA on Windows
DRIVERS = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "C:/Windows/System32/nvcuda.dll")
SPEED_BYTES, SPEED_TRIES, SPEED_THREADS = 2**26, 5, 8
CACHED = ("inactive_file", "active_file")  # of the usage: pages of files, which make room when it is needed


def cgroup_memory(root: Path = CGROUP) -> tuple[int, int] | None:
    """(limit, used) of the container this process runs in; None where there is no limit. Pages of files, a
    model's above all, are not counted as used: the system counts them as available, too.
    """
    for limit_file, used_file, stat_file in CGROUP_FILES:
        try:
            limit, used = ((root / name).read_text().strip() for name in (limit_file, used_file))
        except OSError:
            continue
        # version 1 writes "no limit" as a number near 2^63
        if limit.isdecimal() and used.isdecimal() and int(limit) < 2**60:
            return int(limit), max(0, int(used) - _cached(root / stat_file))
    return None


def _cached(stat_file: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        pairs = (line.split() for line in stat_file.read_text().splitlines())
        return sum(int(number) for name, number in pairs if name in CACHED)
    return 0


def processor_name() -> str:
    """The processor's marketing name, or its architecture where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def detect(
    cgroup_root: Path = CGROUP,
    look_for_cards: bool = False,
    served: tuple[str, ...] = SERVED,
    check: bool = False,
    tell: Callable[[], None] = lambda: None,
) -> DeviceFacts:
    """The device that models run on, with the memory that is free at this moment. Cards that can't be used
    are looked for only when asked: that loads torch. `check`: a card that never was is checked, which may
    take a minute, and `tell` called before; else it is taken to be sound.
    """
    memory = psutil.virtual_memory()
    look_for_cards = look_for_cards or bool(set(served) & set(CARDS) and has_driver())
    cards = [judged(card, check, tell) for card in read_cards()] if look_for_cards else []
    limit = cgroup_memory(cgroup_root)
    cores = usable_cores(cgroup_root)
    machine = Machine(processor_name(), cores, memory.total, memory.available, limit, tuple(cards))
    return choose_device(machine, served)


def detect_processor() -> DeviceFacts:
    """The processor alone, with the machine's memory that is free at this moment. Looks at no card."""
    return detect(served=())


def has_driver() -> bool:
    """Whether there is a driver of a card that kernels are for: a look at the file system."""
    return any(Path(file).exists() for file in DRIVERS)


def judged(card: Card, check_it: bool, tell: Callable[[], None] = lambda: None) -> Card:
    """The same with what its check says, if kernels are for it and it has the abilities."""
    if card.kind not in SERVED or not abilities(card):
        return card

    def run() -> str:
        tell()
        return check()

    return replace(card, fault=fault_of(card, run if check_it else None))


def read_cards(torch: Any = None) -> list[Card]:
    """The cards that torch can compute on. Tests pass a torch of their own; run on no real card yet."""
    if torch is None:
        import torch
    cards: list[Card] = []
    for kind in ("cuda", "xpu"):  # torch's names: AMD's cards are its "cuda" as well
        backend: Any = getattr(torch, kind)
        with contextlib.suppress(RuntimeError):  # a driver that does not answer
            count = backend.device_count() if backend.is_available() else 0
            cards += (_card(torch, kind, backend, index) for index in range(count))
    if torch.backends.mps.is_available():
        most = torch.mps.recommended_max_memory()
        free = max(0, most - torch.mps.driver_allocated_memory())
        cards.append(Card("mps", processor_name(), most, free, unified=True))
    return cards


def _card(torch: Any, kind: str, backend: Any, index: int) -> Card:
    facts = backend.get_device_properties(index)
    free, total = backend.mem_get_info(index)
    unified = bool(getattr(facts, "is_integrated", False))
    if kind == "cuda" and torch.version.hip:
        architecture = facts.gcnArchName.partition(":")[0]
        return Card("rocm", facts.name, total, free, architecture=architecture, unified=unified)
    capability = (facts.major, facts.minor) if kind == "cuda" else (0, 0)
    return Card(kind, facts.name, total, free, capability, unified=unified)


def read_speed(cores: int) -> float:
    """Bytes a second that the processor reads from memory, all cores at once: the best of a few tries.

    A processor writes a token about as fast as it reads the model's weights. Takes a tenth of a second.
    """
    import numpy as np

    cores = min(cores, SPEED_THREADS)  # a few keep the memory busy
    blocks = [np.ones(SPEED_BYTES // 8, np.int64) for _ in range(cores)]  # far more than a cache holds
    best = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(SPEED_TRIES):
            started = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, blocks))  # one pass, vectorised, without the GIL
            best = min(best, time.perf_counter() - started)
    return cores * SPEED_BYTES / best
