"""settings.toml, changed as a person changes it: comments and order stay, and what is wrong is not written.

A setting is named as in the file: "port", "engine.threads", "sampling.temperature". Values are checked by the
rules of settings.py, so a file that was written here can always be read. Only the process that has the home
folder (access/instance.py) writes it, one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from .errors import BadSettings
from .private_files import write_private
from .setting_kinds import check_bounds
from .settings import Home, Settings, parse_settings

_saving = threading.Lock()  # from reading the file until it is written


def save_settings(home: Home, changes: Mapping[str, Any]) -> Settings:
    """Write these values, None for "not set"; all settings as they are then. Raises BadSettings."""
    for name, value in changes.items():
        if isinstance(value, str) and value != value.encode("utf-8", "replace").decode("utf-8"):
            raise BadSettings(f"{name} holds half a character, which no file can hold. Type it once more.")
        check_bounds(name, value)
    with _saving:
        return _save(home, changes)


def _save(home: Home, changes: Mapping[str, Any]) -> Settings:
    path = home / "settings.toml"
    try:
        document = tomlkit.parse(path.read_text("utf-8-sig") if path.exists() else "")
    except (OSError, ValueError, TOMLKitError) as error:
        raise BadSettings(f"{path} can't be read: {error}") from error
    for name, value in changes.items():
        _put(document, name, value)
    text = tomlkit.dumps(document)
    try:
        settings = parse_settings(home, text)
    except BadSettings as error:
        raise BadSettings(str(error).removeprefix(f"{path}: ")) from error
    _write(path, text)
    return settings


def _write(path: Path, text: str) -> None:
    """A new file in the old one's place would get round what the person forbade."""
    try:
        if path.exists() and not path.stat().st_mode & 0o222:
            raise BadSettings(f"{path} may only be read, so it was left as it is. Allow writing to it first.")
        write_private(path, text.encode())
    except OSError as error:
        raise BadSettings(f"{path} can't be written: {error.strerror}.") from error


def _put(document: tomlkit.TOMLDocument, name: str, value: Any) -> None:
    table_name, _, key = name.rpartition(".")
    table: Any = document
    if table_name:  # [engine], engine = {...} and engine.threads = 2 are all of them dictionaries
        if value is not None and not isinstance(document.get(table_name), dict):
            document.pop(table_name, None)
            document[table_name] = tomlkit.table()
        table = document.get(table_name, {})
    if value is not None:
        table[key] = value
    elif key in table:
        del table[key]
        if table_name and not table and "#" not in tomlkit.dumps(table):  # a comment of the person's stays
            del document[table_name]
