"""What kernels are compiled for, and how a kernel's module says what it ships.

A target is a card's architecture, by the name that its compiler gives it. `Shipped` is a kernel in one
configuration on some targets: TritonOps launches no other, and what is listed is compiled ahead of time by
tests, without a card. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Target:
    """What kernels may count on. KiB of shared memory are what one program can have."""

    name: str
    shared_kib: int
    warp: int = 32  # threads
    matrix: bool = True  # Triton multiplies on matrix units
    bf16: bool = True  # in bfloat16, too
    fp8: bool = False  # e4m3 is read by an instruction; elsewhere its bits are taken apart


# Shared memory: the CUDA programming guide's table of technical specifications, the most a block can have;
# AMD: the size of its LDS. Matrix units: what Triton 3.7 makes of tl.dot (docs/GPU.md).
TARGETS = {
    target.name: target
    for target in (
        Target("sm_75", 64, matrix=False, bf16=False),
        Target("sm_80", 163),
        Target("sm_86", 99),
        Target("sm_89", 99, fp8=True),
        Target("sm_90", 227, fp8=True),
        Target("sm_100", 227, fp8=True),
        Target("sm_120", 99, fp8=True),
        Target("gfx1100", 64),
        Target("gfx942", 64, warp=64),
    )
}
INTERPRETER = Target("interpreter", 1024, fp8=True)  # Triton's own, over tensors of the processor
EVERYWHERE = tuple(TARGETS)
MATRIX = tuple(name for name, target in TARGETS.items() if target.matrix)
FP8 = tuple(name for name, target in TARGETS.items() if target.fp8)
NVIDIA = tuple(name for name in TARGETS if name.startswith("sm_"))


@dataclass(frozen=True, slots=True)
class Shipped:
    """A kernel in one configuration. `signature` gives each argument that is no constexpr its Triton type
    ("*bf16", "i32", "fp32"), without spaces; pointers are on 16-byte borders.
    """

    name: str  # "decode bf16": with the target's, a key of the stored instruction counts
    kernel: Any  # a function under @triton.jit
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    targets: tuple[str, ...] = EVERYWHERE
    aligned: tuple[str, ...] = ()  # integers that are always multiples of 16
    warps: int = 4
    stages: int = 1
    matrix: str = ""  # of what type matrix instructions must be there: "half", "int8", "fp8"; "": none must
    wide_loads: bool = True  # loads of 16 bytes must be there
    loop_units: int = 0  # weights, or bytes of keys and values, in one turn of the main loop; 0: not counted
    spills: Mapping[str, int] = field(default_factory=dict)  # target -> registers that may be spilled there


def target_of(device: torch.device) -> Target | None:
    """The target whose code runs on a device; None if there is none."""
    if device.type == "cpu":
        return INTERPRETER
    if device.type != "cuda":
        return None
    if torch.version.hip:
        architecture = torch.cuda.get_device_properties(device).gcnArchName.partition(":")[0]
        return TARGETS.get(architecture)
    return nearest(*torch.cuda.get_device_capability(device))


def nearest(major: int, minor: int) -> Target | None:
    """The newest target that is not newer than a capability of NVIDIA's; 8.7 runs what 8.6 does."""
    older = [name for name in NVIDIA if int(name[3:]) <= 10 * major + minor]
    return TARGETS[max(older, key=lambda name: int(name[3:]))] if older else None
