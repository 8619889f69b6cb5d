"""Compile all that kernels/triton ships, for every target, without card or driver; say what is wrong.

    python -m tests.kernels.triton.aot [--quick] [--only TEXT] [--target NAME] [--jobs N] [--write]

Read from the machine code: registers spilled, shared memory, matrix instructions, loads of 16 bytes, and the
instructions that the main loop takes for a weight or a byte of keys and values, held against baseline.json
(--write makes it anew). Does not know what the kernels compute.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernels.triton
from kernels.triton.targets import TARGETS, Shipped, Target

Job = tuple[str, str]  # what is shipped, by name; a target
PACKAGE = kernels.triton.__path__
BASELINE = Path(__file__).with_name("baseline.json")
GROWTH = 1.10  # how many more instructions are let pass
QUICK = "sm_86"  # the target of a quick run
BINARIES = Path(triton.__file__).parent / "backends/nvidia/bin"
# How the instructions begin that multiply on matrix units.
MATRIX = {
    "half": ("HMMA", "HGMMA", "UTCHMMA", "v_wmma_f32", "v_mfma_f32"),
    "int8": ("IMMA", "IGMMA", "UTCIMMA", "v_wmma_i32", "v_mfma_i32"),
    "fp8": ("QMMA", "QGMMA", "UTCQMMA", "v_wmma_f32", "v_mfma_f32"),
}
WIDE = re.compile(r"LDG\S*\.128|LDGSTS\S*\.128|UTMALDG|(global|buffer)_load_(b128|dwordx4)")
NVIDIA_LINE = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z0-9_.]+)")
NVIDIA_LABEL, NVIDIA_JUMP = re.compile(r"^(\.L_x_\d+):"), re.compile(r"BRA.*`\((\.L_x_\d+)\)")
AMD_LINE = re.compile(r"^\s+([a-z]+_[a-z0-9_]+)")
AMD_LABEL, AMD_JUMP = re.compile(r"^(\.LBB\d+_\d+):"), re.compile(r"s_c?branch\S*\s+(\.LBB\d+_\d+)")


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel as machine code."""

    lines: tuple[str, ...]
    registers: int
    spills: int
    shared: int  # bytes
    amd: bool

    @property
    def instructions(self) -> list[str]:
        line = AMD_LINE if self.amd else NVIDIA_LINE
        return [match[1] for match in map(line.match, self.lines) if match]

    def longest_loop(self) -> int:
        """Instructions in the longest of the innermost loops."""
        label, jump, line = (
            (AMD_LABEL, AMD_JUMP, AMD_LINE) if self.amd else (NVIDIA_LABEL, NVIDIA_JUMP, NVIDIA_LINE)
        )
        places: dict[str, int] = {}
        bodies: list[tuple[int, int]] = []
        for at, text in enumerate(self.lines):
            if match := label.match(text.strip()):
                places[match[1]] = at
            if (match := jump.search(text)) and match[1] in places:
                bodies.append((places[match[1]], at))
        inner = [
            (start, end)
            for start, end in bodies
            if not any((s, e) != (start, end) and start <= s and e <= end for s, e in bodies)
        ]
        counts = [sum(bool(line.match(text)) for text in self.lines[start : end + 1]) for start, end in inner]
        return max(counts, default=0)


@cache
def shipped() -> dict[str, Shipped]:
    """All that modules ship, by name."""
    modules = (import_module(f"kernels.triton.{each.name}") for each in pkgutil.iter_modules(PACKAGE))
    listed = [each for module in modules for each in getattr(module, "SHIPPED", ())]
    twice = [name for name, times in Counter(each.name for each in listed).items() if times > 1]
    assert not twice, f"several that are shipped have one name: {twice}"
    return {each.name: each for each in listed}


def compiled(kernel: Shipped, target: Target) -> Code:
    names = kernel.kernel.arg_names
    missing = set(names) ^ {*kernel.signature, *kernel.constexprs}
    assert not missing, f"{kernel.name}: {missing} stand in the kernel or in the table, not in both"
    source = ASTSource(
        fn=kernel.kernel,
        signature={name: kernel.signature.get(name, "constexpr") for name in names},
        constexprs={(names.index(name),): value for name, value in kernel.constexprs.items()},
        attrs={
            (names.index(name),): [["tt.divisibility", 16]]
            for name, kind in kernel.signature.items()
            if kind.startswith("*") or name in kernel.aligned
        },
    )
    amd = target.name.startswith("gfx")
    gpu = GPUTarget("hip", target.name, target.warp) if amd else GPUTarget("cuda", int(target.name[3:]), 32)
    options = {"num_warps": kernel.warps, "num_stages": kernel.stages, "enable_fp_fusion": True}
    with contextlib.redirect_stdout(io.StringIO()):  # what the assembler refuses is printed whole
        made = triton.compile(source, target=gpu, options=options)
    return _amd(made) if amd else _nvidia(made)


