"""The person's own models.toml in the home folder: files used where they lie, and how a model is to be used.

    [[models]]
    id = "qwen3-0.6b"                    of the catalogue, "qwen3-0.6b@fp8" too, or a word of one's own
    path = "/data/my-model.gguf"         a GGUF file or a folder, which stands for that id
    system_prompt = "Answer briefly."    for new chats, where a chat has none of its own
    context = 8192                       tokens
    sampling = { temperature = 0.2 }     the rest is as the catalogue has it
The page writes it too, and changes only what was changed there: comments and order stay. Where the file is
no such thing, `problem` says so in a sentence and the program goes on as if there were none.
"""

from __future__ import annotations

import contextlib
import re
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine import BadRequest, EngineConfig, SamplingParams

from ..errors import BadCatalogue, BadSettings
from ..private_files import write_private
from ..setting_kinds import check_bounds, check_kinds, raised
from .ids import bare

FILE = "models.toml"
ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}(@[a-z0-9_-]{1,40})?")
LONGEST_PROMPT = 100_000  # characters
KINDS: dict[str, type] = {
    "id": str, "path": str, "name": str, "parameters": int, "system_prompt": str, "context": int,
    "sampling": dict,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnModel:
    """An entry. What is "" or 0 was left open."""

    id: str
    path: str = ""
    name: str = ""
    parameters: int = 0
    system_prompt: str = ""
    context: int = 0
    sampling: dict[str, Any] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """It says something of how the model is used."""
        return bool(self.system_prompt or self.context or self.sampling)


class OwnModels:
    """The file, read again whenever it was changed. Any thread may call."""

    def __init__(self, home: Path) -> None:
        self.path, self._lock = home / FILE, threading.RLock()
        self._stamp: object = None
        self._entries: dict[str, OwnModel] = {}
        self._problem = ""

    @property
    def problem(self) -> str:
        """Why the file does not count; "" if it does, or if there is none."""
        self._read()
        return self._problem

    def entries(self) -> dict[str, OwnModel]:
        """By id, in the file's order."""
        return self._read()

    def entry(self, chosen: str) -> OwnModel:
        """How a model is used: of a variant, id@variant, else of all; an empty one if nothing is said."""
        entries, id = self._read(), bare(chosen)
        said = (entries[each] for each in (chosen, id) if each in entries)
        return next((each for each in said if each.is_used), OwnModel(id))

    def sampling(self, id: str, base: SamplingParams) -> SamplingParams:
        """`base`, with what the entry says on top."""
        return _sampling(base, self.entry(id).sampling)

    def keep(self, id: str, **changes: Any) -> None:
        """Change an entry, or make one. None takes a line out. Raises AppError for what can't be."""
        with self._changing() as models:
            check_bounds("context_length", changes.get("context") or None)
            entry = next((each for each in models if each.get("id") == id), None)
            made = entry is None
            entry = _new_entry(models) if entry is None else entry
            for name, value in {"id": id, **changes}.items():
                if value in (None, "", 0, {}):
                    entry.pop(name, None)
                else:
                    entry[name] = _inline(value) if isinstance(value, dict) else value
            _entry(entry.unwrap())
            if made:
                models.append(entry)

    def forget(self, id: str) -> None:
        """Take an entry out."""
        with self._changing() as models:
            for place in [place for place, each in enumerate(models) if each.get("id") == id]:
                del models[place]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Any]:
        """The list of entries as it stands in the file; what is done to it is written."""
        import tomlkit

        with self._lock:
            if problem := self.problem:
                raise BadCatalogue(f"{problem} Correct or delete it first.")
            text = self.path.read_text("utf-8") if self.path.exists() else ""
            document = tomlkit.parse(text)
            models = document.setdefault("models", tomlkit.aot())
            yield models
            if not models:
                del document["models"]
            try:
                write_private(self.path, tomlkit.dumps(document).encode())
            except OSError as error:
                raise BadCatalogue(f"{self.path} can't be written: {error.strerror}.") from error

    def _read(self) -> dict[str, OwnModel]:
        with self._lock:
            try:
                facts = self.path.stat()
                stamp: object = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            except OSError:
                stamp = None
            if stamp != self._stamp:
                self._stamp, self._problem, self._entries = stamp, "", {}
                if stamp:
                    try:
                        self._entries = _entries(tomllib.loads(self.path.read_text("utf-8-sig")))
                    except (OSError, ValueError, RecursionError, BadCatalogue) as error:
                        self._problem = f"{self.path} is left out: {str(error).rstrip('.')}."
            return self._entries


def _entries(content: dict[str, Any]) -> dict[str, OwnModel]:
    listed = content.get("models", [])
    if extra := set(content) - {"models"}:
        raise BadCatalogue(f"{sorted(extra)[0]} is not a key; it holds [[models]].")
    if not isinstance(listed, list):
        raise BadCatalogue("models must be a list of tables, [[models]]")
    entries = [_entry(each) for each in listed]
    if len({entry.id for entry in entries}) < len(entries):
        raise BadCatalogue("an id stands there twice")
    return {entry.id: entry for entry in entries}


def _entry(values: Any) -> OwnModel:
    where = f"model {values.get('id', '?')!r:.100}" if isinstance(values, dict) else "a model"
    if (
        not isinstance(values, dict)
        or not isinstance(values.get("id"), str)
        or not ID.fullmatch(values["id"])
    ):
        raise BadCatalogue(f"{where} needs an id of small letters, digits and . _ -")
    for name, value in values.items():
        if name not in KINDS:
            raise BadCatalogue(f"{where}: {name:.100} is not a key; there are {', '.join(KINDS)}")
        if type(value) is not KINDS[name]:
            raise BadCatalogue(f"{where}: {name} can't be {value!r:.100}")
    entry = OwnModel(**values)
    if (length := len(entry.system_prompt)) > LONGEST_PROMPT:
        raise BadCatalogue(
            f"{where}: its system prompt has {length:,} characters; at most {LONGEST_PROMPT:,}"
        )
    try:
        check_kinds(SamplingParams, entry.sampling, "sampling.")
        _sampling(SamplingParams(), entry.sampling)
        if entry.context:
            usable = raised({"context_length": entry.context})
            EngineConfig(**usable)
            entry = replace(entry, context=usable["context_length"])
    except (BadSettings, BadRequest, ValueError) as error:  # ValueError: thousands of digits can't be said
        raise BadCatalogue(f"{where}: {error}") from error
    return entry


def _sampling(base: SamplingParams, changes: dict[str, Any]) -> SamplingParams:
    lists = {name: tuple(value) for name, value in changes.items() if isinstance(value, list)}
    return replace(base, **{**changes, **lists})


def _new_entry(models: Any) -> Any:
    """As the list is written: [[models]], or in brackets."""
    import tomlkit
    from tomlkit.items import AoT

    return tomlkit.table() if isinstance(models, AoT) else tomlkit.inline_table()


def _inline(values: dict[str, Any]) -> Any:
    import tomlkit

    made = tomlkit.inline_table()
    made.update(values)
    return made
