"""The words of the page: none missing, none unused, none twice, in both languages alike."""

from __future__ import annotations

import re

import pytest

from ui.shell import ASSETS
from ui.words import LANGUAGES, PARTS, words

SCRIPTS = "\n".join(path.read_text("utf-8") for path in sorted(ASSETS.rglob("*.js")))
WORDS = [(name, texts) for part in PARTS for name, texts in part.WORDS.items()]
COMPUTED = frozenset[str]().union(*(part.COMPUTED for part in PARTS))


def test_every_word_that_is_used_is_there_and_the_other_way_round() -> None:
    used = set(re.findall(r"\b(?:w|words)\.(\w+)", SCRIPTS))
    assert used | COMPUTED == {name for name, _ in WORDS}


def test_no_name_is_used_twice() -> None:
    names = [name for name, _ in WORDS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(("name", "texts"), WORDS)
def test_both_languages_have_the_same_places(name: str, texts: tuple[str, str]) -> None:
    english, chinese = (sorted(re.findall(r"\{\w+\}", text)) for text in texts)
    assert english == chinese
    assert all(texts)


def test_the_table_by_language() -> None:
    table = words()
    assert tuple(table) == LANGUAGES
    assert table["zh"]["send"] == "发送"
