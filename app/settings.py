"""Where everything lies and what the person decided: the home folder, settings.toml, the environment.

The only file that is steered by environment variables. `prepare_process` must run before gradio, numba or
huggingface_hub are imported: it turns telemetry off, moves their caches into the home folder and makes new
files private. settings.toml is read here; saved_settings.py writes it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import sys
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine import BadRequest, EngineConfig, SamplingParams, share_one_heap

from .commands.terminal import prepare_streams
from .errors import BadSettings
from .faults import keep_log
from .models.catalogue import read_catalogue
from .models.own_models import OwnModels
from .setting_kinds import check_kinds, raised

FOLDERS = ("models", "cache", "gradio")
QUIET = {  # no library may call home
    "DO_NOT_TRACK": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
}
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# unencrypted only inside this machine
_HUB = re.compile(r"https://[A-Za-z0-9.-]{1,200}(:\d{1,5})?|http://(127\.0\.0\.1|localhost)(:\d{1,5})?")

_PROXY = re.compile(r"https?://([^\s/@]+@)?[A-Za-z0-9.-]{1,200}:\d{1,5}/?")


def program_version() -> str:
    """The installed version; a checkout that was never installed has none."""
    try:
        return version("octavo")
    except PackageNotFoundError:
        return "checkout"


@dataclass(frozen=True, slots=True)
class Home:
    """The one folder that holds all data."""

    path: Path

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """$OCTAVO_HOME, or the platform's folder for a user's data. Empty variables count as unset."""
        if chosen := environ.get("OCTAVO_HOME"):
            return cls(Path(os.path.expanduser(chosen)).absolute())
        if sys.platform == "win32":
            local = environ.get("LOCALAPPDATA")
            return cls((Path(local) if local else _user() / "AppData" / "Local") / "Octavo")
        if sys.platform == "darwin":
            return cls(_user() / "Library" / "Application Support" / "Octavo")
        data = environ.get("XDG_DATA_HOME", "")
        return cls((Path(data) if os.path.isabs(data) else _user() / ".local" / "share") / "octavo")

    def __truediv__(self, name: str) -> Path:
        """A file or folder in it."""
        return self.path / name

    @property
    def compiled(self) -> Path:
        """Numba's cache: another version of the program has another one."""
        return self.path / "cache" / "numba" / program_version()

    @property
    def blocks(self) -> Path:
        """What chats left behind in the attention memory."""
        return self.path / "cache" / "blocks"

    @property
    def packed(self) -> Path:
        """Models as the engine packed them."""
        return self.path / "cache" / "packed"

    def prepare(self) -> None:
        """Make the folders, for this user only."""
        try:
            for folder in (self.path, *(self / name for name in FOLDERS)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                # what is something else as well (a person's home, /tmp, a link to a disk) stays as it is
                own = str(folder) == os.path.expanduser("~")
                other = own or folder.is_symlink() or folder.stat().st_mode & stat.S_ISVTX
                if not other:
                    with suppress(PermissionError):  # someone else's folder that we may write to
                        folder.chmod(0o700)
        except FileExistsError as error:
            raise BadSettings(
                f"{error.filename} is a file; it must be a folder. OCTAVO_HOME can name "
                "another place for the data."
            ) from error
        except OSError as error:
            raise BadSettings(f"The folder {self.path} can't be used: {error.strerror}.") from error


def _user() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise BadSettings(
            "This user has no home folder. Set OCTAVO_HOME to a folder for the data."
        ) from error


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person decided. `model` is an id of the catalogue or the path of a file or folder."""

    home: Home
    model: str = "smollm2-135m"
    port: int = 8642
    system_prompt: str = ""  # "": the model's own
    hub: str = "https://huggingface.co"  # where models are fetched from
    offline: bool = False  # the hub is never asked
    models_quota: int = 0  # GB that models may take; 0: as many as there is room for
    cache_quota: int | None = None  # GB on the disk for what chats leave behind; None: by its room; 0: off
    proxy: str = ""  # where requests to the net go through; "": as the environment says
    api: bool = True  # whether /v1 is served beside the page
    keep_alive: float = 0.0  # minutes after which an idle model is let go of; 0: it stays
    keep_free: float = 0.0  # GB of memory that the pool leaves to other programs while it runs; 0: as planned
    sampling: SamplingParams = field(default_factory=SamplingParams)
    engine: EngineConfig = field(default_factory=EngineConfig)

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise BadSettings(f"port is {self.port}; it must lie between 1 and 65535.")
        if not _HUB.fullmatch(self.hub):
            raise BadSettings(
                f"hub is {self.hub!r:.100}; it must be an https address, as https://huggingface.co."
            )
        for name in ("hub", "proxy"):
            port = re.search(r":(\d+)/?$", getattr(self, name))
            if port and not 1 <= int(port[1]) <= 65535:
                raise BadSettings(f"{name} names the port {port[1]}; it must lie between 1 and 65535.")
        if self.proxy and not _PROXY.fullmatch(self.proxy):  # it may hold a password: it is not repeated
            raise BadSettings("proxy must be an address with a port, as http://127.0.0.1:3128.")
        limits = (
            ("keep_alive", 10**6, "minutes"),
            ("keep_free", 10**5, "GB"),
            ("models_quota", 10**6, "GB"),
            ("cache_quota", 10**6, "GB"),
        )
        for name, most, unit in limits:
            value = getattr(self, name)
            if not 0 <= (value or 0) <= most:  # so it is with NaN
                raise BadSettings(f"{name} is {value!r:.100}; it must be {unit}, from 0 to {most:,}.")

    @property
    def keep_free_bytes(self) -> int:
        """See keep_free."""
        return int(self.keep_free * 10**9)

    @property
    def cache_bytes(self) -> int | None:
        """See cache_quota."""
        return None if self.cache_quota is None else self.cache_quota * 10**9


# engine options that people meet: they stand at the top of the file
_PROMOTED = ("context_length", "num_chats")


def load_settings(home: Home, *, by_model: bool = True, **overrides: Any) -> Settings:
    """settings.toml with `overrides` (None: not given) on top. Raises BadSettings naming key and value.

    What neither says of sampling, system prompt and context is as the person's models.toml has it for the
    model, then as the catalogue does; unless `by_model` is False.
    """
    path = home / "settings.toml"
    try:
        text = path.read_text("utf-8-sig") if path.exists() else ""
    except (OSError, ValueError) as error:  # ValueError: no UTF-8
        raise BadSettings(f"{path} can't be read: {error}") from error
    return parse_settings(home, text, by_model=by_model, **overrides)


def parse_settings(home: Home, text: str, *, by_model: bool = True, **overrides: Any) -> Settings:
    """What load_settings gives if this is what settings.toml holds."""
    path = home / "settings.toml"
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: no TOML, 5,000 digits
        raise BadSettings(f"{path} can't be read: {error}") from error
    try:
        promoted = {key: values.pop(key) for key in _PROMOTED if key in values}
        check_kinds(EngineConfig, promoted)
        sampled = _table(SamplingParams, values, "sampling")
        computed = {**promoted, **_table(EngineConfig, values, "engine", omit=_PROMOTED)}
        engine = EngineConfig(**raised(computed))
        check_kinds(Settings, values, omit=("home",), also=(*_PROMOTED, "[sampling]", "[engine]"))
        settings = Settings(home, engine=engine, sampling=SamplingParams(**sampled), **values)
    except (BadRequest, BadSettings, ValueError) as error:  # ValueError: hexadecimal, too long to be shown
        raise BadSettings(f"{path}: {error}") from error
    given = {key: value for key, value in overrides.items() if value is not None}
    settings = dataclasses.replace(settings, **given)  # the file is not blamed for these
    if not by_model:
        return settings
    own = OwnModels(home.path)
    best = own.sampling(settings.model, read_catalogue().sampling(settings.model))
    prompt, context = own.entry(settings.model).system_prompt, own.entry(settings.model).context
    if context and "context_length" not in promoted:
        engine = dataclasses.replace(settings.engine, context_length=context)
        settings = dataclasses.replace(settings, engine=engine)
    if prompt and "system_prompt" not in values:
        settings = dataclasses.replace(settings, system_prompt=prompt)
    return dataclasses.replace(settings, sampling=dataclasses.replace(best, **sampled))


def _table(kind: type, values: dict[str, Any], name: str, omit: tuple[str, ...] = ()) -> dict[str, Any]:
    """Take the table `name` out of `values` and check it against the fields of the dataclass `kind`."""
    table = values.pop(name, {})
    if not isinstance(table, dict):
        raise BadSettings(f"{name} is {table!r:.100}; it must be a table, [{name}].")
    check_kinds(kind, table, f"{name}.", omit)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def prepare_process(home: Home, environ: dict[str, str] | os._Environ[str] = os.environ) -> None:
    """Set up this process, before anything heavy is imported and any thread has a heap of its own."""
    share_one_heap()
    prepare_streams()
    home.prepare()
    os.umask(0o077)
    keep_log(home / "octavo.log")
    for name in [name for name in environ if name.startswith("GRADIO_")]:
        del environ[name]  # some would open the page to others
    environ.update(QUIET)
    environ["NUMBA_CACHE_DIR"] = str(home.compiled)
    environ["TRITON_CACHE_DIR"] = str(home.compiled / "triton")
    environ["GRADIO_TEMP_DIR"] = str(home / "gradio")
    for name in ("NO_PROXY", "no_proxy"):  # the page's server asks itself whether it is up
        hosts = [host for host in environ.get(name, "").split(",") if host]
        environ[name] = ",".join([*hosts, *(host for host in LOOPBACK if host not in hosts)])


def use_proxy(settings: Settings, environ: dict[str, str] | os._Environ[str] = os.environ) -> None:
    """Have requests to the net go through the proxy of the settings, if they name one."""
    if settings.proxy:
        environ.update(
            dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), settings.proxy)
        )


def environment(**changes: str) -> dict[str, str]:
    """This process's environment with changes, for a child process."""
    return {**os.environ, **changes}
