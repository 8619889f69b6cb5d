"""Formulas between single dollars, as the page's Markdown wants them: $x$ becomes \\(x\\).

By pandoc's rule (its manual, "Math", extension tex_math_dollars): the first dollar has a character at its
right that is no space, the second one at its left, and no digit follows it. So "it costs $5, not $6" stays
text. Code, and formulas that are marked otherwise, are left alone. The text is gone through once, however
many marks in it are never closed; a browser takes seconds for a few thousand of those, so it gets a few.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict

OPENING = re.compile(
    r"""
    (?P<block> ^[ ]{0,3}(?P<fence>`{3,}|~{3,}) .*? (?: ^[ ]{0,3}(?P=fence) | \Z ) )  # maybe unfinished
    | (?P<ticks>`+)
    | (?P<mark> \$\$ | \\\[ | \\\( )
    | \\.
    | (?<![A-Za-z0-9_$]) \$ (?=[^\s$]) (?P<formula> (?: \\. | [^$\\\n`] )+? ) (?<=\S) \$ (?![\d$])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
MARKS = re.compile(r"\$|\\[\[(]")
MOST_OPEN = 20  # marks without end that are left for the browser to find out
CLOSED_BY = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}


def marked(text: str) -> str:
    """The text with its formulas marked."""
    if not MARKS.search(text):
        return text
    ends = _Ends(text)
    pieces, at, num_open = [], 0, 0
    while found := OPENING.search(text, at):
        pieces.append(text[at : found.start()])
        at = found.end()
        if formula := found["formula"]:
            pieces.append(f"\\({formula}\\)")
            continue
        if found["ticks"]:
            at = ends.of_code(at, len(found["ticks"]))
        elif found["mark"]:
            at = ends.of_formula(at, found["mark"])
            num_open += at == found.end()
            if at == found.end() and num_open > MOST_OPEN:
                pieces.append(f"&#{ord(found['mark'][1])};")  # the same to the eye
                continue
        pieces.append(text[found.start() : at])
    return "".join(pieces) + text[at:]


class _Ends:
    """Where what was opened ends; at once after the mark where nothing closes it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()  # marks that nothing closes from here on
        self._runs: dict[int, list[int]] = defaultdict(list)  # how many backticks in a row -> where
        for run in re.finditer("`+", text):
            self._runs[len(run[0])].append(run.start())

    def of_code(self, at: int, num_ticks: int) -> int:
        """Of a span opened by as many backticks, by CommonMark's rule: as many close it."""
        starts = self._runs[num_ticks]
        place = bisect_left(starts, at)
        return starts[place] + num_ticks if place < len(starts) else at

    def of_formula(self, at: int, mark: str) -> int:
        """Of a formula; two dollars without end open one that is still being written."""
        if mark in self._unclosed:
            return at
        end = self._text.find(CLOSED_BY[mark], at)
        if end >= 0:
            return end + 2
        self._unclosed.add(mark)
        return len(self._text) if mark == "$$" else at
