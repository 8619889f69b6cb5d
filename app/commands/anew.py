"""This program once more, in a new process: what a device that failed leaves behind ends with the old one.

A program that the installer started has a parent that does this (installer/launch.py); what was started as
`octavo` has none.
"""

from __future__ import annotations

import os
import subprocess
import sys


def start_anew(*more: str) -> int:
    """Never comes back, but on Windows, where no program takes another's place: there with its exit code.
    `more` is added to the words that this process was started with, of which the last counts.
    """
    command = [sys.executable, *sys.orig_argv[1:], *more]
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform == "win32":
        return subprocess.run(command).returncode
    os.execv(sys.executable, command)
