"""What can go wrong in the engine, as sentences for the person who meets them.

They say what happened, the two numbers, and what to do. One base for the layer. `assert` is for our own bugs;
these are for the world. Standard library only.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of every error the engine raises on purpose; its text is shown as it is."""


class BadCheckpoint(EngineError):
    """A model file is damaged, cut short or not what it says it is."""


class UnsupportedModel(EngineError):
    """A sound model file whose architecture, format or tokenizer this program does not serve."""


class ModelTooLarge(EngineError):
    """The weights and the smallest useful pool do not fit the memory that is free."""


class BadRequest(EngineError):
    """A request that is wrong in itself: empty, or a parameter outside its range."""


class PromptTooLong(BadRequest):
    """Prompt and answer do not fit the context or the pool."""


class TemplateError(EngineError):
    """The model's chat template failed, took too long or produced too much."""


class NotFinite(EngineError):
    """The model computed no number: its weights or a kernel are broken."""


class DeviceFull(EngineError):
    """The device had not enough memory left for a step."""


class DeviceLost(EngineError):
    """The device failed; this process gets no right answer out of it any more."""


class EngineStopped(EngineError):
    """The engine is closed, or a fault stopped it; nothing new is taken."""
