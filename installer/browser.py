"""The browser for the tests: Chromium, Chrome or Edge, found or, on Debian as root, installed.

Elsewhere the command to type is printed, and the tests that need a browser fail until there is one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .console import Step, say

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
)
PLACES = {
    "darwin": (
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"%ProgramFiles%\Google\Chrome\Application\chrome.exe",
        r"%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe",
        r"%LocalAppData%\Google\Chrome\Application\chrome.exe",
        r"%ProgramFiles(x86)%\Microsoft\Edge\Application\msedge.exe",
        r"%ProgramFiles%\Microsoft\Edge\Application\msedge.exe",
    ),
}
# The distribution's ID in /etc/os-release, or the system -> how a person gets a browser.
COMMANDS = {
    "debian": "sudo apt install chromium",
    "ubuntu": "sudo snap install chromium",
    "fedora": "sudo dnf install chromium",
    "arch": "sudo pacman -S chromium",
    "opensuse": "sudo zypper install chromium",
    "alpine": "sudo apk add chromium",
    "darwin": "brew install --cask chromium",
    "win32": "winget install Google.Chrome",
}
OS_RELEASE = Path("/etc/os-release")


def find_browser(system: str = sys.platform) -> Path | None:
    """The first browser of the Chromium family on this machine."""
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    for place in PLACES.get(system, ()):
        if (path := Path(os.path.expandvars(place))).is_file():
            return path
    return None


def distribution(system: str = sys.platform, release: Path = OS_RELEASE) -> str:
    """The key of COMMANDS that fits, "" if none does."""
    if system in COMMANDS:
        return system
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    fields = {key: value.strip("\"'") for key, value in re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE)}
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((key for name in names for key in COMMANDS if name.startswith(key)), "")


def ensure_browser() -> None:
    """Find a browser, or get one where that takes no question; else say how and go on."""
    if find_browser():
        return
    here = distribution()
    root = sys.platform != "win32" and os.geteuid() == 0
    if here == "debian" and root and shutil.which("apt-get"):
        with Step("Chromium, for the browser tests") as step:
            step.done("" if _apt_install("chromium") else "apt-get could not install it")
    if not find_browser():
        hint = COMMANDS.get(here, "install Chromium, Chrome or Edge with your system's package manager")
        say(f"  No Chromium, Chrome or Edge was found: the browser tests will fail. To get one: {hint}")


def _apt_install(package: str) -> bool:
    """apt-get's own lists are renewed only if they must be."""
    install = ["apt-get", "install", "--yes", "--no-install-recommends", package]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (install, ["apt-get", "update"], install):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True)
        if command is install and done.returncode == 0:
            return True
    say(done.stdout[-500:] + done.stderr[-500:])
    return False
