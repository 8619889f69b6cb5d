"""The parts of documents that fit a question best: passages, ranked by BM25.

    score = sum over the question's words of  idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / average))
    idf   = ln(1 + (N - n + 0.5) / (n + 0.5))        N passages, n of them with the word, tf times in this one

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the idf of
Lucene, which is never negative. Words are folded (case, accents, a last s); of Chinese, Japanese and Korean,
which put no spaces, every two characters in a row are one. Knows no tokens and no files.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .reading import Document

K1, B = 1.2, 0.75
MATTERS = 0.15  # of the best score: less is chance, words like "the"
SIZE = 900  # characters of a passage, about
_WORD = re.compile(r"[^\W_]+")
_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


@dataclass(frozen=True, slots=True)
class Passage:
    """Some text of a document, and the parts (pages, lines) that it stands in, counted from 1."""

    text: str
    first: int
    last: int


def passages(document: Document) -> list[Passage]:
    """A document cut into passages: at the ends of its parts where that fits, never across pages."""
    made: list[Passage] = []
    text, first, last = "", 1, 1
    for place, part in enumerate(document.parts, 1):
        for piece in _pieces(part):
            if text and len(text) + len(piece) >= SIZE:
                made.append(Passage(text, first, last))
                text = ""
            first, last = first if text else place, place
            text += piece + "\n"
        if document.unit == "page":
            made += [Passage(text, first, place)] if text.strip() else []
            text = ""
    return [*made, Passage(text, first, len(document.parts))] if text.strip() else made


def _pieces(part: str) -> Iterator[str]:
    """Not longer than a passage, cut at the end of a line or word if there is one."""
    while len(part) > SIZE:
        cut = max(part.rfind(end, SIZE // 2, SIZE) for end in ("\n", " ", "。"))
        cut = SIZE if cut < 0 else cut + 1
        yield part[:cut]
        part = part[cut:]
    yield part


def words(text: str) -> list[str]:
    """The text's words as they are compared."""
    plain = text.casefold()
    if not plain.isascii():
        apart = unicodedata.normalize("NFKD", plain)
        plain = unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))
    found: list[str] = []
    for word in _WORD.findall(plain):
        for run in _DENSE.findall(word):
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        found += [other[:-1] if len(other) > 3 and other.endswith("s") else other
                  for other in _DENSE.split(word) if other]  # fmt: skip
    return found


class Ranking:
    """The words of some passages, counted once for all questions."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(words(text)) for text in texts]
        self._lengths = [count.total() for count in self._counts]
        self._average = sum(self._lengths) / max(1, len(texts)) or 1.0
        self._holders = Counter(word for count in self._counts for word in count)

    def order(self, question: str) -> list[int]:
        """The places of the passages, the best first; those that fit alike in their own order.

        Those that hardly have to do with the question are left out, if others do.
        """
        total = len(self._counts)
        weights = {
            word: math.log(1 + (total - holders + 0.5) / (holders + 0.5))
            for word in set(words(question))
            if (holders := self._holders[word])
        }

        def score(place: int) -> float:
            count, norm = self._counts[place], K1 * (1 - B + B * self._lengths[place] / self._average)
            hits = ((weight, count[word]) for word, weight in weights.items() if word in count)
            return sum(weight * times * (K1 + 1) / (times + norm) for weight, times in hits)

        scores = [score(place) for place in range(total)]
        least = MATTERS * max(scores, default=0.0)
        places = [place for place in range(total) if scores[place] >= least]
        return sorted(places, key=scores.__getitem__, reverse=True)
