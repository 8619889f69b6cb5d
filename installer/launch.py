"""Starting the program and staying as its parent: signals go down, its exit code comes up, and the pipe at
its input ends with this process (child.py).

The program asks to be started again by ending with code 75; where nobody sits at a terminal it is started
again after a crash, too. Knows nothing of what it does otherwise.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO, Any

from .console import say

RESTART = 75
QUICK_S, MANY = 2.0, 5  # so many restarts, each so soon after its start, are a fault
CRASHES, CRASH_S = 3, 600.0  # so many crashes within that time are forgiven
TOLD = {1, 2, 15}  # SIGHUP, SIGINT, SIGTERM: it was told to end, and did before it could do so in order
TOLD_ON_WINDOWS = 0xC000013A  # Ctrl-C
FORWARDED: dict[int, int] = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM}
if sys.platform != "win32":
    FORWARDED[signal.SIGHUP] = signal.SIGTERM  # the terminal was closed: end in good order


def keep_running(
    command: list[str],
    folder: Path,
    again: Callable[[], list[str]] | None = None,
    crashes: int = 0,
    log: IO[str] | None = None,
) -> int:
    """Run the command, again whenever it ends with RESTART; its last exit code, 128 + n for signal n.

    So many `crashes` within CRASH_S are forgiven. `again` gives the command once it was up for a while,
    `log` takes what it says of errors; with a log the rest of its output goes nowhere.
    """
    streams = {"stdout": subprocess.DEVNULL, "stderr": log} if log else {}
    quick, crashed = 0, list[float]()
    while True:
        started = time.monotonic()
        code = run_once(command, folder, stdin=subprocess.PIPE, **streams)
        ended = time.monotonic()
        quick = quick + 1 if ended - started < QUICK_S else 0
        if code == RESTART and quick >= MANY:
            say(f"The program asked for a restart {MANY} times in a row, each time at once. It stays off.")
            return code
        if code != RESTART:
            crashed = [at for at in crashed if ended - at < CRASH_S]
            if not is_crash(code) or len(crashed) >= crashes:
                if is_crash(code) and not log:  # with one, a window says it
                    say(f"Octavo was ended by the system ({_reason(code)}). Its chats are kept.")
                return code
            crashed.append(ended)
        command = again() if again and not quick else command


def is_crash(code: int) -> bool:
    """Whether it neither ended by itself, with a code of its own, nor was told to end."""
    return code > 128 and not ended_in_order(code)


def _reason(code: int) -> str:
    """SIGKILL, as when the memory ran out; or the number, where it has no name."""
    try:
        return signal.Signals(code - 128).name
    except ValueError:
        return f"code {code}"


def ended_in_order(code: int) -> bool:
    """Whether it was done or was told to end."""
    return code in (0, TOLD_ON_WINDOWS) or code - 128 in TOLD


def run_once(command: list[str], folder: Path, **streams: Any) -> int:
    """Run the command in a folder until it ends. Ctrl-C and a polite kill are its to answer."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    with _forwarding() as processes:
        # A session of its own: a terminal's Ctrl-C then reaches the program once, through us.
        session = os.name != "nt"
        process = subprocess.Popen(command, cwd=folder, env=env, start_new_session=session, **streams)
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
