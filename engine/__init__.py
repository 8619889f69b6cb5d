"""Token ids and text: a Request in, a Stream of Deltas and one Finish out. Knows nothing of chats or pages.

Enter by the names below. Nothing is imported before a name is used, so that the deciding half (scheduler.py,
memory_plan.py and all they need) starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import EngineConfig as EngineConfig
    from .device import DeviceFacts as DeviceFacts, detect as detect
    from .errors import (
        BadCheckpoint as BadCheckpoint,
        BadRequest as BadRequest,
        EngineError as EngineError,
        EngineStopped as EngineStopped,
        ModelTooLarge as ModelTooLarge,
        PromptTooLong as PromptTooLong,
        TemplateError as TemplateError,
        UnsupportedModel as UnsupportedModel,
    )
    from .llm import LLM as LLM
    from .memory_plan import MemoryPlan as MemoryPlan
    from .types import (
        Backend as Backend,
        Delta as Delta,
        EngineStats as EngineStats,
        Finish as Finish,
        FinishReason as FinishReason,
        Message as Message,
        Priority as Priority,
        Request as Request,
        SamplingParams as SamplingParams,
        Stream as Stream,
        Usage as Usage,
    )

_NAMES = {
    "errors": "EngineError BadCheckpoint UnsupportedModel ModelTooLarge BadRequest PromptTooLong "
    "TemplateError EngineStopped",
    "types": "FinishReason Priority SamplingParams Message Request Usage Delta Finish Stream Backend "
    "EngineStats",
    "config": "EngineConfig",
    "memory_plan": "MemoryPlan",
    "device": "DeviceFacts detect",
    "llm": "LLM",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
