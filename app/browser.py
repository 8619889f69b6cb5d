"""Opening the page in the person's browser, without its one-time link standing in any list of processes.

The browser is given a local file that only this user can read; the file sends it on to the page and is
deleted when it has.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path

from .settings import Home

PAGE = '<!doctype html><title>Octavo</title><meta http-equiv="refresh" content="0;url={url}">'
SNAP = Path("/snap")


def _file(home: Home) -> Path:
    # browsers installed as snaps can't read hidden folders, and the home folder mostly lies in one
    hidden = any(part.startswith(".") for part in home.path.parts)
    return Path.home() / "octavo-enter.html" if hidden and SNAP.is_dir() else home / "enter.html"


def open_page(home: Home, url: str) -> None:
    """Open `url` in the browser. Returns at once, and the browser's own output goes nowhere."""
    file = _file(home)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as page:
        page.write(PAGE.format(url=html.escape(url)))
    # a process of its own: it may outlive this one, and text browsers end only when they are closed
    command, nowhere = [sys.executable, "-m", "webbrowser", file.as_uri()], subprocess.DEVNULL
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def forget_page(home: Home) -> None:
    """Delete the file of a link that was used."""
    _file(home).unlink(missing_ok=True)
