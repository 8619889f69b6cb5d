"""Starting the program and staying as its parent: signals go down, its exit code comes up, and the pipe at
its input ends with this process (child.py).

The program asks to be started again by ending with code 75. Knows nothing of what it does otherwise.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from .console import say

RESTART = 75
QUICK_S, MANY = 2.0, 5  # so many restarts, each so soon after its start, are a fault
FORWARDED: dict[int, int] = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM}
if sys.platform != "win32":
    FORWARDED[signal.SIGHUP] = signal.SIGTERM  # the terminal was closed: end in good order


def keep_running(command: list[str], folder: Path) -> int:
    """Run the command, again whenever it ends with RESTART; its last exit code, 128 + n for signal n."""
    quick = 0
    while True:
        started = time.monotonic()
        code = run_once(command, folder, stdin=subprocess.PIPE)
        quick = quick + 1 if time.monotonic() - started < QUICK_S else 0
        if code != RESTART:
            return code
        if quick >= MANY:
            say(f"The program asked for a restart {MANY} times in a row, each time at once. It stays off.")
            return code


def run_once(command: list[str], folder: Path, stdin: int | None = None) -> int:
    """Run the command in a folder until it ends. Ctrl-C and a polite kill are its to answer."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    with _forwarding() as processes:
        # A session of its own: a terminal's Ctrl-C then reaches the program once, through us.
        session = os.name != "nt"
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=stdin, start_new_session=session)
        processes.append(process)
        code = process.wait()  # its input stays open until then
    return 128 - code if code < 0 else code


@contextmanager
def _forwarding() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Signals go to the processes that are put into the list."""
    processes: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        if sys.platform == "win32" and number == signal.SIGINT:
            return  # Windows has told the program already
        for process in processes:
            process.send_signal(FORWARDED[number])

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield processes
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
