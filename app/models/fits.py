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

from engine import Choice, DeviceFacts, EngineConfig, Fit, choose_variant, detect, read_speed

from .catalogue import Model

Badge = Literal["fits", "tight", "large", "unserved"]
LEAST = 5.0  # tokens a second that the engine calls usable
# what there is to say: room for the wanted chats, for fewer, for one shorter chat, it is not known for how
# long a one, or what the engine says
Case = Literal["room", "few", "short", "unknown", "said"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """How a variant would do: there is room for `chats` of `chat_length` tokens, and `wanted` are.
    `slow`: slower than one reads.
    """

    case: Case = "said"
    tokens_per_s: float = 0.0
    chats: int = 0
    chat_length: int = 0
    wanted: int = 0
    slow: bool = False


SAID = Outlook()


@dataclass(frozen=True, slots=True)
class VariantFit:
    """One variant here. `about`: its bytes are computed, not looked up."""

    format: str
    bytes: int
    about: bool
    badge: Badge
    reason: str
    outlook: Outlook


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

    def speed(self) -> float:
        """Bytes a second, read from memory."""
        with self._lock:
            self._speed = self._speed or read_speed(detect().cores)
            return self._speed


def fit_models(models: Sequence[Model], machine: Machine, config: EngineConfig) -> list[ModelFit]:
    """How each would do now."""
    device, speed = machine.device(), machine.speed()
    return [fit_model(model, device, speed, config) for model in models]


def fit_model(model: Model, device: DeviceFacts, speed: float, config: EngineConfig) -> ModelFit:
    """How one would do."""
    wanted = [(variant.format, variant.bytes) for variant in model.variants]
    choice: Choice = choose_variant(model.facts(), wanted, device, speed, config)
    fits = {fit.format: fit for fit in choice.fits}
    each = (_badge(model, fits[format], config) for format, _ in wanted)
    return ModelFit(tuple(each), choice.variant, choice.reason)


def _badge(model: Model, fit: Fit, config: EngineConfig) -> VariantFit:
    case: Case = "few"
    badge: Badge = "tight"
    if model.unserved or not fit.fits:
        badge, case = "unserved" if model.unserved else "large", "said"
    elif not fit.context_length:
        badge, case = "fits" if fit.usable else "tight", "unknown"
    elif fit.chats < 1:
        case = "short"
    elif fit.chats >= config.num_chats:
        badge, case = "fits" if fit.usable else "tight", "room"
    length = fit.context_length if case == "short" else fit.chat_length
    slow = badge == "tight" and fit.tokens_per_s < LEAST
    outlook = Outlook(case, fit.tokens_per_s, int(fit.chats), length, config.num_chats, slow)
    reason = fit.note if case == "said" else _sentence(outlook)
    return VariantFit(fit.format, fit.bytes, fit.about, badge, reason[:1].upper() + reason[1:], outlook)


def room_in_words(chats: int, length: int) -> str:
    """room for 3 chats of 8,192 tokens"""
    return f"room for {chats:,} {'chat' if chats == 1 else 'chats'} of {length:,} tokens"


def _sentence(outlook: Outlook) -> str:
    """For the command line; the page has words of its own."""
    digits = 0 if outlook.tokens_per_s >= 10 else 1
    speed = f"about {outlook.tokens_per_s:,.{digits}f} tokens/s"
    room = room_in_words(outlook.chats, outlook.chat_length)
    reason = {
        "room": f"{speed}, {room}.",
        "few": f"{speed}, {room}; {outlook.wanted} are wanted.",
        "short": f"{speed}, room for one chat of {outlook.chat_length:,} tokens at most.",
        "unknown": f"{speed}; how long its chats can be is known once it is downloaded.",
    }[outlook.case]
    return reason + (" That is slower than one reads." if outlook.slow else "")