def _amd(made: Any) -> Code:
    text = made.asm["amdgcn"]
    facts = {name: int(n) for name, n in re.findall(r"\.(vgpr_count|vgpr_spill_count):\s+(\d+)", text)}
    lines = tuple(text.splitlines())
    return Code(lines, facts["vgpr_count"], facts["vgpr_spill_count"], made.metadata.shared, True)


def _nvidia(made: Any) -> Code:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        facts, text = (
            subprocess.run(
                [BINARIES / tool, option, file.name], capture_output=True, text=True, check=True
            ).stdout
            for tool, option in (("cuobjdump", "-res-usage"), ("nvdisasm", "-c"))
        )
    lines = tuple(text.splitlines())
    spills = sum(match[1].startswith(("LDL", "STL")) for match in map(NVIDIA_LINE.match, lines) if match)
    registers = int(re.findall(r"REG:(\d+)", facts)[0])
    return Code(lines, registers, spills, made.metadata.shared, False)


def inspect(job: Job, baseline: dict[str, float] | None) -> tuple[str, float, str, list[str]]:
    """A kernel on a target: its key, instructions a unit, a line about it, what is wrong with it."""
    kernel, target = shipped()[job[0]], TARGETS[job[1]]
    key = f"{kernel.name} {target.name}"
    try:
        code = compiled(kernel, target)
    except Exception as error:
        said = [line for line in str(error).splitlines() if line.strip()] or [""]
        return key, 0.0, f"{key}: {type(error).__name__}", [f"does not compile: {said[-1][:200]}"]
    faults, instructions = [], code.instructions
    if code.spills > kernel.spills.get(target.name, 0):
        faults.append(f"{code.spills} spills")
    if code.shared > target.shared_kib * 1024:
        faults.append(f"{code.shared:,} bytes of shared memory; there are {target.shared_kib} KiB")
    if kernel.matrix and not any(name.startswith(MATRIX[kernel.matrix]) for name in instructions):
        faults.append(f"no matrix instruction for {kernel.matrix}")
    if kernel.wide_loads and not any(map(WIDE.match, instructions)):
        faults.append("no load of 16 bytes")
    per_unit = 0.0
    if kernel.loop_units:
        per_unit = round(code.longest_loop() * kernel.warps * target.warp / kernel.loop_units, 3)
        if not per_unit:
            faults.append("no loop found")
        elif baseline is not None and key not in baseline:
            faults.append("not in baseline.json")
        elif baseline is not None and per_unit > baseline[key] * GROWTH:
            faults.append(f"{per_unit} instructions a unit; they were {baseline[key]}")
    line = f"{key:44} registers {code.registers:3}  shared {code.shared / 1024:5.1f} KiB"
    line += f"  {len(instructions):5} instructions" + (f"  {per_unit:.2f} a unit" if per_unit else "")
    return key, per_unit, line, faults


def quick(listed: list[Shipped]) -> Iterator[Job]:
    """Of each kernel its first configuration, on one target: one whose assembler is quick."""
    seen = set()
    for each in sorted(listed, key=lambda each: QUICK not in each.targets):
        if each.kernel not in seen:
            seen.add(each.kernel)
            yield each.name, QUICK if QUICK in each.targets else each.targets[0]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.triton.aot")
    parser.add_argument("--quick", action="store_true", help="one configuration of each kernel, one target")
    parser.add_argument("--only", default="", help="kernels whose name has this in it")
    parser.add_argument("--target", default="", help="this one only")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--write", action="store_true", help="put what is counted into baseline.json")
    return parser.parse_args()


def main() -> int:
    asked = options()
    assert "TRITON_INTERPRET" not in os.environ, "unset TRITON_INTERPRET: the interpreter compiles nothing"
    stored = json.loads(BASELINE.read_text())
    same = stored["triton"] == triton.__version__
    baseline = stored["instructions"] if same and not asked.write else None
    listed = [each for each in shipped().values() if asked.only in each.name]
    jobs = (
        list(quick(listed))
        if asked.quick
        else [(each.name, name) for each in listed for name in each.targets]
    )
    jobs = [job for job in jobs if asked.target in ("", job[1])]
    wrong, counts = 0, {}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for key, per_unit, line, faults in pool.map(partial(inspect, baseline=baseline), jobs):
            if per_unit:
                counts[key] = per_unit
            wrong += bool(faults)
            print(line, *(f"\n    FAULT {fault}" for fault in faults), flush=True)
    print(f"{len(jobs)} compiled with Triton {triton.__version__}, {wrong} with faults")
    if asked.write:
        stored = json.loads(BASELINE.read_text())  # another run may have written meanwhile
        known = stored["instructions"] if stored["triton"] == triton.__version__ else {}
        kept = {"triton": triton.__version__, "instructions": dict(sorted({**known, **counts}.items()))}
        BASELINE.write_text(json.dumps(kept, indent=1) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
