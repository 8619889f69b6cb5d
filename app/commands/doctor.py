"""`octavo doctor`: what a person, or someone who helps them, wants to know first. It holds no secret.

The model is really loaded, so its memory plan is the true one and a model that can't answer is found.
"""

from __future__ import annotations

import dataclasses
import platform
import re
import sqlite3
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engine import EngineError, detect, disk_picture, in_words

from ..errors import AppError
from ..memory.loading import Loader, find_and_load, load_llm
from ..models.catalogue import read_catalogue
from ..models.model_rows import own_row
from ..models.model_store import ModelStore
from ..progress import Progress
from ..settings import Settings, program_version

PACKAGES = ("torch", "numba", "numpy", "tokenizers", "gradio", "starlette", "uvicorn", "sqlite-utils", "pip")
SHOWN = ("home", "model", "models", "device", "memory_plan", "disk_cache", "versions")
ELSEWHERE = ("on the hub", "not served")  # states of models of which nothing is here
SIZE = re.compile("bytes|memory")
# a finding's name -> how a person is told, where the name alone does not do
LABELS = {
    "unified": "memory shared with other programs",
    "kv_bytes": "pool of blocks",
    "taken_bytes": "taken",
    "most_bytes": "may take",
    "weights_bytes": "weights",
    "activation_bytes": "buffers",
}


def machine_facts(settings: Settings) -> dict[str, Any]:
    """What is known without loading a model."""
    return {
        "home": str(settings.home.path),
        "model": ModelStore(settings.home, read_catalogue()).id_of(settings.model),
        "device": dataclasses.asdict(detect()),
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of the program, and of all that it stands on."""
    return {
        "octavo": program_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        **{name: _version(name) for name in PACKAGES},
    }


def examine(settings: Settings, progress: Progress, load: Loader = load_llm) -> dict[str, Any]:
    """All findings; "problem" is what keeps the model from answering, or ""; "load_s" how long it took."""
    catalogue = read_catalogue()
    models = ModelStore(settings.home, catalogue)
    findings: dict[str, Any] = {
        "home": str(settings.home.path),
        "model": models.id_of(settings.model),
        "models": {},
        "device": dataclasses.asdict(detect(look_for_cards=True, check=True)),
        "memory_plan": None,
        "disk_cache": None,
        "problem": "",
        "load_s": None,
        "versions": versions(),
    }
    started = time.monotonic()
    try:
        model = find_and_load(settings, models, b"", progress, load)
    except (AppError, EngineError) as error:
        findings["problem"] = str(error)
    else:
        findings["load_s"] = round(time.monotonic() - started, 1)
        findings["memory_plan"] = dataclasses.asdict(model.plan)
        model.close()
    blocks = settings.home.blocks
    disk = disk_picture(blocks, settings.cache_bytes)
    findings["disk_cache"] = {
        "folder": str(blocks),
        "taken_bytes": disk.num_bytes,
        "most_bytes": disk.most,
        "blocks": disk.num_blocks,
    }
    # only now: loading has checked the file
    findings["models"] = _states(models)
    return findings


def _states(store: ModelStore) -> dict[str, str]:
    """Of all that comes in wheels or is here: the catalogue's, found on the hub, the person's own."""
    listed, offered = store.catalogue.models, store.editions()
    here = [model for model in listed if model.fetched or store.state(model) not in ELSEWHERE]
    found = [each for each in store.installed() if not store.catalogue.get(each.record.id)]
    own = [each for each in store.own.entries().values() if each.path and each.id not in offered]
    return {
        **{model.id: store.state(model) for model in here},
        **{each.key: "ready" if each.whole else "damaged" for each in found},
        **{entry.id: own_row(entry).state for entry in own},
    }


def show(findings: dict[str, Any]) -> None:
    """The findings for people: whether the model answers, then a block for each, the reasons last."""
    problem, took = findings["problem"], findings["load_s"]
    print(f"The model does not answer: {problem}" if problem else f"The model answers: loaded in {took} s.")
    for name in SHOWN:
        value = findings[name]
        if isinstance(value, dict):
            print(f"{name.replace('_', ' ')}:")
            for key, each in value.items():
                _line(key if name == "models" else _label(key), each, bool(SIZE.search(key)))
        elif value:
            print(f"{name}: {value}")


def _label(key: str) -> str:
    return LABELS.get(key) or key.replace("_", " ")


def _line(label: str, value: Any, is_size: bool) -> None:
    if isinstance(value, list | tuple):
        for text in value:
            if isinstance(text, str):
                print(f"    {text}")
        return
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, int):
        value = in_words(value) if is_size else f"{value:,}"
    print(f"  {label}: {value}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
