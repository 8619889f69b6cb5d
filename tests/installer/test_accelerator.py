"""Which card is found, from faked facts: what a driver prints, what the kernel's files hold."""

from __future__ import annotations

import sys
from fnmatch import fnmatch

import pytest

from installer.accelerator import ASK_CUDA, LIST_WINDOWS, Accelerator, Probe, detect, hint

KFD = "/sys/class/kfd/kfd/topology/nodes/{}/properties"
PCI = "/sys/bus/pci/devices/0000:0{}:00.0/{}"
CUDA = (sys.executable, "-I", "-c", ASK_CUDA)


def probe(
    system: str = "linux",
    machine: str = "x86_64",
    prints: dict[tuple[str, ...], str] | None = None,
    files: dict[str, str] | None = None,
) -> Probe:
    """A machine on which these commands print and these files exist."""
    there = files or {}
    return Probe(
        system,
        machine,
        run=lambda command: (prints or {}).get(tuple(command), ""),
        read=lambda path: there.get(path, ""),
        glob=lambda pattern: [path for path in there if fnmatch(path, pattern)],
    )


def card(slot: int, kind: str, vendor: str) -> dict[str, str]:
    return {PCI.format(slot, "class"): kind, PCI.format(slot, "vendor"): f"{vendor}\n"}


APU = {KFD.format(0): "gfx_target_version 0\n", KFD.format(1): "simd_count 64\ngfx_target_version 110000\n"}
SYSCTL = ("sysctl", "-n", "machdep.cpu.brand_string")
MACHINES = {
    "nothing": (probe(), Accelerator("none")),
    "H200": (
        probe(prints={CUDA: "13000 9 0 NVIDIA H200\n"}),
        Accelerator("nvidia", "NVIDIA H200", cuda=(13, 0), capability=(9, 0)),
    ),
    "an old card on Windows": (
        probe("win32", "AMD64", {CUDA: "12060 6 1 NVIDIA GeForce GTX 1080\n"}),
        Accelerator("nvidia", "NVIDIA GeForce GTX 1080", cuda=(12, 6), capability=(6, 1)),
    ),
    "a driver that answers nonsense": (probe(prints={CUDA: "Killed"}), Accelerator("none")),
    "RX 7900": (probe(files=APU), Accelerator("amd", architecture="gfx1100")),
    "MI250": (
        probe(files={KFD.format(3): "gfx_target_version 90010"}),
        Accelerator("amd", architecture="gfx90a"),
    ),
    "NVIDIA before AMD": (
        probe(prints={CUDA: "12090 8 9 L4"}, files=APU),
        Accelerator("nvidia", "L4", cuda=(12, 9), capability=(8, 9)),
    ),
    "NVIDIA without a driver, beside Intel": (
        probe(files={**card(0, "0x030000", "0x8086"), **card(1, "0x030200", "0x10de")}),
        Accelerator("nvidia", usable=False),
    ),
    "a network card of Intel's": (probe(files=card(0, "0x020000", "0x8086")), Accelerator("none")),
    "Intel on Windows": (
        probe("win32", "AMD64", {tuple(LIST_WINDOWS): "Intel(R) Arc(TM) A770\n"}),
        Accelerator("intel", "Intel(R) Arc(TM) A770", usable=False),
    ),
    "a Mac": (probe("darwin", "arm64", {SYSCTL: "Apple M4 Pro\n"}), Accelerator("apple", "Apple M4 Pro")),
    "a Mac with Intel": (probe("darwin", "x86_64"), Accelerator("none")),
}


@pytest.mark.parametrize("name", MACHINES)
def test_detect(name: str) -> None:
    machine, found = MACHINES[name]
    assert detect(machine) == found


def test_a_new_driver_changes_the_hint() -> None:
    assert hint(probe()) == ""
    assert hint(probe(files={"/dev/kfd": "", "/dev/null": ""})) == "/dev/kfd"


def test_on_this_machine() -> None:
    assert detect().kind in ("nvidia", "amd", "apple", "intel", "none")
