"""Which graphics processor is in this machine, found with the standard library alone.

`detect` answers with an Accelerator; `hint` with a few file names that change when a driver comes or goes, so
that every start can ask at no cost. All that is read passes through a Probe, which tests replace.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from typing import Literal

# Asks NVIDIA's driver library in a process of its own: a broken driver may crash it. Prints e.g.
# "13000 9 0 NVIDIA H200": the CUDA version the driver speaks, the compute capability, the name.
ASK_CUDA = """
import ctypes, sys
cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
version, major, minor, name = *(ctypes.c_int() for _ in range(3)), ctypes.create_string_buffer(99)
if cuda.cuInit(0) == cuda.cuDriverGetVersion(ctypes.byref(version)) == cuda.cuDeviceGetName(name, 99, 0) == 0:
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0)
    print(version.value, major.value, minor.value, name.value.decode(errors="replace"))
"""
LIST_WINDOWS = ["powershell", "-NoProfile", "-Command", "(Get-CimInstance Win32_VideoController).Name"]
DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "C:/Windows/System32/nvcuda.dll")
TIMEOUT_S = 15

Kind = Literal["nvidia", "amd", "apple", "intel", "none"]
VENDORS: dict[str, Kind] = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}  # PCI
# In the names that Windows gives.
WORDS: tuple[tuple[str, Kind], ...] = (
    ("nvidia", "nvidia"),
    ("amd", "amd"),
    ("radeon", "amd"),
    ("intel", "intel"),
)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The processor that counts. What a kind does not have stays at its default."""

    kind: Kind
    name: str = ""
    usable: bool = True  # False: the card is there and its driver is not
    cuda: tuple[int, int] = (0, 0)  # the newest CUDA that the driver speaks
    capability: tuple[int, int] = (0, 0)  # NVIDIA's compute capability
    architecture: str = ""  # AMD's: gfx1100


def _run(command: list[str]) -> str:
    """What a command prints; "" when it is missing, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Probe:
    """The machine as the installer sees it."""

    system: str = sys.platform
    machine: str = platform.machine()
    run: Callable[[list[str]], str] = _run
    read: Callable[[str], str] = _read
    glob: Callable[[str], list[str]] = glob


def detect(probe: Probe | None = None) -> Accelerator:
    """The best processor here: one with a working driver, else a card without, else none."""
    probe = probe or Probe()
    if probe.system == "darwin":
        return _apple(probe)
    return _nvidia(probe) or _amd(probe) or _without_driver(probe) or Accelerator("none")


def hint(probe: Probe | None = None) -> str:
    """The driver files that are there, as one line; another line means: detect again."""
    probe = probe or Probe()
    return " ".join(path for path in DRIVER_FILES if probe.glob(path))


def _apple(probe: Probe) -> Accelerator:
    if probe.machine != "arm64":
        return Accelerator("none")
    return Accelerator("apple", probe.run(["sysctl", "-n", "machdep.cpu.brand_string"]).strip())


def _nvidia(probe: Probe) -> Accelerator | None:
    found = re.match(r"(\d+) (\d+) (\d+) (.*)", probe.run([sys.executable, "-I", "-c", ASK_CUDA]))
    if not found:
        return None
    version = int(found[1])
    cuda, capability = (version // 1000, version % 1000 // 10), (int(found[2]), int(found[3]))
    return Accelerator("nvidia", found[4].strip(), cuda=cuda, capability=capability)


def _amd(probe: Probe) -> Accelerator | None:
    """From the kernel driver's own list: gfx_target_version 110000 is gfx1100, 90010 is gfx90a."""
    for path in sorted(probe.glob("/sys/class/kfd/kfd/topology/nodes/*/properties")):
        found = re.search(r"gfx_target_version (\d+)", probe.read(path))
        if found and int(found[1]):
            major, minor, step = int(found[1]) // 10000, int(found[1]) // 100 % 100, int(found[1]) % 100
            return Accelerator("amd", architecture=f"gfx{major}{minor:x}{step:x}")
    return None


def _without_driver(probe: Probe) -> Accelerator | None:
    if probe.system == "win32":
        names = probe.run(LIST_WINDOWS).splitlines()
        found = [Accelerator(kind, n.strip()) for n in names for word, kind in WORDS if word in n.lower()]
    else:
        displays = [p for p in probe.glob("/sys/bus/pci/devices/*/class") if probe.read(p).startswith("0x03")]
        vendors = [probe.read(str(Path(path).with_name("vendor"))).strip() for path in displays]
        found = [Accelerator(VENDORS[vendor]) for vendor in vendors if vendor in VENDORS]
    order = {"nvidia": 0, "amd": 1, "intel": 2}
    best = min(found, key=lambda one: order[one.kind], default=None)
    return replace(best, usable=False) if best else None
