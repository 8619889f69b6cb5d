"""Token ids and text: a Request in, a Stream of Deltas and one Finish out. Knows nothing of chats or pages.

Enter by the names below. Nothing is imported before a name is used, so that the deciding half (scheduler.py,
memory_plan.py and all they need) starts without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpoints.files import is_safe_name as is_safe_name, name_of as name_of
    from .config import (
        LEAST_CONTEXT as LEAST_CONTEXT,
        LIMITS as LIMITS,
        QUANTIZATIONS as QUANTIZATIONS,
        EngineConfig as EngineConfig,
    )
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
    from .fitting.abilities import DeviceFacts as DeviceFacts
    from .fitting.borrowed import BORROWED as BORROWED, can_borrow as can_borrow
    from .fitting.choice import (
        FORMATS as FORMATS,
        USABLE as USABLE,
        Choice as Choice,
        Fit as Fit,
        ModelShape as ModelShape,
        choose_variant as choose_variant,
        not_served as not_served,
    )
    from .fitting.device import (
        detect as detect,
        detect_processor as detect_processor,
        read_speed as read_speed,
    )
    from .fitting.inventory import Tensors as Tensors
    from .fitting.memory_plan import KindFacts as KindFacts, MemoryPlan as MemoryPlan, in_words as in_words
    from .inspection import (
        Inspection as Inspection,
        inspect_checkpoint as inspect_checkpoint,
        shape_of as shape_of,
    )
    from .llm import LLM as LLM
    from .models.families import GGUF_FAMILIES as GGUF_FAMILIES, HF_FAMILIES as HF_FAMILIES
    from .packed_cache import packed_file as packed_file
    from .running.give_back import share_one_heap as share_one_heap, trim as trim
    from .scheduling.pool_picture import (
        Group as Group,
        MemoryPicture as MemoryPicture,
        PoolPicture as PoolPicture,
    )
    from .scheduling.recent import Second as Second
    from .scoring import Perplexity as Perplexity, perplexity as perplexity
    from .tiers.opening import disk_picture as disk_picture
    from .tiers.picture import TierPicture as TierPicture
    from .tiers.store import BlockStore as BlockStore
    from .types import (
        THINKS as THINKS,
        THOUGHT as THOUGHT,
        Backend as Backend,
        Delta as Delta,
        EngineStats as EngineStats,
        Estimate as Estimate,
        Finish as Finish,
        FinishReason as FinishReason,
        Message as Message,
        Priority as Priority,
        Request as Request,
        SamplingParams as SamplingParams,
        Split as Split,
        Stream as Stream,
        Usage as Usage,
    )

_NAMES = {
    "errors": "EngineError BadCheckpoint UnsupportedModel ModelTooLarge BadRequest PromptTooLong "
    "TemplateError EngineStopped",
    "types": "THINKS THOUGHT Split FinishReason Priority SamplingParams Message Request Usage Delta Finish "
    "Stream Backend EngineStats Estimate",
    "config": "LEAST_CONTEXT LIMITS EngineConfig QUANTIZATIONS",
    "checkpoints.files": "is_safe_name name_of",
    "fitting.memory_plan": "KindFacts MemoryPlan in_words",
    "fitting.abilities": "DeviceFacts",
    "fitting.borrowed": "BORROWED can_borrow",
    "fitting.choice": "FORMATS USABLE Choice Fit ModelShape choose_variant not_served",
    "fitting.device": "detect detect_processor read_speed",
    "inspection": "Inspection inspect_checkpoint shape_of",
    "fitting.inventory": "Tensors",
    "llm": "LLM",
    "models.families": "GGUF_FAMILIES HF_FAMILIES",
    "packed_cache": "packed_file",
    "running.give_back": "share_one_heap trim",
    "scheduling.pool_picture": "Group MemoryPicture PoolPicture",
    "scheduling.recent": "Second",
    "scoring": "Perplexity perplexity",
    "tiers.opening": "disk_picture",
    "tiers.picture": "TierPicture",
    "tiers.store": "BlockStore",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
