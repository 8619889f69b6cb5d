"""What a person may hand to someone who helps them: one zip file of what the program knows of itself, without
secrets, without chats, without the names of folders that say who they are.

Everything is built from lists of what may be in it. Of the log only what Octavo itself wrote stays, with the
places in the program and the kinds of errors; what errors and libraries say in their own words may repeat
what was said in a chat, so it goes. At last every text is searched for the secrets and folders once more.
"""

from __future__ import annotations

import dataclasses
import getpass
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine import EngineConfig, SamplingParams

from ..access.keys import Keys
from ..commands.doctor import machine_facts
from ..memory.runtime import Runtime
from ..models.tokens import HubToken
from ..settings import Settings
from .licences import installed_licences

LINES = 400  # the last of the log
LOGS = ("octavo.log.1", "octavo.log")
PERSONAL = {"system_prompt", "proxy", "stop"}  # settings whose value may say something of the person
ABOUT = """\
What is in here:
  about.json     this machine, the versions, the state of the model and its memory plan
  settings.txt   settings that differ from what is usual
  log.txt        the last lines of the log, without what errors and libraries say in their own words
  packages.txt   the installed packages
What is not: chats, system prompts, keys and tokens, names of folders outside Octavo's own.
"""
HEADER = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+) ([\w.]+): (.*)")
FRAME = re.compile(r'\s+File "(.+)", line (\d+), in ([\w<>.]+)')
ERROR = re.compile(
    r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Stopped|Failed))(?::.*)?"
)
KEPT = ("Traceback (most recent", "During handling of the above", "The above exception was")
# from where a path begins to its last part: a folder may have spaces in its name
FOLDERS = re.compile(r"(?<![\w>./\\])(?:[A-Za-z]:[\\/]+|~?/(?![/\s]))(?:[^/\\\"\n]+[\\/]+)+")
TOKEN = re.compile(r"\bhf_\w{8,}|\boctavo-[0-9a-f]{16,}|\bBearer +\S+|\b[0-9a-f]{64}\b|(?<=://)[^\s/@]+@")


def make_bundle(settings: Settings, keys: Keys, runtime: Runtime) -> bytes:
    """The zip file."""
    clean = Cleaner(settings, keys)
    status = runtime.status()
    status = replace(status, message=cut_paths(clean(status.message)))
    about: dict[str, Any] = {**machine_facts(settings), "status": dataclasses.asdict(status)}
    if plan := runtime.plan:
        about["memory_plan"] = dataclasses.asdict(plan)
    if stats := runtime.stats():
        about["stats"] = dataclasses.asdict(replace(stats, fault=_kind(stats.fault)))
    files = {
        "readme.txt": ABOUT,
        "about.json": json.dumps(about, indent=1, default=str, ensure_ascii=False),
        "settings.txt": "\n".join(changed_settings(settings)),
        "log.txt": "\n".join(cut_paths(clean(line)) for line in log_lines(settings)),
        "packages.txt": "\n".join(f"{each.name} {each.version}" for each in installed_licences()),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, clean(text) + "\n")
    return packed.getvalue()


class Cleaner:
    """Takes secrets and folders out of a text."""

    def __init__(self, settings: Settings, keys: Keys) -> None:
        home = settings.home.path
        secrets = [keys.api_key, keys.session(settings.port), HubToken(home)() or "", _proxy_login(settings)]
        for name in ("secret", "key"):
            with suppress(FileNotFoundError):
                secrets.append((home / name).read_text("latin-1").strip())
        folders = {os.path.expanduser("~"): "~"}
        if Path(settings.model).is_absolute():
            folders[str(Path(settings.model).parent)] = "<models>"
        folders |= {str(home): "<octavo>", str(home.resolve()): "<octavo>"}
        user = getpass.getuser()
        self._words = [(secret, "<secret>") for secret in secrets if len(secret) > 3]
        self._words += sorted(folders.items(), key=lambda item: -len(item[0]))
        self._user = re.compile(rf"(?<=[/\\]){re.escape(user)}(?=[/\\]|\b)")

    def __call__(self, text: str) -> str:
        for word, shown in self._words:
            for form in {word, word.replace("\\", "\\\\"), json.dumps(word)[1:-1]} - {"", "/", "\\"}:
                text = text.replace(form, shown)
        return self._user.sub("<user>", TOKEN.sub("<secret>", text))


def cut_paths(text: str) -> str:
    """Of each path outside Octavo's own folder the last part."""
    return FOLDERS.sub("…/", text)


def changed_settings(settings: Settings) -> Iterator[str]:
    """A line for each setting that is not as usual."""
    parts = (
        ("", settings, Settings(settings.home)),
        ("sampling.", settings.sampling, SamplingParams()),
        ("engine.", settings.engine, EngineConfig()),
    )
    for prefix, values, usual in parts:
        for field in dataclasses.fields(values):
            value = getattr(values, field.name)
            if field.name in ("home", "sampling", "engine") or value == getattr(usual, field.name):
                continue
            if field.name == "model":
                value = Path(value).name
            yield f"{prefix}{field.name} = " + ("(set)" if field.name in PERSONAL else repr(value))


def log_lines(settings: Settings) -> list[str]:
    """The last lines of the log that may be shown."""
    lines: list[str] = []
    for name in LOGS:
        path = settings.home / name
        if path.is_file():
            lines += path.read_text("utf-8", "replace").splitlines()
    return list(harmless(lines[-4 * LINES :]))[-LINES:]


def harmless(lines: Iterable[str]) -> Iterator[str]:
    """What Octavo wrote itself, where an error came from, and of which kind it was."""
    for line in lines:
        if header := HEADER.fullmatch(line):
            ours = header[2].partition(".")[0] == "octavo"
            yield f"{header[1]} {header[2]}: {header[3] if ours else '…'}"
        elif frame := FRAME.fullmatch(line):
            yield f"  {'/'.join(Path(frame[1].replace(chr(92), '/')).parts[-2:])}:{frame[2]} {frame[3]}"
        elif error := ERROR.fullmatch(line):
            yield error[1]
        elif line.startswith(KEPT):
            yield line


def _kind(fault: str) -> str:
    """ "The engine stopped: ValueError: ..." without what the error says in its own words."""
    return ":".join(fault.split(":")[:2])


def _proxy_login(settings: Settings) -> str:
    return settings.proxy.partition("://")[2].rpartition("@")[0]
