"""Opening the page in the person's browser, without its one-time link standing in any list of processes.

The browser is given a local file that only this user can read; the file sends it on to the page and is
deleted when it has. A window of its own, without tabs and address, comes from a browser of the Chromium
family, else from pywebview where that is installed; else the page is a tab like any other.
"""

from __future__ import annotations

import html
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..settings import Home

PAGE = '<!doctype html><title>Octavo</title><meta http-equiv="refresh" content="0;url={url}">'
SNAP = Path("/snap")
# Browsers that know --app, by their names in PATH and by their places; Edge is everywhere on Windows, so it
# comes last there. Not in a Flatpak: from in there our file can't be read.
NAMES = (
    *("google-chrome", "google-chrome-stable", "chrome", "chromium", "chromium-browser"),
    *(
        "brave-browser",
        "brave",
        "vivaldi",
        "vivaldi-stable",
        "microsoft-edge",
        "microsoft-edge-stable",
        "msedge",
    ),
)
_MAC = ("Google Chrome", "Chromium", "Brave Browser", "Vivaldi", "Microsoft Edge")
_WINDOWS = (
    r"Google\Chrome\Application\chrome.exe",
    r"Chromium\Application\chrome.exe",
    r"BraveSoftware\Brave-Browser\Application\brave.exe",
    r"Vivaldi\Application\vivaldi.exe",
    r"Microsoft\Edge\Application\msedge.exe",
)
PLACES = {
    "darwin": tuple(
        f"{root}Applications/{name}.app/Contents/MacOS/{name}" for name in _MAC for root in ("/", "~/")
    ),
    "win32": tuple(
        rf"%{root}%\{name}"
        for name in _WINDOWS
        for root in ("ProgramFiles", "ProgramFiles(x86)", "LocalAppData")
    ),
}
# With storage, or the cookie would be gone at every start.
WEBVIEW = """
import sys, webbrowser, webview
try:
    webview.create_window("Octavo", sys.argv[1], width=1200, height=860)
    webview.start(private_mode=False, storage_path=sys.argv[2])
except Exception:
    webbrowser.open(sys.argv[1])
"""


def find_window_browser(system: str = sys.platform) -> str:
    """The program of a browser that can open a window of its own; "" if there is none."""
    places = (os.path.expanduser(os.path.expandvars(place)) for place in PLACES.get(system, ()))
    found = (*map(shutil.which, NAMES), *(place for place in places if os.path.isfile(place)))
    return next(filter(None, found), "")


def window_command(address: str, storage: Path) -> list[str]:
    """The command that opens `address` in a window of its own; [] where there is none."""
    if browser := find_window_browser():
        return [browser, f"--app={address}"]
    if importlib.util.find_spec("webview"):
        return [sys.executable, "-c", WEBVIEW, address, str(storage)]
    return []


def _file(home: Home) -> Path:
    # browsers installed as snaps can't read hidden folders, and the home folder mostly lies in one
    hidden = any(part.startswith(".") for part in home.path.parts)
    return Path.home() / "octavo-enter.html" if hidden and SNAP.is_dir() else home / "enter.html"


def open_page(home: Home, url: str, window: bool = False) -> None:
    """Open `url` in the browser, or in a `window`. Returns at once, and the browser's output goes nowhere."""
    file = _file(home)
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as page:
        page.write(PAGE.format(url=html.escape(url)))
    address, nowhere = file.as_uri(), subprocess.DEVNULL
    tab = [sys.executable, "-m", "webbrowser", address]
    command = (window_command(address, home / "cache") if window else []) or tab
    # a process of its own: it may outlive this one, and text browsers end only when they are closed
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def forget_page(home: Home) -> None:
    """Delete the file of a link that was used."""
    _file(home).unlink(missing_ok=True)
