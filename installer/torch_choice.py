"""Which build of PyTorch fits this machine, and why, as a sentence.

PyTorch's own index has a build for each kind of graphics card and a small one for processors; the ordinary
package index has one build per system. `wanted` and `choose` are pure; `ask` is the one question to the
network.
"""

from __future__ import annotations

import platform
import re
import sys
import threading
import urllib.request
from dataclasses import dataclass
from urllib.parse import unquote

from .accelerator import Accelerator
from .errors import SetupError

OLDEST, BEFORE = (2, 11), (2, 14)  # the range in pyproject.toml
ORDINARY = "torch==2.13.*"  # what is asked of the ordinary index
INDEX = "https://download.pytorch.org/whl"
PATIENCE_S = 5.0

# NVIDIA's builds, the best first: label, least CUDA of the driver, least and most compute capability.
CUDA_BUILDS = (
    ("cu130", (13, 0), (7, 5), (99, 9)),
    ("cu129", (12, 9), (7, 0), (99, 9)),
    ("cu126", (12, 6), (5, 0), (9, 0)),
)
ROCM_BUILD = "rocm7.2"
ROCM_CARDS = (
    *("gfx908", "gfx90a", "gfx942", "gfx950"),
    *("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201"),
)
WHEEL = re.compile(r"torch-(\d+)\.(\d+)\.(\d+)\+([\w.]+)-(cp\d+)-(cp\d+)-(\w+)\.whl")


@dataclass(frozen=True, slots=True)
class Host:
    """What the files' names depend on."""

    system: str = sys.platform
    machine: str = platform.machine()
    python: str = f"{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, slots=True)
class Build:
    """A build's label on PyTorch's index ("" where the ordinary index has the same one), and why this one."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class TorchChoice:
    """pip's arguments and the reason, both for the person to read."""

    arguments: tuple[str, ...]
    reason: str


def wanted(card: Accelerator, host: Host) -> Build:
    """The build for this card on this system. Raises SetupError where PyTorch no longer has any."""
    if host.system == "darwin" and card.kind != "apple":
        raise SetupError(
            "PyTorch has had no builds for Macs with Intel processors since 2.2; Octavo needs 2.11."
        )
    if card.kind == "apple":
        return Build("", f"{card.name or 'Apple silicon'}: the ordinary build uses its graphics.")
    if card.kind in DRIVERS and not card.usable:
        return _processor(
            host, f"an {card.kind.upper()} card is here but not its driver {DRIVERS[card.kind]}"
        )
    return CHOICES[card.kind](card, host)


def _processor(host: Host, why: str) -> Build:
    # Only for Linux does the ordinary index carry a build with graphics libraries of several GB.
    return Build("cpu" if host.system == "linux" else "", f"The build for processors, because {why}.")


def _nvidia(card: Accelerator, host: Host) -> Build:
    speaks = f"{card.name}, driver for CUDA {card.cuda[0]}.{card.cuda[1]}"
    for label, driver, least, most in CUDA_BUILDS:
        if card.cuda >= driver and least <= card.capability <= most:
            return Build(label, f"{speaks}: the build for CUDA {label[2:-1]}.{label[-1]}.")
    return _processor(
        host, f"no build fits this card ({speaks}; CUDA 12.6 is the least, a newer driver may help)"
    )


def _amd(card: Accelerator, host: Host) -> Build:
    if host.system == "linux" and card.architecture in ROCM_CARDS:
        return Build(ROCM_BUILD, f"AMD {card.architecture}: the build for ROCm {ROCM_BUILD[4:]}.")
    return _processor(host, f"PyTorch has no build for this AMD card ({card.architecture or host.system})")


def _intel(card: Accelerator, host: Host) -> Build:
    return _processor(host, "Octavo does not use Intel's graphics yet")


def _none(card: Accelerator, host: Host) -> Build:
    return _processor(host, "no graphics card was found")


CHOICES = {"nvidia": _nvidia, "amd": _amd, "intel": _intel, "none": _none}
DRIVERS = {"nvidia": "(install it and start again)", "amd": "(amdgpu with ROCm; install it and start again)"}


def choose(build: Build, host: Host, page: str | None) -> TorchChoice:
    """The newest file of that build on PyTorch's page; None or no such file: the ordinary index."""
    if not build.label:
        return TorchChoice((ORDINARY,), build.reason)
    versions = _versions(page or "", build.label, host)
    if versions:
        newest = ".".join(str(part) for part in max(versions))
        where = ("--extra-index-url", f"{INDEX}/{build.label}")
        return TorchChoice((f"torch=={newest}+{build.label}", *where), build.reason)
    missing = "cannot be reached" if page is None else f"has no {build.label} build for Python {host.python}"
    reason = f"{build.reason} PyTorch's own index {missing}, so the build comes from PyPI."
    return TorchChoice((ORDINARY,), reason)


def _versions(page: str, label: str, host: Host) -> list[tuple[int, ...]]:
    tag = "cp" + host.python.replace(".", "")
    ending = host.machine.lower().replace("arm64", "aarch64")
    found: list[tuple[int, ...]] = []
    for major, minor, patch, build, python, abi, system in WHEEL.findall(unquote(page)):
        version = (int(major), int(minor), int(patch))
        fits = system.startswith(host.system[:3] if host.system == "win32" else ("linux", "manylinux"))
        if fits and system.endswith(ending) and (build, python, abi) == (label, tag, tag):
            found += [version] if OLDEST <= version[:2] < BEFORE else []
    return found


def ask(build: Build, index: str = INDEX, patience: float = PATIENCE_S) -> str | None:
    """The index's page for a build, asked once; None when it does not come in time."""
    answer: list[str] = []

    def fetch() -> None:
        try:
            with urllib.request.urlopen(f"{index}/{build.label}/torch/", timeout=patience) as reply:
                answer.append(reply.read().decode("utf-8", errors="replace"))
        except (OSError, ValueError):
            return

    # In a thread, because looking up a name and a slow trickle of bytes heed no timeout.
    thread = threading.Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(patience)
    return answer[0] if answer else None
