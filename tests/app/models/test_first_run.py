"""The first model: by machine, the largest all-round one that is quick and free, else the starter."""

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
        (4.3, 20e9, "qwen3-0.6b", "GGUF Q8_0"),
        (5, 20e9, "gemma-4-e2b", "GGUF Q5_K_M"),
        (8, 30e9, "granite-4.2-3b", "GGUF Q4_K_M"),
        (16, 40e9, "gemma-4-e4b", "GGUF Q4_K_M"),
        (64, 80e9, "gemma-4-26b-a4b", "GGUF Q5_K_M"),
        (64, 2e9, "smollm2-135m", "GGUF Q4_1"),  # much memory, but slow
    ],
)
def test_by_memory_and_speed(gib: float, speed: float, id: str, format: str) -> None:
    proposal = propose(MODELS, machine(gib), speed)
    assert (proposal.id, proposal.format) == (id, format)


@pytest.mark.parametrize(
    ("gib", "free", "speed", "id", "format"),
    [
        (6, 5.3, 192e9, "granite-4.2-3b", "GGUF Q4_K_M"),
        (8, 7.3, 272e9, "gemma-4-e4b", "GGUF Q4_K_M"),
        (12, 11.3, 360e9, "gemma-4-12b", "GGUF Q4_K_M"),
        (16, 15.3, 717e9, "gemma-4-12b", "GGUF Q8_0"),  # finer, once no larger one has room
        (24, 23.3, 936e9, "gemma-4-26b-a4b", "GGUF Q4_K_M"),
    ],
)
def test_by_card(gib: int, free: float, speed: float, id: str, format: str) -> None:
    card = DeviceFacts("A card", "cuda", gib * GIB, int(free * GIB), 8, False, "", ("bf16", "INT8", "FP8"))
    proposal = propose(MODELS, card, speed)
    assert (proposal.id, proposal.format) == (id, format)


def test_tables_of_which_a_token_reads_a_row_make_no_model_larger() -> None:
    """Gemma 4 E2B has more parameters than Granite 4.2 3B, and fewer that compute."""
    both = [model for model in MODELS if model.id in ("smollm2-135m", "granite-4.2-3b", "gemma-4-e2b")]
    assert {propose(order, machine(32), 40e9).id for order in (both, both[::-1])} == {"granite-4.2-3b"}


def test_a_larger_machine_never_gets_a_smaller_model() -> None:
    sizes = []
    for gib in range(2, 200, 6):
        proposal = propose(MODELS, machine(gib), 100e9)
        sizes += [model.parameters - model.facts().rows for model in MODELS if model.id == proposal.id]
    assert sizes == sorted(sizes) and sizes[-1] > 5e9


def test_what_is_proposed_is_free_and_for_talking() -> None:
    for gib in range(2, 400, 8):
        for speed in (5e9, 50e9, 500e9):
            proposal = propose(MODELS, machine(gib), speed)
            model = next(model for model in MODELS if model.id == proposal.id)
            assert model.licence in ("Apache-2.0", "MIT") and "chat" in model.purposes and not model.unserved
            assert (
                proposal.format in {variant.format for variant in model.variants}
                and 0 < proposal.bytes <= LARGEST
            )


def test_what_the_disk_has_no_room_for_is_not_proposed() -> None:
    sizes = [propose(MODELS, machine(64), 80e9, room=gb * 10**9).bytes / 1e9 for gb in (20, 17, 10, 1, 0)]
    assert all(size <= max(gb, 0.1) for size, gb in zip(sizes, (20, 17, 10, 1, 0), strict=True))
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 17 and sizes[-1] < 0.1


def test_offline_it_is_the_starter() -> None:
    proposal = propose(MODELS, machine(64), 100e9, offline=True)
    assert (proposal.id, proposal.bytes) == ("smollm2-135m", 98_362_432)
    assert "the hub is not to be asked" in proposal.reason


def test_the_reason_is_said_without_jargon() -> None:
    assert propose(MODELS, machine(8), 20e9, EngineConfig(num_chats=2)).reason == (
        "The largest all-round model that runs well on this machine with 8.59 GB of memory free: "
        "about 10 tokens/s (people read about 5), and room for 2 long chats at once."
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
