"""The app: what the program does around the engine: settings, models, chats, API, who may enter, commands.

Enter by the names below, which include what pages need of the engine. Nothing is imported before a name is
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    ".api": "api_routes",
    ".browser": "open_page",
    ".chat": "ChatService",
    ".commands": "main",
    ".errors": "AlreadyRunning AppError StoreError UnknownChat",
    ".guard": "Guard",
    ".instance": "Instance running_port",
    ".keys": "Keys",
    ".model_store": "ModelStore",
    ".records": "ReplyStats",
    ".runtime": "Runtime RuntimeStatus",
    ".server": "listen",
    ".services": "ApiServices Services build build_api",
    ".views": "ChatSummary ChatView MessageView",
    ".settings": "Home Settings load_settings prepare_process program_version",
    "engine": "EngineError EngineStats FinishReason SamplingParams",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'app' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
