"""The app: what the program does around the engine: settings, models, chats, API, who may enter, commands.

Enter by the names below. Nothing is imported before a name is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .about.diagnostics import make_bundle as make_bundle
    from .about.licences import installed_licences as installed_licences, licence_texts as licence_texts
    from .access.browser import forget_page as forget_page, open_page as open_page
    from .access.instance import ask_to_end as ask_to_end, running as running
    from .access.keys import Keys as Keys
    from .api.api import api_routes as api_routes
    from .api.server import listen as listen
    from .chats.chat import ChatService as ChatService
    from .chats.comparison import Comparison as Comparison
    from .chats.records import Attachment as Attachment, ReplyStats as ReplyStats, Waiting as Waiting
    from .chats.views import ChatSummary as ChatSummary, ChatView as ChatView, MessageView as MessageView
    from .commands.anew import start_anew as start_anew
    from .commands.commands import guarded as guarded, main as main
    from .commands.doctor import versions as versions
    from .documents.attachments import FILE_LIMIT as FILE_LIMIT, MOST_FILES as MOST_FILES
    from .documents.uploads import all_routes as all_routes, described as described
    from .errors import (
        AlreadyRunning as AlreadyRunning,
        AppError as AppError,
        BadSettings as BadSettings,
        Outdated as Outdated,
        UnknownChat as UnknownChat,
    )
    from .memory.free_memory import (
        MemoryPicture as MemoryPicture,
        PoolPicture as PoolPicture,
        free_memory as free_memory,
    )
    from .memory.runtime import Runtime as Runtime
    from .models.ids import bare as bare
    from .models.library import Library as Library
    from .saved_settings import save_settings as save_settings
    from .services import Services as Services, build as build
    from .settings import (
        Home as Home,
        Settings as Settings,
        load_settings as load_settings,
        prepare_process as prepare_process,
    )

_NAMES = {
    "api.api": "api_routes",
    "documents.attachments": "FILE_LIMIT MOST_FILES",
    "access.browser": "forget_page open_page",
    "chats.chat": "ChatService",
    "chats.comparison": "Comparison",
    "commands.anew": "start_anew",
    "commands.commands": "guarded main",
    "about.diagnostics": "make_bundle",
    "commands.doctor": "versions",
    "about.licences": "installed_licences licence_texts",
    "errors": "AlreadyRunning AppError BadSettings Outdated UnknownChat",
    "access.instance": "ask_to_end running",
    "access.keys": "Keys",
    "models.ids": "bare",
    "models.library": "Library",
    "chats.records": "Attachment ReplyStats Waiting",
    "memory.runtime": "Runtime",
    "memory.free_memory": "MemoryPicture PoolPicture free_memory",
    "api.server": "listen",
    "services": "Services build",
    "settings": "Home Settings load_settings prepare_process",
    "documents.uploads": "all_routes described",
    "saved_settings": "save_settings",
    "chats.views": "ChatSummary ChatView MessageView",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'app' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
