"""The app: what the program does around the engine: settings, models, chats, API, who may enter, commands.

Enter by the names below. Nothing is imported before a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import api_routes as api_routes
    from .browser import forget_page as forget_page, open_page as open_page
    from .chat import ChatService as ChatService
    from .commands import guarded as guarded, main as main
    from .errors import (
        AlreadyRunning as AlreadyRunning,
        AppError as AppError,
        UnknownChat as UnknownChat,
    )
    from .instance import running as running
    from .keys import Keys as Keys
    from .records import ReplyStats as ReplyStats
    from .runtime import Runtime as Runtime, RuntimeStatus as RuntimeStatus
    from .server import listen as listen
    from .services import Services as Services, build as build
    from .settings import (
        Home as Home,
        Settings as Settings,
        load_settings as load_settings,
        prepare_process as prepare_process,
    )
    from .views import ChatSummary as ChatSummary, ChatView as ChatView, MessageView as MessageView

_NAMES = {
    "api": "api_routes",
    "browser": "forget_page open_page",
    "chat": "ChatService",
    "commands": "guarded main",
    "errors": "AlreadyRunning AppError UnknownChat",
    "instance": "running",
    "keys": "Keys",
    "records": "ReplyStats",
    "runtime": "Runtime RuntimeStatus",
    "server": "listen",
    "services": "Services build",
    "settings": "Home Settings load_settings prepare_process",
    "views": "ChatSummary ChatView MessageView",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'app' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
