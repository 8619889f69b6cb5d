"""Formulas between single dollars, as the page's Markdown wants them: $x$ becomes \\(x\\).

By pandoc's rule (its manual, "Math", extension tex_math_dollars): the first dollar has a character at its
right that is no space, the second one at its left, and no digit follows it. So "it costs $5, not $6" stays
text. Code, and formulas that are marked otherwise, are left alone.
"""

from __future__ import annotations

import re

DOLLARS = re.compile(
    r"""
    ( ^[ ]{0,3}(?P<fence>`{3,}|~{3,}) .*? (?: ^[ ]{0,3}(?P=fence) | \Z )  # a block of code, maybe unfinished
    | (?P<ticks>`+) .+? (?P=ticks)
    | \$\$ .*? (?: \$\$ | \Z )
    | \\\[ .*? \\\] | \\\( .*? \\\)
    | \\. )
    | (?<![A-Za-z0-9_$]) \$ (?=[^\s$]) (?P<formula> (?: \\. | [^$\\\n`] )+? ) (?<=\S) \$ (?![\d$])
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def marked(text: str) -> str:
    """The text with its formulas marked."""
    if "$" not in text:
        return text
    return DOLLARS.sub(lambda found: found[1] or f"\\({found['formula']}\\)", text)
