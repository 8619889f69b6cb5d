"""What the sheet of a chat's settings may ask for (assets/rail/chat_settings.js).

Chat "" is the one to come; the first change makes it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .acts import act


def _settings(page: Any, chat: str) -> dict[str, Any]:
    """All that the sheet shows."""
    store = page.library.store
    here = [each.key for row in page.library.rows() for each in row.variants if each.here == "ready"]
    models = [{"id": id, "name": store.name(id)} for id in here]
    presets = [{"id": preset.id, "name": preset.name} for preset in page.presets.all()]
    found = dataclasses.asdict(page.presets.of(chat))
    model = found["model"] and store.resolve(found["model"])
    usual = page.runtime.next_model  # in chats that name none
    return {**found, "model": model, "usual": usual, "models": models, "presets": presets}


def _change(page: Any, chat: str, change: dict[str, Any]) -> dict[str, Any]:
    kinds = {"system_prompt": str, "sampling": dict, "model": str}
    known = {name: change[name] for name, kind in kinds.items() if type(change.get(name)) is kind}
    return _settings(page, page.presets.change(chat, **known))


def _pick(page: Any, chat: str, model: str) -> None:
    """Have a model answer from now on, in this chat whatever else is loaded later."""
    if chat:
        page.presets.change(chat, model=model)
    page.library.load(model)


def _keep(page: Any, chat: str, name: str) -> dict[str, Any]:
    page.presets.keep(chat, name)
    return _settings(page, chat)


def _delete(page: Any, chat: str, preset: str) -> dict[str, Any]:
    page.presets.delete(preset)
    return _settings(page, chat)


ACTS = {
    "settings": act(_settings, chat=str),
    "change_settings": act(_change, chat=str, change=dict),
    "pick_model": act(_pick, chat=str, model=str),
    "reset_settings": act(lambda page, chat: _settings(page, page.presets.reset(chat)), chat=str),
    "take_preset": act(
        lambda page, chat, preset: _settings(page, page.presets.take(chat, preset)), chat=str, preset=str
    ),
    "keep_preset": act(_keep, chat=str, name=str),
    "delete_preset": act(_delete, chat=str, preset=str),
}
