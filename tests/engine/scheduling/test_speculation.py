"""Guesses come from the text, get longer as they are right, and are made only where they pay."""

from __future__ import annotations

from random import Random

import pytest

from engine.scheduling.pace import Pace
from engine.scheduling.sequence import Sequence
from engine.scheduling.speculation import LONGEST, MOST, MOST_IN_STEP, Speculation, Text

from .machine import Machine, right

CHEAP = {1: 1.0, 2: 1.01, 4: 1.03, 16: 1.2, 32: 1.5}  # memory decides what a step lasts
DEAR = {n: float(n) for n in range(1, 40)}  # every token costs the same


def pace_with(costs: dict[int, float]) -> Pace:
    pace = Pace(1000.0)
    for tokens, seconds in costs.items():
        pace._num_steps += 1
        pace._answers[tokens] = seconds, pace._num_steps
    return pace


def text_of(tokens: list[int]) -> Text:
    text = Text()
    text.read(tokens)
    return text


def guess(tokens: list[int], count: int) -> list[int]:
    return text_of(tokens).guess(tokens, count)


def test_the_latest_place_where_most_agrees_is_taken() -> None:
    assert guess([1, 2, 3, 4, 7, 7, 1, 2, 3], 2) == [4, 7]
    assert guess([5, 1, 2, 8, 0, 6, 1, 2, 9, 0, 5, 1, 2], 1) == [8]  # 5 1 2 before the later 1 2
    assert guess([1, 2, 8, 0, 1, 2, 9, 0, 1, 2], 1) == [9]
    assert text_of([1, 2, 3, 4, 5, 3]).agreeing == 0  # one token alone says nothing
    assert text_of([]).agreeing == text_of([1]).agreeing == text_of([1, 1]).agreeing == 0


def test_what_repeats_itself_goes_on_without_end() -> None:
    assert guess([9, 1, 2, 1, 2], 5) == [1, 2, 1, 2, 1]
    assert guess([7, 7, 7], 4) == [7, 7, 7, 7]


def test_a_text_read_in_pieces_is_the_text_read_at_once() -> None:
    chance = Random(3)
    for _ in range(50):
        tokens = [chance.randrange(4) for _ in range(200)]
        text, known = Text(), 0
        while known < len(tokens):
            known += chance.randint(1, 30)
            text.read(tokens[:known])
            if text.agreeing:
                place = text._place
                assert tokens[place - text.agreeing : place] == tokens[:known][-text.agreeing :]
                assert place < known
        assert list(text._before) == list(text_of(tokens)._before)


def test_rates_follow_what_happens_whether_or_not_drafts_were_sent() -> None:
    chance, text, tokens = Random(4), Text(), list[int]()
    for _ in range(3000):
        tokens.append(chance.randrange(5))
        text.read(tokens)
    assert all(0.02 < rate < 0.5 for rate in text.rates[2:5])  # one in five by chance
    passage = [chance.randrange(1000) for _ in range(100)]
    for _ in range(10):
        for token in passage:
            tokens.append(token)
            text.read(tokens)
    assert text.rates[LONGEST] > 0.9


def drafts_of(costs: dict[int, float], *texts: list[int], limit: int = 100) -> list[int]:
    asked = [(Sequence(str(i), tokens), limit) for i, tokens in enumerate(texts)]
    return [len(drafts) for drafts in Speculation(pace_with(costs)).propose(asked)]


REPEATED = list(range(30)) * 3


def test_drafts_are_made_where_they_pay() -> None:
    assert drafts_of(CHEAP, REPEATED) == [MOST]
    assert drafts_of(DEAR, REPEATED) == [0]
    assert drafts_of(CHEAP, list(range(90))) == [0]
    assert drafts_of(CHEAP, REPEATED, limit=3) == [3] and drafts_of(CHEAP, REPEATED, limit=0) == [0]
    assert drafts_of({}, REPEATED) == [0]  # nothing is known about costs yet
    few = drafts_of(CHEAP, [*range(30), 2, 3])[0]  # two tokens agree
    assert 0 < few < MOST


def test_the_step_is_seen_as_a_whole() -> None:
    counts = drafts_of({1: 1.0, 40: 1.01}, *[REPEATED] * 6)
    assert sum(counts) == MOST_IN_STEP and counts[0] == MOST
    company = {n: 1.0 + max(0, n - 1) * 0.9 for n in range(1, 40)}  # each answer costs almost a step
    assert drafts_of(company, *[REPEATED] * 6) == [0] * 6


def test_a_text_without_hope_is_looked_at_seldom_in_company() -> None:
    speculation = Speculation(pace_with(DEAR))
    seqs = [Sequence(str(i), list(REPEATED)) for i in range(4)]
    for looked in (True, False, False, False, True):
        before = [seq.tokens[-1] for seq in seqs]
        assert before and not any(speculation.propose([(seq, 8) for seq in seqs]))
        read = [len(speculation._texts[seq]._before) == len(seq.tokens) for seq in seqs]
        assert read == [looked] * 4
        for seq in seqs:
            seq.tokens.append(5)


def test_what_is_known_of_a_sequence_goes_with_it() -> None:
    speculation = Speculation(pace_with(CHEAP))
    speculation.propose([(Sequence("gone", REPEATED), 8)])
    assert not speculation._texts


@pytest.mark.parametrize("num_blocks", [100, 12])
def test_through_the_scheduler_text_stays_and_steps_are_saved(num_blocks: int) -> None:
    steps = {}
    for costs in (CHEAP, DEAR):
        pace = pace_with(costs)
        machine = Machine(num_blocks, pace=pace)
        machine.scheduler._propose = Speculation(pace).propose
        seqs = [machine.add([9] * n, 20, vocabulary=2) for n in (6, 9)]
        while machine.scheduler.has_work():
            machine.step()
            pace._answers = pace_with(costs)._answers
        assert all(right(seq) and len(seq.tokens) == seq.num_prompt + 20 for seq in seqs)
        steps[machine.scheduler.num_accepted > 0] = machine.num_commits
    assert steps[True] < steps[False]
