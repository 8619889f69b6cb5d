"""Finding a browser, and the command for each system that has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer import browser


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only programs are in this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(browser, "PLACES", {})
    return tmp_path


def test_one_on_the_path_is_found(empty: Path) -> None:
    assert browser.find_browser() is None
    program = empty / "google-chrome"
    program.touch(0o700)
    assert browser.find_browser() == program


def test_one_in_the_system_s_place_is_found(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty / "msedge.exe").touch()
    monkeypatch.setenv("SOMEWHERE", str(empty))
    monkeypatch.setattr(browser, "PLACES", {"win32": ("$SOMEWHERE/chrome.exe", "$SOMEWHERE/msedge.exe")})
    assert browser.find_browser("win32") == empty / "msedge.exe"


@pytest.mark.parametrize(
    ("system", "release", "key"),
    [
        ("linux", 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n', "debian"),
        ("linux", 'ID=ubuntu\nID_LIKE="debian"\n', "ubuntu"),
        ("linux", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n', "ubuntu"),
        ("linux", 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', "opensuse"),
        ("linux", "ID=gentoo\n", ""),
        ("darwin", "", "darwin"),
        ("win32", "", "win32"),
    ],
)
def test_distribution(tmp_path: Path, system: str, release: str, key: str) -> None:
    file = tmp_path / "os-release"
    file.write_text(release)
    assert browser.distribution(system, file) == key


def test_elsewhere_the_command_is_printed(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser, "distribution", lambda: "fedora")
    browser.ensure_browser()
    assert "the browser tests will fail. To get one: sudo dnf install chromium" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(browser.os, "geteuid"), reason="there is no root on Windows")
@pytest.mark.parametrize("works", [True, False])
def test_on_debian_root_installs_it(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], works: bool
) -> None:
    """A fake apt-get that needs its lists renewed before it knows the package, or never knows it."""
    script = f"""#!/bin/sh
echo "$*" >> {empty}/calls
[ "$1" = update ] && echo > {empty}/lists && exit 0
[ -e {empty}/lists ] && {"true" if works else "false"} || exit 1
echo > {empty}/chromium && /bin/chmod 700 {empty}/chromium
"""
    (empty / "apt-get").write_text(script)
    (empty / "apt-get").chmod(0o700)
    monkeypatch.setattr(browser, "distribution", lambda: "debian")
    monkeypatch.setattr(browser.os, "geteuid", lambda: 0)
    browser.ensure_browser()
    calls = (empty / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["install", "update", "install"]
    assert ("the browser tests will fail" in capsys.readouterr().out) is not works
