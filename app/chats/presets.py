"""What a chat asks of the model (its system prompt, how it is sampled, which model), and presets: such
settings under a name.

A chat that takes a preset gets a copy of it, so changing the preset later changes no chat. What a chat does
not decide is as in the program's settings. Changes count from the next answer on.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import AppError
from .chat import ChatService
from .database import Database
from .records import PROMPT_LENGTH
from .sampling import DECIDED, checked
from .store import ChatStore
from .typed import name_of, sound

MOST = 200
GONE = "This preset does not exist any more."


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings under a name. `sampling` has only what it decides; `model` may be "": whichever answers."""

    id: str
    name: str
    system_prompt: str
    sampling: Mapping[str, float | int]
    model: str


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """A chat's, and how it would be without any of its own."""

    chat: str
    preset: str  # the name of the one that was taken last, or ""
    system_prompt: str
    sampling: Mapping[str, float | int]
    model: str
    usual_prompt: str
    usual: Mapping[str, float | int | None]


class Presets:
    """Any thread may call. Errors are AppErrors whose text is for the person."""

    def __init__(self, chats: ChatService, store: ChatStore, identify: Callable[[str], str]) -> None:
        self._chats, self._store, self._identify = chats, store, identify

    # ---- a chat's settings

    def of(self, chat: str) -> ChatSettings:
        """A chat's settings; those of "" are a new chat's."""
        row = self._store.chat(chat) if chat else None
        usual = self._chats.turns.usual(row.own_model if row else "")
        given = asdict(usual.sampling)
        common = usual.system_prompt, {name: given[name] for name in DECIDED}
        if row is None:
            return ChatSettings("", "", usual.system_prompt, {}, "", *common)
        return ChatSettings(
            chat, row.preset, row.system_prompt, json.loads(row.sampling), row.own_model, *common
        )

    def change(self, chat: str, **values: Any) -> str:
        """Other settings for a chat, for a new one if it is "": system_prompt, sampling, model. Its id."""
        columns: dict[str, object] = {}
        if (prompt := values.get("system_prompt")) is not None:
            columns["system_prompt"] = _prompt(prompt)
        if (own := values.get("sampling")) is not None:
            columns["sampling"] = checked(own)
        if (model := values.get("model")) is not None:
            columns["own_model"] = model and self._identify(model)
        return self._put(chat, **columns)

    def reset(self, chat: str) -> str:
        """Let a chat decide nothing for itself. Its id."""
        usual = self._chats.turns.usual().system_prompt
        return self._put(chat, preset="", system_prompt=usual, sampling="{}", own_model="")

    def take(self, chat: str, preset: str) -> str:
        """Give a chat a preset's settings. Its id."""
        found = self._find(preset)
        prompt, own = found.system_prompt, json.dumps(dict(found.sampling))
        return self._put(chat, preset=found.name, system_prompt=prompt, sampling=own, own_model=found.model)

    # ---- presets

    def all(self) -> tuple[Preset, ...]:
        """All of them, by name."""
        rows = self._store.file.read(lambda db: db.execute("SELECT * FROM presets").fetchall())
        found = [Preset(**{**dict(row), "sampling": json.loads(row["sampling"])}) for row in rows]
        return tuple(sorted(found, key=lambda preset: preset.name.casefold()))

    def keep(self, chat: str, name: str) -> Preset:
        """Keep a chat's settings under a name; a preset that has it is replaced."""
        name = name_of(name)
        mine, there = self.of(chat), self.all()
        old = [preset.id for preset in there if preset.name.casefold() == name.casefold()]
        if not old and len(there) >= MOST:
            raise AppError(f"There are {len(there)} presets; at most {MOST} are kept.")
        new = Preset((old or [uuid.uuid4().hex])[0], name, mine.system_prompt, mine.sampling, mine.model)
        row = {**asdict(new), "sampling": json.dumps(dict(new.sampling))}
        self._store.file.transact(lambda db: db["presets"].upsert(row, pk="id"))
        if chat:
            self._put(chat, preset=name)
        return new

    def delete(self, preset: str) -> None:
        """Remove a preset; chats keep what they took of it."""
        found = self._find(preset).id

        def write(db: Database) -> None:
            db.execute("DELETE FROM presets WHERE id = ?", [found])

        self._store.file.transact(write)

    # ---- inside

    def _find(self, id: str) -> Preset:
        for preset in self.all():
            if preset.id == id:
                return preset
        raise AppError(GONE)

    def _put(self, chat: str, **columns: object) -> str:
        chat = chat or self._chats.new_chat()
        if columns:
            self._store.change(chat, **columns)
            self._chats.note_change(chat)
        return chat


def _prompt(text: str) -> str:
    if len(text) > PROMPT_LENGTH:
        raise AppError(f"This system prompt has {len(text):,} characters; at most {PROMPT_LENGTH:,} fit.")
    return sound(text)
