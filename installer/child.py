"""The program as the installer's child: `python -m installer.child WORD` is `python -m ui WORD` that ends
when the installer does, however that ends.

Standard input is a pipe that the installer holds and never writes to: it ends with the installer, also by
kill -9, on every system. The program is then asked to end as by a polite kill.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def end_with_parent() -> None:
    """Sleep until the pipe ends, then ask this process to end."""
    while os.read(0, 1):  # not through sys.stdin, whose lock Python wants when it ends
        pass
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, name="installer", daemon=True).start()
    runpy.run_module("ui", run_name="__main__", alter_sys=True)
