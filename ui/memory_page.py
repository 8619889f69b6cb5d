"""The page of memory: the block map, what each chat costs and shares, the plan with its reasons, and what can
be given back.

A frame is a picture of one moment, in plain data; the map comes only when it has changed. Drawn by
assets/memory/memory.js with blockmap.js and plot.js.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import time
from typing import Any

from app import AppError, MemoryPicture, PoolPicture, Services, free_memory, save_settings

from .acts import act, served
from .shell import part


class MemoryPage:
    """One object for all tabs."""

    def __init__(self, services: Services) -> None:
        self.services, self.runtime, self.chats = services, services.runtime, services.chats

    def build(self) -> None:
        """All of it is one part."""
        scripts = ("memory/blockmap", "memory/plot", "memory/memory")
        part("memory", *scripts, server_functions=served(ACTS, self), elem_classes=["leaf"])

    def frame(self, data: Any) -> dict[str, Any]:
        """What there is to see; the map only if it is another than the one that the page has `seen`."""
        runtime = self.runtime
        content: dict[str, Any] = {"status": dataclasses.asdict(runtime.status()), "backend": runtime.backend}
        try:
            picture = runtime.picture()
        except Exception as error:  # the engine has stopped: the page shows why
            picture, content["error"] = None, str(error)
        content |= {"free": free_memory(), "keep_free": runtime.keep_free, "plan": self._plan()}
        content["tiers"] = [dataclasses.asdict(tier) for tier in (picture.tiers if picture else ())]
        if not any(tier["name"] == "disk" for tier in content["tiers"]):  # no model has it
            content["tiers"].append(dataclasses.asdict(runtime.disk()))
        if picture is None:
            return content
        content["gives_back"] = picture.gives_back
        content["recent"] = recent(picture)
        pools = [self._pool(pool) for pool in picture.pools]
        seen = hashlib.blake2b(json.dumps(pools).encode(), digest_size=12).hexdigest()
        unchanged = isinstance(data, dict) and data.get("seen") == seen
        return {**content, "seen": seen} if unchanged else {**content, "seen": seen, "pools": pools}

    def _plan(self) -> dict[str, Any] | None:
        plan = self.runtime.plan
        if plan is None:
            return None
        names = ("block_size", "context_length", "kv_bytes", "weights_bytes", "activation_bytes", "reasons")
        return {name: getattr(plan, name) for name in names}

    def _pool(self, pool: PoolPicture) -> dict[str, Any]:
        titles = {chat.id: chat.title for chat in self.chats.list_chats()}
        groups = [
            {**dataclasses.asdict(group), "chat": group.name in titles, "title": titles.get(group.name, "")}
            for group in pool.groups
        ]
        return {
            "kind": pool.kind,
            "window": pool.window,
            "block_size": pool.block_size,
            "bytes": pool.bytes_per_block,
            "written": pool.num_written,
            "groups": groups,
            "states": base64.b64encode(pool.states).decode(),
            "owners": base64.b64encode(pool.owners).decode(),
            "sharers": base64.b64encode(pool.sharers).decode(),
        }

    # ---- acts

    def free_now(self) -> dict[str, Any]:
        """Let go of what no answer uses."""
        return {"freed": self.runtime.free_cached()}

    def keep_free(self, text: str) -> None:
        """Leave so many GB to other programs, from now on and at the next start."""
        try:
            wanted = float(text.replace(",", ".") or 0)
        except ValueError:
            raise AppError(f"“{text}” is not a number of GB.") from None
        self.runtime.adopt(save_settings(self.services.settings.home, {"keep_free": wanted or None}))


def recent(picture: MemoryPicture) -> list[list[int]]:
    """The seconds in which something was computed: [when, then what engine.Second has beside its age]."""
    now = int(time.time())
    rows = (dataclasses.astuple(second) for second in picture.recent)
    return [[now - age, *rest] for age, *rest in rows]


ACTS = {
    "free": act(MemoryPage.free_now),
    "clear_disk": act(lambda page: page.runtime.clear_disk()),
    "keep_free": act(MemoryPage.keep_free, gb=str),
    "load": act(lambda page: page.runtime.start()),
    "unload": act(lambda page: page.runtime.unload()),
}
