"""The engine: token ids and text. Gives a Stream of Deltas for a Request; knows nothing of chats, files of
chats or pages.

Enter by the names below. Nothing is imported before a name is used, so that the deciding half (types,
errors, config, memory_plan, sequence, block_pool, scheduler) starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "errors": "EngineError BadCheckpoint UnsupportedModel ModelTooLarge BadRequest PromptTooLong "
    "TemplateError EngineStopped",
    "types": "FinishReason Priority SamplingParams Message Request Usage Delta Finish Stream Backend "
    "EngineStats",
    "config": "EngineConfig",
    "memory_plan": "KindFacts MemoryFacts ModelFacts MemoryPlan plan_memory",
    "device": "DeviceFacts detect",
    "llm": "LLM",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
