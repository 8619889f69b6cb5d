"""2,000 random lives of the deciding half, each checked against the oracle at every token and every step."""

from __future__ import annotations

import pytest

from .simulator import Simulation, run_seeds

CHUNK = 125


@pytest.mark.parametrize("chunk", range(2000 // CHUNK))
def test_every_answer_is_the_oracles_whatever_happens(chunk: int) -> None:
    seen = run_seeds(range(chunk * CHUNK, (chunk + 1) * CHUNK))
    # A simulator in which nothing happens proves nothing: every event must have been met often.
    rare = {event: seen[event] for event in EVENTS if seen[event] < 5}
    assert not rare


EVENTS = (
    "steps",
    "together",
    "cached",
    "forked",
    "copies",
    "drafts",
    "drafts kept",
    "real drafts kept",
    "preempted",
    "refused",
    "squeezed",
    "discarded",
    "stop",
    "length",
    "cancelled",
    "error",
    "saved",
    "from disk",
    "from host",
    "damaged",
    "forgotten",
    "late",
    "too slow",
)


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_replays_exactly(seed: int) -> None:
    first, second = Simulation(seed), Simulation(seed)
    assert first.run() == second.run()
    assert [(seq.id, seq.tokens, seq.started) for seq in first.ended] == [
        (seq.id, seq.tokens, seq.started) for seq in second.ended
    ]
