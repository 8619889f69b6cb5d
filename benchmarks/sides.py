"""A side of a comparison: a child process that loads a model and answers in the language of peers/pipe.py.

Ours, a peer and the plain read loop are all driven this way, so that none of them shares a process, its
memory or its threads with another or with what measures. Knows no measure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.fitting.cores import usable_cores

from .environments import PEERS, peer_command

ROOT = Path(__file__).resolve().parent.parent
MODULES = {"octavo": "benchmarks.ours", "read": "benchmarks.read_loop"}  # run by this Python
NAMES = (*PEERS, "read")
Figures = dict[str, float]  # what a round on a side finds


class SideFailed(Exception):
    """A side gave no answer, or said that it cannot do what was asked."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Who takes part: a name, the model that was asked for, and how the process is started."""

    name: str
    model: Path
    command: tuple[str, ...]


def contender(name: str, model: Path, threads: int | None, folder: Path) -> Contender:
    """Octavo, a peer (whose environment is made if it must be), or the read loop."""
    if name not in MODULES:
        return Contender(name, model, tuple(peer_command(name, model, threads or usable_cores(), folder)))
    command = [sys.executable, "-m", MODULES[name], "--model", str(model)]
    return Contender(name, model, (*command, *(("--threads", str(threads)) if threads else ())))


class Side:
    """A contender's running process."""

    def __init__(self, who: Contender) -> None:
        self.who, self.name = who, who.name
        self.log = tempfile.TemporaryFile()  # noqa: SIM115, for close() closes it
        self.process = subprocess.Popen(
            who.command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """One question, one answer. Raises SideFailed with the end of what the process printed."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        except (OSError, ValueError) as error:
            raise SideFailed(f"{self.name} ended at {op!r}:\n{self.last_words()}") from error
        if "error" in answer:
            raise SideFailed(f"{self.name} cannot {op}: {answer['error']}")
        return dict(answer)

    def last_words(self, size: int = 2000) -> str:
        """The end of the process's log."""
        self.log.seek(0)
        return self.log.read()[-size:].decode(errors="replace")

    def close(self) -> None:
        """End of stdin is the end of the process."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
