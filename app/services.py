"""Everything the program is made of, put together in one place.

None of it is global: what needs another part was given it here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .access.browser import forget_page
from .access.guard import Guard
from .access.instance import Instance
from .access.keys import Keys
from .chats.chat import ChatService
from .chats.presets import Presets
from .chats.shelf import Shelf
from .chats.store import ChatStore
from .memory.loading import Loader, load_llm
from .memory.runtime import Runtime
from .models.catalogue import read_catalogue
from .models.library import Library
from .models.model_store import ModelStore
from .settings import Settings, use_proxy


@dataclass(frozen=True, slots=True)
class ApiServices:
    """What can answer, without chats: enough for the API alone. Several may share a home folder."""

    settings: Settings
    keys: Keys
    runtime: Runtime
    guard: Guard

    def close(self) -> None:
        """Cancel what runs and let go of the model."""
        self.runtime.close()


@dataclass(frozen=True, slots=True)
class Services(ApiServices):
    """All of it. Only one process may have this for a home folder."""

    instance: Instance
    store: ChatStore
    chats: ChatService
    shelf: Shelf
    presets: Presets
    library: Library

    def close(self) -> None:
        """End the answers, keeping what there is, then let go of everything."""
        self.library.close()
        self.shelf.close()
        self.chats.close()
        self.runtime.close()
        self.instance.close()


def build_api(settings: Settings, load: Loader = load_llm) -> ApiServices:
    """The API's services; the model is not loaded before `runtime.start()`.

    Raises AppError for a model that nobody knows; one that is only missing may still come.
    """
    use_proxy(settings)
    home, keys = settings.home, Keys(settings.home)
    models = ModelStore(home, read_catalogue())
    models.check(settings.model)
    runtime = Runtime(settings, models, keys.prefix_secret, load)
    guard = Guard(keys, settings.port, on_enter=lambda: forget_page(home))
    return ApiServices(settings, keys, runtime, guard)


def build(settings: Settings, load: Loader = load_llm) -> Services:
    """All services. Raises AlreadyRunning if another process has the home folder."""
    instance = Instance(settings.home)
    try:
        api = build_api(settings, load)
        store = ChatStore(settings.home / "chats.db")
        chats = ChatService(store, api.runtime, settings)
        shelf = Shelf(chats, store)
        presets = Presets(chats, store, ModelStore(settings.home, read_catalogue()).known)
        shelf.start()
        library = Library(settings, ModelStore(settings.home, read_catalogue()), api.runtime)
    except BaseException:
        instance.close()
        raise
    return Services(
        settings, api.keys, api.runtime, api.guard, instance, store, chats, shelf, presets, library
    )
