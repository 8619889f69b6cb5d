"""Where things lie on each system, from faked facts; never in the data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer.places import Places, find_places
from installer.starter import octavo_home

HOME = Path("/home/Ünï")
MAC = Places(
    HOME / "Library/Application Support/Octavo Program",
    HOME / ".local/bin/octavo",
    HOME / "Applications/Octavo.app",
)
START = "Microsoft/Windows/Start Menu/Programs/Octavo.lnk"
TABLE = [
    (
        "linux",
        {},
        ".local/share/octavo-program",
        ".local/bin/octavo",
        ".local/share/applications/octavo.desktop",
    ),
    (
        "linux",
        {"XDG_DATA_HOME": "/d"},
        "/d/octavo-program",
        ".local/bin/octavo",
        "/d/applications/octavo.desktop",
    ),
    ("linux", {"XDG_DATA_HOME": "relative"}, ".local/share/octavo-program", ".local/bin/octavo", None),
    ("freebsd14", {}, ".local/share/octavo-program", ".local/bin/octavo", None),
    ("darwin", {}, MAC.program, MAC.word, MAC.menu),
    (
        "win32",
        {"LOCALAPPDATA": "/l", "APPDATA": "/r"},
        "/l/Programs/Octavo",
        "/l/Microsoft/WindowsApps/octavo.cmd",
        f"/r/{START}",
    ),
    ("win32", {}, "AppData/Local/Programs/Octavo", None, f"AppData/Roaming/{START}"),
]


@pytest.mark.parametrize(("system", "environ", "program", "word", "menu"), TABLE)
def test_places(
    system: str,
    environ: dict[str, str],
    program: str | Path,
    word: str | Path | None,
    menu: str | Path | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(HOME))
    found = find_places(system, environ)
    assert found.program == HOME / program
    assert word is None or found.word == HOME / word
    assert menu is None or found.menu == HOME / menu
    data = octavo_home(environ, system)
    assert data not in (found.program, *found.program.parents) and found.program not in data.parents
