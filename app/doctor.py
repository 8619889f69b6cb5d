"""`octavo doctor`: what a person, or someone who helps them, wants to know first. It holds no secret.

The model is really loaded, so its memory plan is the true one and a model that can't answer is found.
"""

from __future__ import annotations

import dataclasses
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engine import EngineError, detect

from .catalogue import read_catalogue
from .errors import AppError
from .model_store import ModelStore, Progress, in_words
from .runtime import Loader, load_llm
from .settings import Settings, program_version

PACKAGES = ("torch", "numba", "numpy", "tokenizers", "gradio", "starlette", "uvicorn", "sqlite-utils", "pip")


def examine(settings: Settings, progress: Progress, load: Loader = load_llm) -> dict[str, Any]:
    """All findings; under "problem" what keeps the model from answering, or ""."""
    catalogue = read_catalogue()
    models = ModelStore(settings.home, catalogue)
    findings: dict[str, Any] = {
        "home": str(settings.home.path),
        "model": models.name(settings.model),
        "models": {model.id: models.state(model) for model in catalogue.models},
        "device": dataclasses.asdict(detect()),
        "memory_plan": None,
        "problem": "",
        "versions": {
            "octavo": program_version(),
            "python": platform.python_version(),
            "system": platform.platform(),
            "sqlite": sqlite3.sqlite_version,
            **{name: _version(name) for name in PACKAGES},
        },
    }
    try:
        model = load(models.find(settings.model, progress), settings, b"", progress)
    except (AppError, EngineError) as error:
        findings["problem"] = str(error)
    else:
        findings["memory_plan"] = dataclasses.asdict(model.plan)
        model.close()
    return findings


def show(findings: dict[str, Any]) -> None:
    """The findings for people: a block for each, sizes in words, the reasons one below the other."""
    for name, value in findings.items():
        if isinstance(value, dict):
            print(f"{name.replace('_', ' ')}:")
            for key, each in value.items():
                _line(f"  {key.replace('_', ' ')}", each)
        elif value:
            _line(name, value)


def _line(name: str, value: Any) -> None:
    if isinstance(value, list | tuple):
        for text in value:
            if isinstance(text, str):
                print(f"    {text}")
    elif isinstance(value, int) and ("bytes" in name or "memory" in name):
        print(f"{name.removesuffix(' bytes')}: {in_words(value)}")
    else:
        print(f"{name}: {value}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
