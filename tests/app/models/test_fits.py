"""The badge of a variant: fits, tight, too large, not served, each with the reason that goes with it."""

from __future__ import annotations

import dataclasses

import pytest

from app.models.catalogue import read_catalogue
from app.models.fits import Machine, fit_model, fit_models, room_in_words
from engine import DeviceFacts, EngineConfig

CATALOGUE = read_catalogue()


def machine(gib: float) -> DeviceFacts:
    size = int(gib * 2**30)
    return DeviceFacts("A machine", "cpu", size, size, 8, True, "")


@pytest.mark.parametrize(
    ("id", "gib", "speed", "badge", "reason"),
    [
        ("qwen3-0.6b", 32, 60e9, "fits", "tokens/s, room for 17 chats of 8,192 tokens."),
        ("qwen3-0.6b", 8, 60e9, "tight", "tokens/s, room for 4 chats of 8,192 tokens; 8 are wanted."),
        ("qwen3-0.6b", 32, 2e9, "tight", "That is slower than one reads."),
        ("qwen3-14b", 8, 60e9, "large", "can be used now. Choose a smaller model."),
    ],
)
def test_badges(id: str, gib: float, speed: float, badge: str, reason: str) -> None:
    fit = fit_model(CATALOGUE[id], machine(gib), speed, EngineConfig())
    first = fit.variants[0]
    assert (first.format, first.badge) == (CATALOGUE[id].variants[0].format, badge)
    assert first.reason.endswith(reason) and first.reason[0].isupper()
    assert first.about and first.bytes == CATALOGUE[id].facts().bytes_in(first.format)


def test_one_chat_is_one() -> None:
    assert room_in_words(1, 8192) == "room for 1 chat of 8,192 tokens"


def test_what_the_engine_refuses() -> None:
    model = dataclasses.replace(CATALOGUE["qwen3-0.6b"], unserved="mamba9")
    first = fit_model(model, machine(500), 60e9, EngineConfig()).variants[0]
    assert first.badge == "unserved" and first.reason.endswith("mamba9, is not served.")


def test_without_a_shape_the_context_is_not_known() -> None:
    model = dataclasses.replace(CATALOGUE["qwen3-0.6b"], shape=None, context=0)
    fit = fit_model(model, machine(32), 60e9, EngineConfig())
    assert fit.variants[0].badge == "fits" and "known once it is downloaded" in fit.variants[0].reason


def test_this_machine() -> None:
    here = Machine()
    assert here.speed() == here.speed() > 1e8  # measured once
    fits = fit_models(CATALOGUE.models, here, EngineConfig())
    assert len(fits) == len(CATALOGUE.models) and all(fit.variants and fit.reason for fit in fits)
