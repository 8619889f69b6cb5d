"""The page of settings: how the page looks (the browser's affair), settings.toml, the API's key, what this
program is, and how to end it.

A field is a row of FIELDS. It is written to settings.toml when it is changed, by the rules for a file that
was written by hand, and says when it counts. Drawn by assets/settings/settings.js.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from app import (
    AppError,
    BadSettings,
    Services,
    Settings,
    ask_to_end,
    installed_licences,
    licence_texts,
    load_settings,
    make_bundle,
    save_settings,
    versions,
)

from .acts import act
from .shell import leaf

LONGEST_NUMBER = 30  # characters
GROUPED = {  # kind -> how a number stands on the page: 8,192 and 1,440.5, but 0,125 is an eighth
    "whole": re.compile(r"\d{1,3}([\s,.]\d{3})+"),
    "number": re.compile(r"[1-9]\d{0,2}([\s,]\d{3})+(\.\d*)?"),
}
Kind = Literal["text", "long", "whole", "number", "switch"]
When = Literal["now", "load", "start"]


@dataclass(frozen=True, slots=True)
class Field:
    """How a setting is written, and from when on it counts. `group` is the card that it stands in."""

    group: str
    kind: Kind
    when: When


# as in settings.toml -> its field, in the order of the page
FIELDS = {
    "system_prompt": Field("chat", "long", "start"),
    "context_length": Field("chat", "whole", "load"),
    "num_chats": Field("chat", "whole", "load"),
    "keep_alive": Field("memory", "number", "now"),
    "keep_free": Field("memory", "number", "now"),
    "cache_quota": Field("memory", "whole", "load"),
    "engine.threads": Field("memory", "whole", "load"),
    "models_quota": Field("memory", "whole", "start"),
    "offline": Field("net", "switch", "start"),
    "hub": Field("net", "text", "start"),
    "proxy": Field("net", "text", "start"),
    "api": Field("api", "switch", "start"),
    "port": Field("api", "whole", "start"),
}


class SettingsPage:
    """One object for all tabs."""

    def __init__(self, services: Services, restart: Callable[[], None]) -> None:
        self.services, self.home, self.restart = services, services.settings.home, restart
        self.at_start = self._written()  # --port and what is said of one model count before it

    def build(self) -> None:
        """All of it is one part."""
        leaf("settings", ACTS, self)

    def frame(self, data: Any) -> dict[str, Any]:
        """What settings.toml says now, and what runs."""
        running, runtime = self.services.settings, self.services.runtime
        content: dict[str, Any] = {"home": str(self.home.path), "port": running.port, "api_on": running.api}
        try:
            saved = load_settings(self.home, by_model=False)
        except BadSettings as error:  # somebody is writing it by hand
            saved, content["error"] = running, str(error)
        content["fields"] = [
            {**asdict(field), "name": name, "value": shown(saved, name), "waits": self._waits(saved, name)}
            for name, field in FIELDS.items()
        ]
        content["about"] = {**versions(), "kernels": runtime.backend, "model": runtime.status().name}
        return content

    def _written(self) -> Settings:
        try:
            return load_settings(self.home, by_model=False)
        except BadSettings:  # the next start says so
            return self.services.settings

    def _waits(self, saved: Settings, name: str) -> bool:
        """Whether it is another than what runs, and counts only after a start."""
        return FIELDS[name].when == "start" and value(saved, name) != value(self.at_start, name)

    # ---- acts

    def start_again(self) -> dict[str, str]:
        """End, to be started again; the answer has a link to where the page will be, if that is elsewhere."""
        port = self._written().port
        self.restart()
        if port == self.at_start.port or self.at_start.port != self.services.settings.port:
            return {}
        return {"link": self.services.keys.link(port)}

    def change(self, name: str, text: str) -> dict[str, Any]:
        """Write one setting; "" is as usual. The answer has its value, or the sentence for its field."""
        if name not in FIELDS:
            raise AppError(f"{name} is not a setting of this page.")
        saved = save_settings(self.home, {name: parsed(FIELDS[name].kind, name, text)})
        self.services.runtime.adopt(saved)
        self.services.library.adopt(saved)
        written = self._written()
        return {"value": shown(written, name), "waits": self._waits(written, name)}

    def diagnostics(self) -> dict[str, Any]:
        """The zip file for whoever helps, as text that the page makes a file of."""
        services = self.services
        packed = make_bundle(services.settings, services.keys, services.runtime)
        return {"name": "octavo-diagnostics.zip", "data": base64.b64encode(packed).decode()}

    def licence(self, name: str) -> dict[str, Any]:
        """The licence texts that a package brings along."""
        if name not in {each.name for each in installed_licences()}:
            raise AppError(f"There is no package {name}.")
        return {"text": licence_texts(name)}


def value(settings: Settings, name: str) -> Any:
    """A setting by its name in the file."""
    table, _, key = name.rpartition(".")
    holder = getattr(settings, table) if table else settings
    return getattr(holder, key) if hasattr(holder, key) else getattr(settings.engine, key)


def shown(settings: Settings, name: str) -> str:
    """As it stands in its field; "" where nothing was set or nothing is limited."""
    found = value(settings, name)
    if isinstance(found, bool):
        return "on" if found else ""
    return "" if found is None else f"{found:g}" if isinstance(found, float) else str(found)


def parsed(kind: Kind, name: str, text: str) -> Any:
    """What was written in a field, for the file; None is as usual. Raises AppError."""
    if kind == "switch":
        return text == "on"
    text = text.strip()
    if kind in ("text", "long") or not text:
        return text or None
    name = name.rpartition(".")[2]
    if len(text) > LONGEST_NUMBER:
        raise AppError(f"{name} has {len(text):,} characters; it may have {LONGEST_NUMBER}.")
    if GROUPED[kind].fullmatch(text):
        text = re.sub(r"\D" if kind == "whole" else r"[\s,]", "", text)
    try:
        return int(text) if kind == "whole" else float(text.replace(",", "."))
    except ValueError:
        word = "a whole number" if kind == "whole" else "a number"
        raise AppError(f"{name} is {text!r}; it must be {word}.") from None


ACTS = {
    "change": act(SettingsPage.change, name=str, text=str),
    "key": act(lambda page: {"key": page.services.keys.api_key}),
    "renew": act(lambda page: {"key": page.services.keys.renew_api_key()}),
    "licences": act(lambda page: {"licences": [asdict(each) for each in installed_licences()]}),
    "licence": act(SettingsPage.licence, name=str),
    "diagnostics": act(SettingsPage.diagnostics),
    "restart": act(SettingsPage.start_again),
    "quit": act(lambda page: ask_to_end(page.home)),
}
