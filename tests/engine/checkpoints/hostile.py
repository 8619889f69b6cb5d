"""Opens checkpoints that mean harm, in a process of its own: `python -m tests...hostile FOLDER`.

Memory is limited to 64 MB more than the program has before, an alarm ends a case that hangs, an audit hook
notes all that a model file must never bring about: code, processes, sockets, files outside its folder. For
each folder in FOLDER, which holds one checkpoint each, one line of JSON comes out. Linux only.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import engine.llm  # all that loading imports
import engine.models.fallback_check
from engine import BadCheckpoint, UnsupportedModel
from engine.checkpoints import open_checkpoint
from engine.fitting.model_facts import fingerprint
from engine.formats import check_quantization
from engine.models import read_config
from engine.preparing import check_vocabulary
from engine.text.tokenizer import Tokenizer

LIMIT, HANG_S = 64 << 20, 20
_FORBIDDEN = """exec compile import os.system os.exec os.fork os.posix_spawn os.spawn
    subprocess.Popen pty.spawn ctypes.dlopen marshal.loads pickle.find_class code.__new__ urllib.Request
    shutil.rmtree os.remove os.rename"""
FORBIDDEN = frozenset(_FORBIDDEN.split())
watched: list[Path] = []  # the folder of the case that runs
found: list[str] = []


def hook(event: str, args: tuple[Any, ...]) -> None:
    if not watched:
        return
    if event in FORBIDDEN or event.startswith("socket."):
        found.append(f"{event} {args!r:.100}")
    if event == "open" and not str(args[0]).startswith(str(watched[0])):
        found.append(f"open {args[0]!r:.100}")
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        found.append(f"open {args[0]!r:.100} to write")


def read(path: Path) -> str:
    """All that is done with a checkpoint before its weights are read; what it said, "" if it is sound."""
    try:
        with open_checkpoint(path) as checkpoint:
            check_quantization(checkpoint.metadata)
            config = read_config(checkpoint)
            check_vocabulary(checkpoint, Tokenizer.of(checkpoint), config)
            fingerprint(checkpoint)
    except (BadCheckpoint, UnsupportedModel) as error:
        return str(error)
    except BaseException as error:
        found.append(f"{type(error).__name__}: {error!s:.200}")
    return ""


def mapped() -> int:
    """How much address space this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def not_installed() -> Any:
    """In place of transformers, an extra, whose import runs programs; test_fallback.py watches that half."""
    raise ImportError("transformers")


def main() -> None:
    assert engine.llm
    engine.models.fallback_check.import_transformers = not_installed  # type: ignore[attr-defined]
    cases = sorted(Path(sys.argv[1]).iterdir(), key=lambda path: int(path.name))
    for case in cases[:2]:
        read(case / "m")  # imports and caches
    sys.addaudithook(hook)
    resource.setrlimit(resource.RLIMIT_AS, (mapped() + LIMIT,) * 2)
    for case in cases:
        found.clear()
        # one file alone is opened as such
        path = next(iter(case.glob("m.*")), case / "m")
        files = len(os.listdir("/proc/self/fd"))
        watched.append(case)
        signal.alarm(HANG_S)
        began = time.perf_counter()
        said = read(path)
        seconds = time.perf_counter() - began
        signal.alarm(0)
        watched.clear()
        if len(os.listdir("/proc/self/fd")) != files:
            found.append("a file stayed open")
        line = {"case": case.name, "said": said, "found": found, "seconds": seconds}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
