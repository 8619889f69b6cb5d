"""Which model to begin with on this machine: one that fits, anyone may download, and is made for talking.

Pure, but for what is passed in. An all-round model: good for the most purposes, as its maker says; of those
the most parameters, tables that are only looked into aside, and of these the best quality, with room for a
few chats at a comfortable speed, and no endless download. Where there is none, or the hub may not be asked,
it is the starter, which comes from the package index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine import USABLE, DeviceFacts, EngineConfig, Fit, choose_variant, in_words

from .catalogue import Model

COMFORTABLE = 10.0  # tokens a second: no waiting for the next word
CHATS = 2  # that there must be room for, side by side
LARGEST = 20 * 10**9  # bytes: an hour's download at 45 Mbit/s
FREE = ("Apache-2.0", "MIT")  # licences under which no maker wants to be asked first


@dataclass(frozen=True, slots=True)
class Proposal:
    """`bytes` of what would be downloaded, about."""

    id: str
    name: str
    format: str
    bytes: int
    reason: str


def propose(
    models: Sequence[Model],
    device: DeviceFacts,
    speed: float,
    config: EngineConfig = EngineConfig(),
    room: int = LARGEST,
    offline: bool = False,
) -> Proposal:
    """The model to begin with, and why. There must be one that comes in wheels. `room`: bytes of the disk."""
    if not offline and (best := largest(models, device, speed, config, room)):
        return best
    free, disk = in_words(device.memory_available), in_words(room)
    none = f"nothing larger suits this machine with {free} of memory and {disk} of disk free"
    why = "the hub is not to be asked" if offline else none
    return starter(models, f"The starter model: {why}. It is small, and knows little.")


def largest(
    models: Sequence[Model], device: DeviceFacts, speed: float, config: EngineConfig, room: int
) -> Proposal | None:
    """The same where it is an all-round model to download."""
    free = in_words(device.memory_available)
    best: tuple[int, int, Proposal] | None = None
    for model in models:
        if model.licence not in FREE or "chat" not in model.purposes or model.unserved:
            continue
        wanted = [(variant.format, variant.bytes) for variant in model.variants]
        fits = choose_variant(model.facts(), wanted, device, speed, config).fits  # the best quality first
        if fit := next((fit for fit in fits if _is_good(fit) and fit.bytes <= room), None):
            proposal = Proposal(model.id, model.name, fit.format, fit.bytes, _reason(fit, free))
            rank = len(model.purposes), model.parameters - model.facts().rows
            best = max((*rank, proposal), best or (0, 0, proposal), key=lambda each: each[:2])
    return best and best[2]


def _reason(fit: Fit, free: str) -> str:
    """For who has never heard of tokens. That it suits is not said: the page of models may call it tight."""
    return (
        f"The largest all-round model that runs well on this machine with {free} of memory free: "
        f"about {fit.tokens_per_s:,.0f} tokens/s (people read about {USABLE:.0f}), and room for "
        f"{int(fit.chats):,} long chats at once."
    )


def _is_good(fit: Fit) -> bool:
    return fit.chats >= CHATS and fit.tokens_per_s >= COMFORTABLE and fit.bytes <= LARGEST


def starter(models: Sequence[Model], reason: str) -> Proposal:
    """The smallest model that comes in wheels."""
    model = min((model for model in models if model.fetched), key=lambda model: model.parameters)
    assert model.fetched
    return Proposal(model.id, model.name, model.fetched.format, model.fetched.bytes, reason)
