"""Thoughts and answer of a reply that grows, cut anywhere: together they are those of the whole."""

from __future__ import annotations

from random import Random

import pytest

from app.api.reasoning import Halves
from engine import Split

REPLIES = [
    "Four.",
    "  Four.\n",
    "<think>\nTwo and two.\n</think>\n\nFour.",
    "\n<think>a < b, </thin is no mark\n\n</think>Four </think> <think>",
    "<think>\n\n</think>\n\nFour.",
    "<think>still thinking </th",
    "<think",
    "<thinking> is no mark",
    "",
]


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("seed", range(20))
def test_the_pieces_are_the_whole(reply: str, seed: int) -> None:
    rng, halves, rest = Random(seed), Halves(), reply
    pieces = []
    while rest:
        cut = rng.randint(1, 4)
        pieces.append(halves.push(rest[:cut]))
        rest = rest[cut:]
    pieces.append(halves.finish())
    thoughts, answer = ("".join(half) for half in zip(*pieces, strict=True))
    whole = Split.of(reply)
    assert (thoughts, answer) == (whole.thoughts, whole.answer)


def test_nothing_waits_that_can_be_told() -> None:
    halves = Halves()
    given = [halves.push(text) for text in ("<think>", "a", " b<", "c", "</think>", "\n\n", "d")]
    assert given == [("", ""), ("a", ""), (" b", ""), ("<c", ""), ("", ""), ("", ""), ("", "d")]
