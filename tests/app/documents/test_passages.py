"""Passages hold all of a document, and the ones that fit a question come first."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from app.documents.passages import K1, SIZE, B, Ranking, passages, words
from app.documents.reading import Document


@given(st.sampled_from(["page", "line"]), st.lists(st.text(max_size=4000), max_size=8))
def test_nothing_of_a_document_is_lost(unit: str, parts: list[str]) -> None:
    document = Document(unit, tuple(parts))
    found = passages(document)
    together = "".join(passage.text for passage in found)
    assert "".join(together.split()) == "".join("".join(parts).split())
    for passage, following in zip(found, [*found[1:], None]):
        assert 1 <= passage.first <= passage.last <= len(parts) and len(passage.text) <= SIZE + 2
        assert following is None or passage.last <= following.last
        if unit == "page":
            assert passage.first == passage.last


def test_short_lines_share_a_passage_and_pages_do_not() -> None:
    lines = tuple(f"line {n}" for n in range(1, 401))
    first, second, *_ = passages(Document("line", lines))
    assert first.first == 1 and first.text.startswith("line 1\n")
    assert second.text.startswith(f"line {second.first}\n")
    assert len(passages(Document("page", ("a", "", "b")))) == 2


def test_words() -> None:
    assert words("The Books’ Café—déjà_vu 42") == ["the", "book", "cafe", "deja", "vu", "42"]
    assert words("我们book一起去 さくら") == ["我们", "一起", "起去", "book", "さく", "くら"]
    assert words("天") == ["天"] and words("bus class") == ["bus", "clas"]


def test_the_formula() -> None:
    texts = ["red apple", "red red wine in a glass", "green tea"]
    ranking = Ranking(texts)
    assert ranking.order("RED wine") == [1, 0]
    average = (2 + 6 + 2) / 3
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    by_hand = [idf * f * (K1 + 1) / (f + K1 * (1 - B + B * n / average)) for f, n in ((1, 2), (2, 6), (0, 2))]
    assert sorted(range(2), key=by_hand.__getitem__, reverse=True) == ranking.order("red")


@pytest.mark.parametrize("question", ["", "?!", "zebra"])
def test_without_a_hit_the_beginning_comes_first(question: str) -> None:
    assert Ranking(["a", "b", "c"]).order(question) == [0, 1, 2]


def test_a_needle_in_a_long_document() -> None:
    pages = [f"Chapter {n} speaks of paper, glue and thread. " * 20 for n in range(200)]
    pages[137] += "The headband is sewn with silk of two colours."
    found = passages(Document("page", tuple(pages)))
    best = Ranking([passage.text for passage in found]).order("Which colours does a headband have?")[0]
    assert found[best].first == 138
