"""What is typed becomes what any file can hold, and a name one line of some length."""

from __future__ import annotations

import pytest

from app.chats.records import NAME_LENGTH
from app.chats.typed import name_of, sound
from app.errors import AppError


def test_half_characters_and_ends_of_text_are_left_out() -> None:
    assert sound("a\ud83d b\0c 中 \U0001f600") == "a? bc 中 \U0001f600"


def test_a_name_is_one_line() -> None:
    assert name_of("  my\n folder ") == "my folder" and len(name_of("x" * 999)) == NAME_LENGTH
    for nothing in ("", " \n", "\0"):
        with pytest.raises(AppError, match="Write a name first"):
            name_of(nothing)
