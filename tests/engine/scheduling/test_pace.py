"""The pace learns what steps cost, gives prompts what keeps the answers' gaps bounded, and recovers."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest

from engine.scheduling.pace import CALM, KEPT, STRETCH, Pace

from .machine import Machine


@dataclass(frozen=True)
class Device:
    """What steps truly cost."""

    fixed: float
    per_answer: float
    per_token: float
    per_place: float

    def seconds(self, answers: int, chunks: list[tuple[int, int]]) -> float:
        """Attention makes a token the dearer the later its place."""
        prompts = sum(n * (self.per_token + self.per_place * (start + n / 2)) for start, n in chunks)
        return self.fixed + self.per_answer * answers + prompts


# as measured on two cores: 1.5 and 0.135 billion weights; and a graphics card as one may be
BIG = Device(0.034, 0.003, 0.0045, 1.1e-6)
SMALL = Device(0.004, 0.0006, 0.0005, 2.5e-7)
CARD = Device(0.005, 0.00005, 0.00005, 1e-9)


def settled(device: Device, answers: int) -> Pace:
    """A pace that has seen some steps."""
    pace = Pace(0.25)
    for _ in range(30):
        pace.observe(answers, [], device.seconds(answers, []))
    return pace


def read(pace: Pace, device: Device, answers: int, start: int, end: int) -> list[tuple[int, float]]:
    """A prompt computed beside answers: (tokens, seconds) of each step."""
    steps = []
    while start < end:
        count = pace.allowance(answers, 496).take(start, end - start)
        chunks = [(start, count)] if count else []
        seconds = device.seconds(answers, chunks)
        pace.observe(answers, chunks, seconds)
        steps.append((count, seconds))
        start += count
        assert len(steps) < 20_000
    return steps


@pytest.mark.parametrize("device", [BIG, SMALL, CARD])
@pytest.mark.parametrize("first_guess", [0.0001, 0.001, 0.1])
def test_alone_a_prompts_steps_reach_the_target(device: Device, first_guess: float) -> None:
    pace = Pace(0.25, first_guess)
    steps = read(pace, device, 0, 0, 8000)
    assert all(count % 16 == 0 for count, _ in steps[:-1])
    full = [seconds for count, seconds in steps[12:-1] if count < 496]
    assert all(0.25 / 2 < seconds < 0.25 * 1.3 for seconds in full)
    pace.observe(0, [(8000, 16)], 30_000.0)  # a night asleep counts for little
    assert pace.allowance(0, 496).take(0, 496) >= 16
    count, seconds = read(pace, device, 0, 0, 4000)[4]
    assert count == 496 or seconds > 0.25 / 3


def test_a_first_step_that_had_to_wait_is_forgotten_with_the_second() -> None:
    pace = Pace(0.25)
    pace.observe(0, [(0, 31)], 4.2)  # the machine was busy, the weights were not in memory
    pace.observe(0, [(0, 24)], BIG.seconds(0, [(0, 24)]))
    assert pace.prompts_s([(0, 2724)]) < 2 * BIG.seconds(0, [(0, 2724)])


@pytest.mark.parametrize("device", [BIG, SMALL, CARD])
@pytest.mark.parametrize("answers", [1, 4, 8])
def test_a_long_prompt_stretches_gaps_to_three_times_at_most(device: Device, answers: int) -> None:
    pace, calm = settled(device, answers), device.seconds(answers, [])
    read(pace, device, 0, 0, 300)  # what a short prompt cost, alone
    steps = read(pace, device, answers, 0, 6000)
    assert max(seconds for _, seconds in steps) <= 3 * calm
    used = sum(seconds for _, seconds in steps) / len(steps)
    assert used > 0.75 * STRETCH * calm  # and what is allowed is used
    later = read(pace, device, answers, 6000, 6200)  # more at the end of a long text, from the cache
    early = read(pace, device, answers, 0, 200)
    assert max(seconds for _, seconds in later + early) <= 3 * calm


def test_a_machine_that_becomes_slow_does_not_starve_prompts() -> None:
    pace = settled(SMALL, 4)
    slow = Device(*(3 * cost for cost in (SMALL.fixed, SMALL.per_answer, SMALL.per_token, SMALL.per_place)))
    steps = read(pace, slow, 4, 0, 6000)
    quick = read(settled(slow, 4), slow, 4, 0, 6000)
    assert len(steps) < 1.2 * len(quick)


@pytest.mark.parametrize("first_guess", [0.0001, 0.1])
def test_where_a_step_waits_for_the_machine_prompts_go_in_large_pieces(first_guess: float) -> None:
    busy = Device(0.5, 0.0006, 0.0005, 2.5e-7)  # two threads meet hundreds of times a step
    pace = Pace(0.25, first_guess)
    read(pace, busy, 0, 0, 1000)
    assert len(read(pace, busy, 0, 0, 6000)) < 6000 / 100
    steps = read(pace, SMALL, 0, 0, 6000)  # and when it is calm again
    assert all(seconds < 0.25 * 1.3 for _, seconds in steps[2:])


def test_where_tokens_are_dear_pieces_stay_small() -> None:
    slow = Device(0.15, 0.01, 0.03, 1e-6)  # 8 billion weights on two cores
    seconds = [seconds for _, seconds in read(Pace(0.25), slow, 0, 0, 2000)]
    assert max(seconds[2:]) < 1.3 and sum(seconds) / len(seconds) < 1.0


@pytest.mark.parametrize("noise", [1, 3, 8])
def test_on_a_busy_machine_chunks_do_not_shrink_to_nothing(noise: int) -> None:
    """What disturbs a step must not be taken for what its few tokens cost."""
    pace, chance, chunks = Pace(target_s=0.25), random.Random(noise), []
    fixed, token_s, answers_s = 0.004, 0.0012, 0.0143

    def disturbed(seconds: float) -> float:
        return seconds * chance.choice([1, 1, 1, 1 + noise, 1 + 2 * noise])

    for _ in range(200):
        pace.observe(4, [], disturbed(answers_s))
    while (place := sum(chunks)) < 3400:
        allowed = pace.allowance(4, 496)
        count = allowed.take(place, 3400 - place) if allowed else 0
        seconds = answers_s + (fixed + count * token_s if count else 0)
        pace.observe(4, [(place, count)] if count else [], disturbed(seconds))
        chunks.append(count)
    assert chunks.count(1) <= len(chunks) / 20


def test_now_and_then_a_step_has_no_prompt_so_that_answers_are_measured() -> None:
    counts = [count for count, _ in read(settled(BIG, 4), BIG, 4, 0, 2000)]
    calm = [at for at, count in enumerate(counts) if not count]
    assert calm and all(b - a == CALM + 1 for a, b in pairwise(calm))


def test_steps_not_measured_are_guessed_from_their_neighbours() -> None:
    pace = Pace(0.25)
    pace.observe(2, [], 0.1)
    assert pace.answers_s(1) == pace.answers_s(2) == 0.1 and pace.answers_s(4) == pytest.approx(0.12)
    pace.observe(5, [], 0.11)
    assert pace.answers_s(4) <= 0.11 < pace.answers_s(6)


def test_what_was_measured_long_ago_counts_no_more() -> None:
    pace = settled(BIG, 4)
    for _ in range(20):
        pace.observe(5, [], 10.0)
    assert pace.answers_s(5) > 2 * pace.answers_s(4)
    for _ in range(KEPT):
        pace.observe(4, [], BIG.seconds(4, []))
    assert pace.answers_s(5) < 1.2 * pace.answers_s(4)


def test_a_clock_that_was_set_back_teaches_nothing() -> None:
    pace = settled(BIG, 4)
    before = repr(pace)
    pace.observe(4, [], -3600.0)
    pace.observe(0, [(0, 16)], 0.0)
    assert repr(pace) == before


def test_beside_answers_a_prompt_moves_on_in_the_real_scheduler() -> None:
    pace = Pace(0.25, 1000.0)  # nothing would fit
    machine = Machine(pace=pace)
    answering = machine.add(5, 200)
    machine.step()
    reading = machine.add([7] * 60, 2)
    machine.finish()
    assert answering.finish_reason and reading.finish_reason
