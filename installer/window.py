"""What a click in the menu runs: Octavo without a terminal, in a window of its own.

It stays as the program's parent (launch.py) and starts it again if it crashes; the window finds its way back
by itself, unless the person chose another port. The program's complaints go to `window.log` in the data
folder; if it stays off, a page says why (trouble.py). Where one is running, that one's page is opened.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

from .launch import CRASH_S, CRASHES, ended_in_order, is_crash, keep_running
from .manifest import mind_home
from .octavo import MANIFEST, ROOT
from .starter import octavo_home
from .trouble import show_trouble

LONGEST = 2**20  # bytes of log
OFTEN = f"It crashed {CRASHES + 1} times within {CRASH_S / 60:.0f} minutes. Its last words:"


def main() -> int:
    """The program's last exit code."""
    mind_home(MANIFEST)
    home = octavo_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path, flags = home / "window.log", os.O_RDWR | os.O_CREAT | os.O_APPEND
    with open(os.open(path, flags, 0o600), "r+", encoding="utf-8", errors="replace") as log:
        if path.stat().st_size > LONGEST:
            log.truncate(0)
        before = path.stat().st_size
        run = [sys.executable, "-X", "faulthandler", "-m", "installer.child", "run"]  # a crash leaves a trace
        ports = [_port(home)]

        def again() -> list[str]:
            ports.append(_port(home))
            return [*run, "--no-browser" if ports[-1] == ports[-2] else "--window"]

        code = keep_running([*run, "--window"], ROOT, again, CRASHES, log)
        if not ended_in_order(code):
            log.seek(before)
            show_trouble(home, OFTEN if is_crash(code) else "It could not go on:", log.read())
    return code


def _port(home: Path) -> object:
    """The one that the person chose."""
    try:
        return tomllib.loads((home / "settings.toml").read_text("utf-8-sig")).get("port")
    except (OSError, ValueError):
        return None


if __name__ == "__main__":
    sys.exit(main())
