"""What each card can do, and which device is taken, from facts made up here; none of these cards was run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.fitting.abilities import (
    BF16,
    CARDS,
    FP4,
    FP8,
    INT8,
    MATRIX,
    PROCESSOR,
    TRITON,
    Card,
    Machine,
    abilities,
    choose_device,
)

GIB = 2**30
ALL = (*CARDS, PROCESSOR)


def card(kind: str, capability: tuple[int, int] = (0, 0), architecture: str = "", free: int = 8) -> Card:
    name = f"{kind} {architecture or capability}"
    return Card(kind, name, 8 * GIB, free * GIB, capability, architecture)


def machine(*cards: Card, container: tuple[int, int] | None = None) -> Machine:
    return Machine("a processor", 8, 24 * GIB, 20 * GIB, container, cards)


@pytest.mark.parametrize(
    ("capability", "has"),
    [
        ((6, 1), set()),
        ((7, 0), set()),
        ((7, 5), {TRITON, INT8}),
        ((8, 0), {TRITON, INT8, MATRIX, BF16}),
        ((8, 6), {TRITON, INT8, MATRIX, BF16}),
        ((8, 9), {TRITON, INT8, MATRIX, BF16, FP8}),
        ((9, 0), {TRITON, INT8, MATRIX, BF16, FP8}),
        ((12, 0), {TRITON, INT8, MATRIX, BF16, FP8, FP4}),
    ],
)
def test_nvidia_s_cards(capability: tuple[int, int], has: set[str]) -> None:
    assert set(abilities(card("cuda", capability))) == has


@pytest.mark.parametrize(
    ("architecture", "has_fp8"), [("gfx1100", False), ("gfx1201", True), ("gfx942", False), ("gfx950", True)]
)
def test_amd_s_cards(architecture: str, has_fp8: bool) -> None:
    has = abilities(card("rocm", architecture=architecture))
    assert {TRITON, MATRIX, BF16, INT8} <= set(has) and (FP8 in has) == has_fp8


def test_what_is_not_known_can_do_nothing() -> None:
    assert abilities(card("rocm", architecture="gfx803")) == ()
    assert TRITON in abilities(card("xpu")) and TRITON not in abilities(card("mps"))


def test_a_card_that_its_check_found_right_is_taken() -> None:
    facts = choose_device(machine(card("cuda", (8, 9))))
    assert (facts.kind, facts.memory_available) == ("cuda", 8 * GIB)
    assert facts.reason == "Models run on cuda (8, 9) (CUDA)."


def test_a_card_that_computes_wrongly_is_left_alone_and_named() -> None:
    wrong = replace(card("cuda", (8, 9)), fault="its check found these to be wrong: draws (off by 3)")
    facts = choose_device(machine(wrong))
    assert (facts.kind, facts.memory_available, facts.unified) == (PROCESSOR, 20 * GIB, True)
    assert facts.reason == (
        "Models run on the processor. cuda (8, 9) is not used: its check found these to be wrong: draws (off "
        "by 3)."
    )
    other = choose_device(machine(wrong, card("cuda", (8, 6), free=3)))
    assert other.kind == "cuda" and other.memory_available == 3 * GIB


def test_what_there_are_no_kernels_for_is_named() -> None:
    facts = choose_device(machine(card("xpu")))
    assert facts.kind == PROCESSOR
    assert facts.reason.endswith("is not used: Octavo has no kernels for XPU yet.")


def test_the_quickest_kind_then_the_most_free_memory() -> None:
    small, large = card("cuda", (8, 6), free=3), card("cuda", (8, 9), free=7)
    facts = choose_device(machine(card("xpu"), small, large), ALL)
    assert (facts.name, facts.kind, facts.memory_available) == (large.name, "cuda", 7 * GIB)
    assert FP8 in facts.abilities and not facts.unified
    assert choose_device(machine(card("xpu"), card("rocm", architecture="gfx1100")), ALL).kind == "rocm"


def test_a_card_too_old_is_left_out() -> None:
    facts = choose_device(machine(card("cuda", (6, 1))), ALL)
    assert facts.kind == PROCESSOR and "nothing is compiled for its architecture (6.1)" in facts.reason


def test_a_card_that_uses_the_system_s_memory_gets_no_more_than_the_system_has() -> None:
    apple = Card("mps", "Apple M2", 11 * GIB, 11 * GIB, unified=True)
    facts = choose_device(machine(apple), ALL)
    assert (facts.memory_total, facts.memory_available, facts.unified) == (11 * GIB, 11 * GIB, True)
    full = Machine("a processor", 8, 16 * GIB, 2 * GIB, None, (apple,))
    assert choose_device(full, ALL).memory_available == 2 * GIB


def test_a_container_limits_the_processor_and_not_a_card_of_its_own_memory() -> None:
    limit = (4 * GIB, GIB)
    facts = choose_device(machine(container=limit), ALL)
    assert (facts.memory_total, facts.memory_available) == (4 * GIB, 3 * GIB)
    assert "limited by the container" in facts.reason
    facts = choose_device(machine(card("cuda", (8, 9)), container=limit), ALL)
    assert facts.memory_available == 8 * GIB and "container" not in facts.reason
