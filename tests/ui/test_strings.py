"""The words of the page: none missing, none unused, in both languages alike."""

from __future__ import annotations

import re

import pytest

from app import RuntimeStatus
from ui.shell import ASSETS
from ui.strings import LANGUAGES, STRINGS, words

SCRIPTS = "\n".join(path.read_text("utf-8") for path in sorted(ASSETS.glob("*.js")))
# names that scripts put together: w[state], w["theme_" + name]
STATES = {
    *str(RuntimeStatus.__annotations__["state"]).split(),
    "ready",
    "loading",
    "missing",
    "failed",
} & set(STRINGS)
COMPUTED = STATES | {
    "theme_light",
    "theme_dark",
    "theme_system",
    "try_1",
    "try_2",
    "try_3",
    "answering",
    "unread",
    *("locked", "locked_text", "locked_how"),  # locked.py's
}


def test_every_word_that_is_used_is_there_and_the_other_way_round() -> None:
    used = set(re.findall(r"\b(?:w|words)\.(\w+)", SCRIPTS))
    assert used | COMPUTED == set(STRINGS)


@pytest.mark.parametrize("name", STRINGS)
def test_both_languages_have_the_same_places(name: str) -> None:
    english, chinese = (sorted(re.findall(r"\{\w+\}", text)) for text in STRINGS[name])
    assert english == chinese
    assert all(STRINGS[name])


def test_the_table_by_language() -> None:
    table = words()
    assert tuple(table) == LANGUAGES
    assert table["zh"]["send"] == "发送"
