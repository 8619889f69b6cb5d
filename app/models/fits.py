"""Would a model run here, and how well: the engine's choice as a badge that a person reads at a glance.

    fits     room for the wanted chats at a speed one can read along with
    tight    it runs, but slowly, or with room for fewer or shorter chats
    large    it does not fit into the memory that is free now
    unserved no machine makes it answer
Decided anew whenever it is asked: other programs take memory and give it back. The memory's speed is
measured once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine import (
    USABLE,
    Choice,
    DeviceFacts,
    EngineConfig,
    Fit,
    ModelShape,
    choose_variant,
    detect,
    detect_processor,
    read_speed,
)

from .catalogue import Model

Badge = Literal["fits", "tight", "large", "unserved"]


@dataclass(frozen=True, slots=True)
class VariantFit:
    """One variant here. `about`: its bytes are computed, not looked up."""

    format: str
    bytes: int
    about: bool
    badge: Badge
    reason: str


@dataclass(frozen=True, slots=True)
class ModelFit:
    """All variants of a model, in its order, and which to take (None: none fits), with the reason."""

    variants: tuple[VariantFit, ...]
    choice: str | None
    reason: str


class Machine:
    """What this machine is. Any thread may call."""

    def __init__(self) -> None:
        self._lock, self._speed = threading.Lock(), 0.0

    def device(self) -> DeviceFacts:
        """With the memory that is free now."""
        return detect()

    def device_for(self, borrowed: bool) -> DeviceFacts:
        """The same for one model: what transformers' code computes runs on the processor."""
        return detect_processor() if borrowed else self.device()

    def speed(self) -> float:
        """Bytes a second, read from memory."""
        with self._lock:
            self._speed = self._speed or read_speed(detect().cores)
            return self._speed


def fit_models(models: Sequence[Model], machine: Machine, config: EngineConfig) -> list[ModelFit]:
    """How each would do now."""
    speed = machine.speed()
    kinds = [bool(model.borrowed) for model in models]
    devices = {borrowed: machine.device_for(borrowed) for borrowed in set(kinds)}
    return [fit_model(model, devices[kind], speed, config) for model, kind in zip(models, kinds, strict=True)]


def fit_model(model: Model, device: DeviceFacts, speed: float, config: EngineConfig) -> ModelFit:
    """How one would do."""
    wanted = [(variant.format, variant.bytes) for variant in model.variants]
    choice: Choice = choose_variant(model.facts(), wanted, device, speed, config)
    fits = {fit.format: fit for fit in choice.fits}
    each = (_badge(fits[format], config, bool(model.unserved)) for format, _ in wanted)
    return ModelFit(tuple(each), choice.variant, choice.reason)


def fit_shape(
    shape: ModelShape, file: tuple[str, int], device: DeviceFacts, speed: float, config: EngineConfig
) -> VariantFit:
    """How a model would do of which there is one file, (format, bytes)."""
    return _badge(choose_variant(shape, [file], device, speed, config).fits[0], config)


def _badge(fit: Fit, config: EngineConfig, is_unserved: bool = False) -> VariantFit:
    badge: Badge = "fits" if fit.usable else "tight"
    speed = f"{fit.tokens_per_s:,.{0 if fit.tokens_per_s >= 10 else 1}f}"
    room = room_in_words(int(fit.chats), fit.chat_length)
    if is_unserved or not fit.fits:
        badge, reason = "unserved" if is_unserved else "large", fit.note
    elif not fit.context_length:
        reason = f"About {speed} tokens/s; how long its chats can be is known once it is downloaded."
    elif fit.chats < 1:
        badge, length = "tight", fit.context_length
        reason = f"About {speed} tokens/s, room for one chat of {length:,} tokens at most."
    elif fit.chats < config.num_chats:
        badge, reason = "tight", f"About {speed} tokens/s, {room}; {config.num_chats} are wanted."
    else:
        reason = f"About {speed} tokens/s, {room}."
    if badge == "tight" and fit.tokens_per_s < USABLE:
        reason += " That is slower than one reads."
    if fit.fits and fit.note:
        reason += f" {fit.note}"
    return VariantFit(fit.format, fit.bytes, fit.about, badge, reason)


def room_in_words(chats: int, length: int) -> str:
    """room for 3 chats of 8,192 tokens"""
    return f"room for {chats:,} {'chat' if chats == 1 else 'chats'} of {length:,} tokens"
