"""What is put among the person's things, so that a click or a word starts Octavo: the files for each system.

Each names the version it starts by its whole path and is replaced as a whole, so whatever stops an upgrade,
it starts either the old version or the new one. Pure, but for `place`.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import SetupError
from .icon import icns, ico
from .places import Places
from .program import ICON, put

# Alone (-E, -P): neither the environment nor the folder one is in says what is imported.
OCTAVO, WINDOW = ("-EPm", "installer.octavo"), ("-EPm", "installer.window")
VARIABLES = ("LOCALAPPDATA", "APPDATA", "USERPROFILE")
SHORTCUT = (
    "$link = (New-Object -ComObject WScript.Shell).CreateShortcut({path}); $link.TargetPath = {target}; "
    "$link.Arguments = {arguments}; $link.IconLocation = {icon}; $link.Description = {about}; $link.Save()"
)
ABOUT, ABOUT_CHINESE = "Chat with language models on this machine", "在本机与语言模型聊天"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to be. Its content is made by `command` where only the system knows how."""

    path: Path
    content: bytes = b""
    executable: bool = False
    command: tuple[str, ...] = ()


def entries(places: Places, version: Path, system: str = sys.platform) -> tuple[Entry, ...]:
    """The files that start the program in the folder `version`."""
    return TABLE.get(system, _freedesktop)(places, version)


def place(entry: Entry) -> None:
    """Put it where it belongs, whole or not at all."""
    if not entry.command:
        put(entry.path, entry.content, entry.executable)
        return
    entry.path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(entry.command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise SetupError(f"{entry.path} could not be made: {done.stderr.strip()}")


def _freedesktop(places: Places, version: Path) -> tuple[Entry, ...]:
    python = version / ".venv" / "bin" / "python"
    text = f"""[Desktop Entry]
Type=Application
Version=1.0
Name=Octavo
GenericName=Chat
GenericName[zh_CN]=聊天
Comment={ABOUT}
Comment[zh_CN]={ABOUT_CHINESE}
Exec={_exec(python, *WINDOW)}
Icon={_escaped(str(version / ICON))}
Terminal=false
Categories=Utility;
Keywords=chat;AI;LLM;聊天;
Actions=quit;

[Desktop Action quit]
Name=Quit
Name[zh_CN]=退出
Exec={_exec(python, *OCTAVO, "quit")}
"""
    return _word(places, python), Entry(places.menu, os.fsencode(text))


def _exec(*words: Path | str) -> str:
    r"""A command as the Desktop Entry Specification quotes it: "..." with \ before " ` $ \, and %% for %;
    then once more, as every text in such a file: \\ for \."""
    quoted = ('"' + re.sub(r'(["`$\\])', r"\\\1", str(word)) + '"' for word in words)
    return _escaped(" ".join(quoted).replace("%", "%%"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")


def _word(places: Places, python: Path) -> Entry:
    """The command `octavo` where there is a shell."""
    text = f'#!/bin/sh\nexec {shlex.quote(str(python))} {" ".join(OCTAVO)} "$@"\n'
    return Entry(places.word, os.fsencode(text), executable=True)


def _mac(places: Places, version: Path) -> tuple[Entry, ...]:
    """A bundle. Its program ends at once, so that each click runs it anew, and shows nothing in the Dock."""
    python, bundle = version / ".venv" / "bin" / "python", places.menu / "Contents"
    start = f"#!/bin/sh\nnohup {shlex.quote(str(python))} {' '.join(WINDOW)} >/dev/null 2>&1 &\n"
    about = {
        "CFBundleName": "Octavo",
        "CFBundleIdentifier": "local.octavo",
        "CFBundleExecutable": "octavo",
        "CFBundleIconFile": "octavo.icns",
        "CFBundlePackageType": "APPL",
        "CFBundleVersion": version.name,
        "LSUIElement": True,
    }
    return (
        _word(places, python),
        Entry(bundle / "Info.plist", plistlib.dumps(about)),
        Entry(bundle / "Resources" / "octavo.icns", icns((version / ICON).read_bytes())),
        Entry(bundle / "MacOS" / "octavo", os.fsencode(start), executable=True),
    )


def _windows(places: Places, version: Path, environ: Mapping[str, str] = os.environ) -> tuple[Entry, ...]:
    scripts, icon = version / ".venv" / "Scripts", places.program / "octavo.ico"
    word = f'@"{_batch(scripts / "python.exe", environ)}" {" ".join(OCTAVO)} %*\r\n'
    says = {
        "path": str(places.menu),
        "target": str(scripts / "pythonw.exe"),
        "arguments": " ".join(WINDOW),
        "icon": str(icon),
        "about": ABOUT,
    }
    script = SHORTCUT.format(**{name: "'" + text.replace("'", "''") + "'" for name, text in says.items()})
    return (
        Entry(icon, ico((version / ICON).read_bytes())),
        Entry(places.word, word.encode()),
        Entry(places.menu, command=("powershell", "-NoProfile", "-Command", script)),
    )


def _batch(path: Path, environ: Mapping[str, str]) -> str:
    """A path in a batch file, which is read in an old encoding: with a variable for the person's folder it is
    plain ASCII."""
    for name in VARIABLES:
        if (folder := environ.get(name)) and path.is_relative_to(folder):
            return f"%{name}%{os.sep}{path.relative_to(folder)}"
    return str(path).replace("%", "%%")


TABLE = {"darwin": _mac, "win32": _windows}
