"""Markdown's signs go, words and what is found in them stay, and code is left as it is where one can tell."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from app.chats.excerpts import plain

PIECES = [  # as it is written, as it is shown
    ("three times an **\2octavo\3** of *sixteen* pages", "three times an \2octavo\3 of sixteen pages"),
    ("…large sheets** are folded, then **sew", "…large sheets are folded, then sew"),
    ("***both*** and [a \2link\3](http://a/b) ![x](y.png)", "both and a \2link\3 x"),
    ("# Title\n## \2Part\3\n- a\n* b\n> c\n1. d", "Title\n\2Part\3\n• a\n• b\nc\n1. d"),
    ("```\2python\3\nf(*args)\n```\n~~~\nx\n~~~", "\2python\3\nf(*args)\n\n\nx\n"),
    ("这是**\2重点\3**内容", "这是\2重点\3内容"),
    ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a | b |\n\n| 1 | 2 |"),
    ("return 2 * 2**\2folds\3", "return 2 * 2**\2folds\3"),
    ("char *a, *b; snake_case, __init__, C# and a ** b", "char *a, *b; snake_case, __init__, C# and a ** b"),
    ("[not one](of \2them\3)", "[not one](of \2them\3)"),
]


@pytest.mark.parametrize(("written", "shown"), PIECES)
def test_signs(written: str, shown: str) -> None:
    assert plain(written) == shown


@given(st.lists(st.sampled_from([*"ab*_`#>-|[]() \n~!\2\3", "**", "```", "](", "word"])).map("".join))
def test_what_is_found_stays_marked(text: str) -> None:
    kept = re.findall("[\2\3]", plain(text))
    assert kept == re.findall("[\2\3]", text)
