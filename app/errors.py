"""What can go wrong in the program around the engine, as sentences for the person who meets them.

One base for the layer; its text is shown as it is, in the page, in the API and on the command line. The
engine's own errors (engine.EngineError) are shown the same way.
"""

from __future__ import annotations


class AppError(Exception):
    """Base of every error the app raises on purpose."""


class BadSettings(AppError):
    """settings.toml or an environment variable holds what can't be used."""


class BadCatalogue(AppError):
    """models.toml is not what it must be."""


class ModelMissing(AppError):
    """A model that is known, or a path that was given, but whose file is not on this machine."""


class DamagedModel(AppError):
    """A model's file is there, but it is not the one the catalogue names."""


class LoadFailed(AppError):
    """A model that should have loaded did not."""


class PullFailed(AppError):
    """A model could not be fetched."""


class HubFailed(AppError):
    """The model hub could not be asked, or did not answer what was asked."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status  # of the answer; 0: there was none


class Unreadable(AppError):
    """A document whose text can't be had."""


class StoreError(AppError):
    """The chats could not be read or written."""


class Outdated(AppError):
    """A page asked for what is not there any more: it shows a state that has passed."""


class UnknownChat(AppError):
    """A chat that was deleted, or never was."""


class AlreadyRunning(AppError):
    """Another process works with this home folder."""

    def __init__(self, message: str, port: int | None = None) -> None:
        super().__init__(message)
        self.port = port  # None: it has no page yet
