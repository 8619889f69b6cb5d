"""The first model: by machine, the largest that is quick and free to download; the starter where none is."""

from __future__ import annotations

import re

import pytest

from app.models.catalogue import read_catalogue
from app.models.first_run import LARGEST, propose
from app.models.fits import fit_model
from engine import DeviceFacts, EngineConfig

GIB = 2**30
MODELS = read_catalogue().models


def machine(gib: float) -> DeviceFacts:
    size = int(gib * GIB)
    return DeviceFacts("A machine", "cpu", size, size, 8, True, "")


@pytest.mark.parametrize(
    ("gib", "speed", "id", "format"),
    [
        (4, 20e9, "smollm2-135m", "GGUF Q4_1"),  # too little beside what stays free
        (6, 20e9, "qwen3-0.6b", "GGUF Q8_0"),
        (8, 20e9, "smollm2-1.7b", "GGUF Q4_K_M"),
        (16, 40e9, "qwen3-4b", "GGUF Q6_K"),
        (64, 80e9, "qwen3-8b", "GGUF Q5_K_M"),
        (64, 2e9, "smollm2-135m", "GGUF Q4_1"),  # much memory, but slow
    ],
)
def test_by_memory_and_speed(gib: float, speed: float, id: str, format: str) -> None:
    proposal = propose(MODELS, machine(gib), speed)
    assert (proposal.id, proposal.format) == (id, format)


def test_a_larger_machine_never_gets_a_smaller_model() -> None:
    sizes = []
    for gib in range(2, 200, 6):
        proposal = propose(MODELS, machine(gib), 100e9)
        sizes.append(next(model.parameters for model in MODELS if model.id == proposal.id))
    assert sizes == sorted(sizes) and sizes[-1] > 5e9


def test_what_is_proposed_is_free_and_for_talking() -> None:
    for gib in range(2, 400, 8):
        for speed in (5e9, 50e9, 500e9):
            proposal = propose(MODELS, machine(gib), speed)
            model = next(model for model in MODELS if model.id == proposal.id)
            assert model.licence in ("Apache-2.0", "MIT") and not model.purpose and not model.unserved
            assert (
                proposal.format in {variant.format for variant in model.variants}
                and 0 < proposal.bytes <= LARGEST
            )


def test_offline_it_is_the_starter() -> None:
    proposal = propose(MODELS, machine(64), 100e9, offline=True)
    assert (proposal.id, proposal.bytes) == ("smollm2-135m", 98_362_432)
    assert "the hub is not to be asked" in proposal.reason


def test_the_reason_is_said_without_jargon() -> None:
    assert propose(MODELS, machine(8), 20e9, EngineConfig(num_chats=2)).reason == (
        "The largest model for conversation that runs well on this machine with 8.59 GB of memory free: "
        "about 16 tokens/s (people read about 5), and room for 2 long chats at once."
    )


@pytest.mark.parametrize("num_chats", [1, 2, 4, 8, 16])
def test_its_numbers_are_those_of_the_page_of_models(num_chats: int) -> None:
    config = EngineConfig(num_chats=num_chats)
    for gib in range(5, 40):
        proposal = propose(MODELS, machine(gib), 40e9, config)
        model = next(model for model in MODELS if model.id == proposal.id)
        fits = {fit.format: fit for fit in fit_model(model, machine(gib), 40e9, config).variants}
        told = re.search(r"about ([0-9,]+) tokens/s .* room for ([0-9,]+) long chats", proposal.reason)
        shown = re.match(r"About ([0-9,]+) tokens/s, room for ([0-9,]+) chats", fits[proposal.format].reason)
        is_starter = proposal.id == "smollm2-135m"
        assert is_starter or (told and shown and told.groups() == shown.groups())
