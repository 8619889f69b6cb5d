"""Ending a running Octavo, without anything of Octavo's: a note in the data folder asks it to, its lock says
whether it has. Both are app/access/instance.py's, written here a second time; tests/installer lets the two
meet.
"""

from __future__ import annotations

import time
from pathlib import Path

from .console import Step
from .errors import SetupError
from .lock import is_held

END_S, POLL_S = 30.0, 0.1


def end_running(home: Path, patience: float = END_S) -> None:
    """Wait until no Octavo works with the data folder `home`. Raises SetupError if one stays."""
    lock, wish = home / "instance.lock", home / "instance.quit"
    if not is_held(lock):
        return
    with Step("Octavo is running; it is asked to end"):
        end = time.monotonic() + patience
        while is_held(lock):
            if time.monotonic() > end:
                raise SetupError(f"Octavo did not end in {patience:.0f} s. End it by hand and start again.")
            wish.touch(0o600)
            time.sleep(POLL_S)
        wish.unlink(missing_ok=True)
