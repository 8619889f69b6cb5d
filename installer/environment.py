"""The program's own Python: the virtual environment `.venv` in the checkout, with the packages it needs.

A stamp in it says for what it was made; while it is as it should be, a start costs one look at the stamp. A
stamp is written last and taken away first, and a mark stands while work goes on: what was interrupted is made
anew, not mended. Knows nothing of models, browsers or the program.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from . import accelerator, torch_choice
from .console import Step, say, size
from .download_size import Download, measure
from .errors import SetupError
from .lock import locked
from .pip import WITH_PROGRESS, Pip, PipFailed

UNPACKED, REST_BYTES = 3, 1_500_000_000  # a wheel's size on disk by its download; everything but torch
ASK_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True, slots=True)
class Stamp:
    """For what an environment was made."""

    project: str  # hash of what pyproject.toml says about packages
    root: str  # an environment that was moved is no longer sound
    python: str
    drivers: str  # accelerator.hint()
    extras: tuple[str, ...] = ()

    def covers(self, other: Stamp) -> bool:
        """Whether an environment with this stamp will do where `other` is asked for."""
        return set(other.extras) <= set(self.extras) and replace(self, extras=()) == replace(other, extras=())


@dataclass(frozen=True, slots=True)
class Environment:
    """The places in it."""

    root: Path  # the checkout

    @property
    def folder(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def pip(self) -> Pip:
        return Pip(self.python, self.folder / "installer.log")

    @property
    def stamp(self) -> Path:
        return self.folder / "installer.json"

    @property
    def mark(self) -> Path:
        return self.folder / "installer.busy"

    @property
    def lock(self) -> Path:
        return self.folder / "installer.lock"


def prepare(root: Path, extras: tuple[str, ...] = ()) -> Environment:
    """The environment, made or brought up to date if it must be."""
    env = Environment(root)
    if _ready(env, extras):
        return env
    try:
        with locked(env.lock):
            if not _ready(env, extras):  # another installer may have made it while this one waited
                _make(env, extras)
    except OSError as error:
        raise SetupError(f"{env.folder} cannot be written: {error}.") from error
    return env


def _ready(env: Environment, extras: tuple[str, ...]) -> bool:
    stamp, now = _stamp_there(env), _stamp_now(env, extras)
    return bool(stamp and now and stamp.covers(now))


def _stamp_there(env: Environment) -> Stamp | None:
    try:
        fields = json.loads(env.stamp.read_text(encoding="utf-8"))
        return Stamp(**{**fields, "extras": tuple(fields["extras"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _stamp_now(env: Environment, extras: tuple[str, ...]) -> Stamp | None:
    """None: the environment's Python is missing or does not start."""
    version = _version(env)
    project = tomllib.loads((env.root / "pyproject.toml").read_text(encoding="utf-8"))
    says = json.dumps([project["build-system"], project["project"]], sort_keys=True)
    digest = hashlib.sha256(says.encode()).hexdigest()
    return Stamp(digest, str(env.root), version, accelerator.hint(), extras) if version else None


def _version(env: Environment) -> str:
    try:
        done = subprocess.run(
            [env.python, "-I", "-c", ASK_VERSION], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _make(env: Environment, extras: tuple[str, ...]) -> None:
    before = _stamp_there(env)
    extras = tuple(sorted({*extras, *(before.extras if before else ())}))
    say(f"Octavo sets itself up in {env.folder}. This takes minutes the first time, seconds after that.")
    if env.mark.exists() or not _version(env):
        _create(env)
    env.stamp.unlink(missing_ok=True)
    env.mark.touch()
    try:
        _newer_pip(env)
        _install_torch(env)
        _install_project(env, extras)
    except PipFailed as error:
        if not error.touched:
            env.mark.unlink()  # all is as it was: no need to begin anew
        raise
    _put_stamp(env, extras)
    env.mark.unlink()


def _put_stamp(env: Environment, extras: tuple[str, ...]) -> None:
    stamp = _stamp_now(env, extras)
    assert stamp is not None, "pip ran in this environment a moment ago"
    part = env.stamp.with_suffix(".part")
    part.write_text(json.dumps(asdict(stamp)), encoding="utf-8")
    os.replace(part, env.stamp)


def _create(env: Environment) -> None:
    """A new environment in place of whatever is there; the lock's file stays, for it is held."""
    if Path(sys.prefix).resolve() == env.folder.resolve():
        raise SetupError(
            f"{env.folder} is damaged and in use by this Python. Leave it (`deactivate`), start again."
        )
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
            raise SetupError(
                f"This Python has no {module} module. On Debian and Ubuntu: sudo apt install {package}"
            )
    with Step("Virtual environment") as step:
        for path in env.folder.iterdir():
            if path != env.lock:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        env.mark.touch()
        venv.EnvBuilder(symlinks=os.name != "nt").create(env.folder)
        step.done(f"Python {_version(env)}")


def _newer_pip(env: Environment) -> None:
    if env.pip.version() >= WITH_PROGRESS:
        return
    with Step("pip") as step:
        if env.pip.version() == (0,):
            done = subprocess.run([env.python, "-I", "-m", "ensurepip"], capture_output=True, text=True)
            if done.returncode:
                raise SetupError(f"pip could not be put into {env.folder}:\n{done.stdout}{done.stderr}")
        if env.pip.version() >= WITH_PROGRESS:
            return
        try:
            env.pip("install", "--retries", "1", "--upgrade", "pip", step=step)
        except PipFailed as error:
            if error.touched:
                raise
            step.done("a newer one is not to be had, this one will do")


def _install_torch(env: Environment) -> None:
    with Step("Which PyTorch"):
        host = torch_choice.Host(python=_version(env))
        build = torch_choice.wanted(accelerator.detect(), host)
        page = torch_choice.ask(build) if build.label else None
        choice = torch_choice.choose(build, host, page)
        download = measure(env.pip.plan(*choice.arguments))
    say(f"    {choice.reason}\n    {choice.arguments[0]}: {download}.")
    if not download.files:
        return
    _check_space(env, download)
    with Step("PyTorch") as step:
        env.pip("install", *choice.arguments, step=step)


def _install_project(env: Environment, extras: tuple[str, ...]) -> None:
    with Step("Octavo's packages") as step:
        wanted = f"{env.root}[{','.join(extras)}]" if extras else str(env.root)
        env.pip("install", "--editable", wanted, step=step)


def _check_space(env: Environment, download: Download) -> None:
    need, free = UNPACKED * download.bytes + REST_BYTES, shutil.disk_usage(env.folder).free
    if download.bytes and free < need:
        raise SetupError(f"Octavo's packages need about {size(need)} in {env.folder}; {size(free)} are free.")
