"""Loads checkpoints that mean harm, in a process of its own: `python -m tests...hostile SOUND CASES`.

The system lets it have 64 MB more than it has before, and a second of its processors for each case; an audit
hook notes all that a model file must never bring about: code, processes, sockets, files outside its folder.
For each folder in CASES, which holds one checkpoint each, one line of JSON comes out; SOUND holds sound ones,
by which all that is needed was imported and made before. Linux only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import engine.llm  # all that loading imports
import engine.models.fallback_check
import engine.preparing
import kernels
from engine import BadCheckpoint, EngineConfig, ModelTooLarge, UnsupportedModel
from engine.fitting.abilities import DeviceFacts
from engine.models import load_decoder
from engine.preparing import prepare

LIMIT, CPU_S, HANG_S = 64 << 20, 1.0, 60
MACHINE = DeviceFacts("a machine", "cpu", 8 << 30, 6 << 30, 2, True, "It is that.")
_FORBIDDEN = """exec compile import os.system os.exec os.fork os.posix_spawn os.spawn
    subprocess.Popen pty.spawn ctypes.dlopen marshal.loads pickle.find_class code.__new__ urllib.Request
    shutil.rmtree os.remove os.rename"""
MACHINE_S = "/sys/devices/system/cpu/", "/sys/fs/cgroup/", "/proc/"  # how many cores there are
FORBIDDEN = frozenset(_FORBIDDEN.split())
watched: list[Path] = []  # the folder of the case that runs
found: list[str] = []


def hook(event: str, args: tuple[Any, ...]) -> None:
    if not watched:
        return
    own = event == "ctypes.dlopen" and args[0] is None  # the program itself, which gives memory back
    if (event in FORBIDDEN and not own) or event.startswith("socket."):
        found.append(f"{event} {args!r:.100}")
    if event == "open" and not str(args[0]).startswith((str(watched[0]), *MACHINE_S)):
        found.append(f"open {args[0]!r:.100}")
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        found.append(f"open {args[0]!r:.100} to write")


def read(path: Path) -> str:
    """All that is done with a checkpoint until its weights are in memory; what it said, "" if it is sound."""
    try:
        with prepare(path, EngineConfig(backend="reference")) as ready:
            load_decoder(ready.checkpoint, ready.config, ready.ops, 64, lambda part: None)
            ready.ops.close()
    except (BadCheckpoint, UnsupportedModel, ModelTooLarge) as error:
        return str(error)
    except BaseException as error:
        found.append(f"{type(error).__name__}: {error!s:.200}")
    return ""


def written() -> int:
    """How much memory this process may write to."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))


def left(case: Path) -> set[str]:
    """What of a case is still there: mapped, open, running."""
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(case) in line]
    return {*maps, *os.listdir("/proc/self/fd"), *(thread.name for thread in threading.enumerate())}


def not_installed() -> Any:
    """In place of transformers, an extra, whose import runs programs; test_fallback.py watches that half."""
    raise ImportError("transformers")


def main() -> None:
    assert engine.llm
    engine.models.fallback_check.import_transformers = not_installed  # type: ignore[attr-defined]
    ops = kernels.select("cpu", "reference")
    engine.preparing.place = lambda *given: (MACHINE, ops)  # type: ignore[attr-defined]
    threading.stack_size(1 << 20)
    sound, root = map(Path, sys.argv[1:])
    assert not any(read(path) for path in sorted(sound.iterdir())) and not found, found
    cases = sorted(root.iterdir(), key=lambda path: int(path.name))
    for case in cases[:2]:
        read(case / "m")
    sys.addaudithook(hook)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_DATA, (written() + LIMIT,) * 2)
    for case in cases:
        found.clear()
        # one file alone is opened as such
        path = next(iter(case.glob("m.*")), case / "m")
        before = left(case)
        watched.append(case)
        signal.alarm(HANG_S)
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        began = time.process_time()
        said = read(path)
        seconds = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        watched.clear()
        if more := left(case) - before:
            found.append(f"left behind: {more}")
        line = {"case": case.name, "said": said, "found": found, "seconds": seconds}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
