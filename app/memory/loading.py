"""A model's way from a file into memory: which loader does it, what is said meanwhile, what can go wrong.

The rest of the program sees the engine as a LoadedModel only; tests give a loader of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine import (
    EngineError,
    EngineStats,
    Estimate,
    MemoryPicture,
    MemoryPlan,
    Request,
    Stream,
)

from ..errors import AppError, LoadFailed
from ..faults import explain
from ..models.model_store import ModelFile, ModelStore
from ..progress import Progress
from ..settings import Settings

# what a load goes through -> (in words, where it begins and ends on the way from 0 to 1)
STAGES = {
    "checking": ("its file is checked", 0.0, 0.1),
    "card": ("checking once that the graphics card computes rightly, up to a minute", 0.1, 0.1),
    "tokenizer": ("reading its vocabulary", 0.1, 0.2),
    "weights": ("reading its weights", 0.2, 0.9),
    "warm-up": ("warming up", 0.9, 1.0),
}


class LoadedModel(Protocol):
    """What a loader gives: an engine.LLM, or whatever stands in for it."""

    @property
    def context_length(self) -> int: ...
    @property
    def plan(self) -> MemoryPlan: ...
    @property
    def backend(self) -> str: ...
    @property
    def caution(self) -> str: ...
    def submit(self, request: Request) -> Stream: ...
    def estimate(self, request: Request) -> Estimate: ...
    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]: ...
    def stats(self) -> EngineStats: ...
    def picture(self) -> MemoryPicture: ...
    def free_cached(self) -> int: ...
    def keep_free(self, num_bytes: int) -> None: ...
    def forget(self, chat: str) -> None: ...
    def clear_disk(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Later:
    """A request that is written when its model is in memory: what it holds depends on what fits."""

    model: str  # as in Request
    write: Callable[[LoadedModel], Request]


Loader = Callable[[ModelFile, Settings, bytes, Progress], LoadedModel]


def load_llm(file: ModelFile, settings: Settings, secret: bytes, progress: Progress) -> LoadedModel:
    """The real loader; torch and the kernels are imported here and nowhere sooner."""
    from engine import LLM

    packed = settings.home.packed if settings.engine.packed_cache else None
    return LLM.load(
        file.path,
        settings.engine,
        name=file.name,
        secret=secret,
        packed=packed,
        blocks=settings.home.blocks,
        disk_quota=settings.cache_bytes,
        on_progress=progress,
    )


def find_and_load(
    settings: Settings,
    models: ModelStore,
    secret: bytes,
    progress: Progress,
    load: Loader = load_llm,
    chosen: str = "",
) -> LoadedModel:
    """The model that was chosen, else that of the settings. Raises AppError or EngineError, whatever goes
    wrong.
    """
    try:
        return load(models.find(chosen or settings.model, progress), settings, secret, progress)
    except Exception as error:
        if isinstance(error, AppError | EngineError):
            forget_frames(error)
            raise
        if isinstance(error, MemoryError):
            words = "The memory ran out while the model was loaded. Close other programs."
        else:
            words = explain("The model could not be loaded", error)  # with its frames, into the log
        forget_frames(error)
        raise LoadFailed(words) from error


def forget_frames(error: BaseException | None) -> None:
    """Let go of the functions that an error came through, and with them of what they held: weights would stay
    in memory for as long as it is talked of.
    """
    while error:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
