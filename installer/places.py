"""Where an installed Octavo lies for this user, on each system.

    program   versions of the program side by side, the list of what was put elsewhere (manifest.py)
    word      the command `octavo`, in a folder that is mostly in PATH
    menu      the entry that a click starts
The data folder is none of these (starter.py says where it is): a program comes and goes, chats stay.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .starter import user_home


@dataclass(frozen=True, slots=True)
class Places:
    """All of them absolute."""

    program: Path
    word: Path
    menu: Path

    @property
    def manifest(self) -> Path:
        return self.program / "installed.json"

    @property
    def lock(self) -> Path:
        return self.program / "installer.lock"


def find_places(system: str = sys.platform, environ: Mapping[str, str] = os.environ) -> Places:
    """Those of this user."""
    return TABLE.get(system, _freedesktop)(environ)


def _freedesktop(environ: Mapping[str, str]) -> Places:
    home, chosen = user_home(), environ.get("XDG_DATA_HOME", "")
    data = Path(chosen) if os.path.isabs(chosen) else home / ".local" / "share"
    return Places(
        data / "octavo-program", home / ".local" / "bin" / "octavo", data / "applications" / "octavo.desktop"
    )


def _mac(environ: Mapping[str, str]) -> Places:
    home = user_home()
    return Places(
        home / "Library" / "Application Support" / "Octavo Program",
        home / ".local" / "bin" / "octavo",
        home / "Applications" / "Octavo.app",
    )


def _windows(environ: Mapping[str, str]) -> Places:
    home = user_home()
    local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    roaming = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Places(
        local / "Programs" / "Octavo",
        local / "Microsoft" / "WindowsApps" / "octavo.cmd",  # Windows has this folder in every user's PATH
        roaming / "Microsoft" / "Windows" / "Start Menu" / "Programs" / "Octavo.lnk",
    )


TABLE = {"darwin": _mac, "win32": _windows}
