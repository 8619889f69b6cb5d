"""Thoughts are told from the answer, and timed, however they come."""

from __future__ import annotations

import pytest

from app.chats.thinking import ThinkingClock
from engine import Split


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Split("", "", False)),
        ("Four.", Split("", "Four.", False)),
        ("  def f():\n", Split("", "  def f():\n", False)),
        ("<think>", Split("", "", True)),
        ("<think>\n2 and 2", Split("2 and 2", "", True)),
        ("\n<think>\n2 and 2\n</think>\n\nFour.", Split("2 and 2", "Four.", False)),
        ("<think>\n\n</think>\n\nFour.", Split("", "Four.", False)),
        ("<think>a</think>b</think>c", Split("a", "b</think>c", False)),
        ("The mark <think> begins thoughts.", Split("", "The mark <think> begins thoughts.", False)),
    ],
)
def test_thoughts_and_answer(text: str, found: Split) -> None:
    assert Split.of(text) == found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_the_clock_runs_from_the_first_thought_to_the_mark(size: int) -> None:
    """A character a second."""
    text = "<think>\nabcdef</think>\n\nFour </think> x"
    clock = ThinkingClock("", 0.0)
    for start in range(0, len(text), size):
        clock.hear(text[start : start + size], float(start + size))
    assert clock.seconds(999.0) == pytest.approx(len("abcdef</think>") - 1, abs=size)


@pytest.mark.parametrize("text", ["Four.", "<thin", "<b>think</b>", "<think>\n", "<think></think>Four."])
def test_what_does_not_think_takes_no_time(text: str) -> None:
    clock = ThinkingClock("", 0.0)
    for place, letter in enumerate(text):
        clock.hear(letter, float(place))
    assert clock.seconds(99.0) == pytest.approx(0.0 if "</think>" not in text else 7.0)


def test_a_reply_that_goes_on_thinks_on() -> None:
    clock = ThinkingClock("<think>\nso far", 3.0)
    clock.hear(" and on", 10.0)
    assert clock.seconds(11.0) == 4.0
    clock.hear("\n</think>\n\n", 12.0)
    clock.hear("Four.", 20.0)
    assert clock.seconds(30.0) == 5.0
    answered = ThinkingClock("<think>\nx</think>\nFour", 3.0)
    answered.hear(", or five </think>", 50.0)
    assert answered.seconds(60.0) == 3.0
