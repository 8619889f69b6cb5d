"""The scripts for people without a Python: read by ShellCheck, run with a uv that notes what it was asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT

SCRIPTS = ROOT / "installer" / "bootstrap"
UV = """#!/bin/sh
pwd
printf '%s\\n' "$@" "$UV_PYTHON_INSTALL_DIR"
"""
# What the makers' script would do, as far as it is ours to know: put uv where it was told.
GET_UV = f"""cat <<'ALL'
mkdir -p "$UV_UNMANAGED_INSTALL"
cat > "$UV_UNMANAGED_INSTALL/uv" <<'END'
{UV}END
chmod +x "$UV_UNMANAGED_INSTALL/uv"
ALL
"""
posix = pytest.mark.skipif(os.name == "nt", reason="a shell's script")


def test_shellcheck_has_nothing_to_say() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("shellcheck"), "--severity=style", SCRIPTS / "octavo.sh"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_powershell_script_is_short_and_says_the_same() -> None:
    text = (SCRIPTS / "octavo.ps1").read_text(encoding="utf-8")
    other = (SCRIPTS / "octavo.sh").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    for said in ("uv run --no-project --python 3.12 -m installer install", "https://astral.sh/uv/install"):
        assert said in text and said in other


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout in a folder of its own, a home, and a PATH with the few programs that every system has."""
    shutil.copytree(SCRIPTS, tmp_path / "Ünï check out" / "installer" / "bootstrap")
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname", "uname", "cat", "mkdir", "chmod", "pwd"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def program(machine: Path, name: str, text: str) -> None:
    path = machine / "bin" / name
    path.write_text(text)
    path.chmod(0o700)


def run(machine: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    script = machine / "Ünï check out" / "installer" / "bootstrap" / "octavo.sh"
    env = {"PATH": str(machine / "bin"), "HOME": str(machine / "home"), **environ}
    shell = str(machine / "bin" / "sh")
    return subprocess.run([shell, script, "--more"], cwd="/", env=env, capture_output=True, text=True)


def asked(machine: Path, program: Path) -> list[str]:
    """What uv is asked where the program belongs into this folder."""
    words = ["run", "--no-project", "--python", "3.12", "-m", "installer", "install", "--more"]
    return [str(machine / "Ünï check out"), *words, str(program / "python")]


@posix
def test_a_uv_in_path_is_used(machine: Path) -> None:
    program(machine, "uv", UV)
    done = run(machine)
    assert done.stdout.splitlines() == asked(machine, machine / "home/.local/share/octavo-program")
    assert done.stderr == "" and not (machine / "home" / ".local").exists()


@posix
@pytest.mark.parametrize("fetcher", ["curl", "wget"])
def test_else_it_is_fetched_into_the_program_s_folder(machine: Path, fetcher: str) -> None:
    program(machine, fetcher, f'#!/bin/sh\necho "$@" > "{machine}/fetched"\n{GET_UV}')
    for _ in range(2):  # the second time it is there
        done = run(machine, XDG_DATA_HOME=str(machine / "data é"))
    folder = machine / "data é" / "octavo-program"
    assert done.stdout.splitlines() == asked(machine, folder) and (folder / "uv" / "uv").is_file()
    assert (machine / "fetched").read_text().split()[-1] == "https://astral.sh/uv/install.sh"


@posix
@pytest.mark.parametrize(
    ("fetcher", "said"),
    [("", "takes curl or wget"), ("#!/bin/sh\necho no network >&2\nexit 6\n", "no network")],
)
def test_without_a_network_nothing_is_run(machine: Path, fetcher: str, said: str) -> None:
    if fetcher:
        program(machine, "curl", fetcher)
    done = run(machine)
    assert done.returncode != 0 and said in done.stderr and not (machine / "home" / ".local").exists()


@posix
def test_on_a_mac_it_lies_where_the_installer_looks(machine: Path) -> None:
    (machine / "bin" / "uname").unlink()
    program(machine, "uname", "#!/bin/sh\necho Darwin\n")
    program(machine, "uv", UV)
    folder = machine / "home" / "Library" / "Application Support" / "Octavo Program"
    assert run(machine).stdout.splitlines() == asked(machine, folder)
