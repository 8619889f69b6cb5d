"""The files that start Octavo, for each system, from paths as nasty as they come; what can be run, is."""

from __future__ import annotations

import configparser
import os
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installer import menu
from installer.errors import SetupError
from installer.menu import OCTAVO, WINDOW, Entry, entries, place
from installer.places import Places
from installer.program import ICON
from tests.source_tree import ROOT

NASTY = "Ünï 中文 'q' \"d\" $HOME `x` 100% \\ a;b&c " + "x" * 200
STUB = '#!/bin/sh\nprintf \'%s\\n\' "$0" "$@"\n'


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """A version with its icon, and a Python that says how it was started."""
    folder = tmp_path / NASTY / "octavo-program" / "0.1.0-3f2a91c4"
    (folder / ICON).parent.mkdir(parents=True)
    shutil.copy(ROOT / ICON, folder / ICON)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").write_text(STUB)
    (folder / ".venv" / "bin" / "python").chmod(0o700)
    return folder


def found(version: Path, system: str, menu_name: str, word: str = "octavo") -> dict[str, Entry]:
    """By their names."""
    places = Places(version.parent, version.parents[1] / word, version.parents[1] / menu_name)
    return {entry.path.name: entry for entry in entries(places, version, system)}


def unquoted(text: str) -> list[str]:
    """A command as the Desktop Entry Specification reads it: text escapes, then quotes, then field codes."""
    plain = re.sub(r"\\(.)", lambda match: {"s": " ", "n": "\n", "t": "\t"}.get(match[1], match[1]), text)
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', plain)
    assert re.sub(r'"(?:[^"\\]|\\.)*"', "", plain).strip() == ""
    return [re.sub(r"\\(.)", r"\1", word).replace("%%", "%") for word in words]


def test_a_desktop_entry(version: Path) -> None:
    desktop = configparser.RawConfigParser(strict=True, delimiters="=")
    desktop.optionxform = str  # type: ignore[assignment,method-assign]
    desktop.read_string(found(version, "linux", "octavo.desktop")["octavo.desktop"].content.decode())
    python, entry = str(version / ".venv" / "bin" / "python"), desktop["Desktop Entry"]
    assert unquoted(entry["Exec"]) == [python, *WINDOW]
    assert unquoted(desktop["Desktop Action quit"]["Exec"]) == [python, *OCTAVO, "quit"]
    assert re.sub(r"\\(.)", r"\1", entry["Icon"]) == str(version / ICON)
    assert (entry["Type"], entry["Name"], entry["Terminal"]) == ("Application", "Octavo", "false")


@pytest.mark.skipif(os.name == "nt", reason="a shell's command")
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_the_word_passes_everything_on(version: Path, system: str) -> None:
    word = entries(Places(version.parent, version / "bin" / "octavo", version / "menu"), version, system)[0]
    place(word)
    given = ["chat", "two words", "$HOME", "", "--", "*"]
    done = subprocess.run([word.path, *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(version / ".venv" / "bin" / "python"), *OCTAVO, *given]


def test_a_bundle(version: Path) -> None:
    made = entries(
        Places(version.parent, version.parent / "octavo", version.parent / "Octavo.app"), version, "darwin"
    )
    for entry in made:
        place(entry)
    inside = version.parent / "Octavo.app" / "Contents"
    about = plistlib.loads((inside / "Info.plist").read_bytes())
    start = inside / "MacOS" / about["CFBundleExecutable"]
    assert (inside / "Resources" / about["CFBundleIconFile"]).read_bytes().startswith(b"icns")
    assert about["LSUIElement"] is True and about["CFBundlePackageType"] == "APPL"
    assert made[-1].path == start  # it is not whole before this one is there
    text = start.read_text(encoding="utf-8")
    asks = text.replace(">/dev/null 2>&1 &", "").replace("nohup ", "")  # its output, where it can be seen
    done = subprocess.run(["sh", "-c", asks], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(version / ".venv" / "bin" / "python"), *WINDOW]
    assert start.stat().st_mode & 0o111 and "nohup " in text and text.endswith("&\n")


def test_a_shortcut(version: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALAPPDATA", str(version.parents[1]))
    made = found(version, "win32", "Octavo.lnk", "octavo.cmd")
    *shell, script = made["Octavo.lnk"].command
    assert shell == ["powershell", "-NoProfile", "-Command"]
    texts = [text.replace("''", "'") for text in re.findall(r"(?:\(|= )'((?:[^']|'')*)'", script)]
    assert texts == [
        str(made["Octavo.lnk"].path),
        str(version / ".venv" / "Scripts" / "pythonw.exe"),
        " ".join(WINDOW),
        str(made["octavo.ico"].path),
        menu.ABOUT,
    ]
    word = made["octavo.cmd"].content
    assert word.isascii() and word.startswith(b'@"%LOCALAPPDATA%') and word.endswith(b"%*\r\n")
    assert b"\\.venv\\Scripts\\python.exe".replace(b"\\", os.sep.encode()) in word


def test_the_longest_variable_is_not_needed(version: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in menu.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    word = found(version, "win32", "Octavo.lnk", "octavo.cmd")["octavo.cmd"].content
    assert "100%%" in word.decode()


def test_what_the_system_makes(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write = f"open({str(path)!r}, 'w').close()"
    place(Entry(path, command=(sys.executable, "-c", write)))
    assert path.is_file()
    with pytest.raises(SetupError, match="file could not be made: it is forbidden"):
        place(Entry(path, command=(sys.executable, "-c", "raise SystemExit('it is forbidden')")))
