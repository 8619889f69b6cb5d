"""A piece of an answer as plain words: without the signs that Markdown draws it by.

A piece may begin and end in the middle of what such signs enclose, or of code. The words that were looked for
stand between the characters 2 and 3, which are kept. Knows no index.
"""

from __future__ import annotations

import re

LETTER = "[0-9A-Za-z_]"  # a star between two of them is code's, as in 2**n
SIGNS = tuple(  # in this order
    (re.compile(sign, re.MULTILINE), instead)
    for sign, instead in (
        (r"`+|^[ \t]*+~{3,}", ""),
        (r"^[ \t]*+\|?(?:[ \t]*:?-+:?[ \t]*\|)+[-: \t]*$", ""),  # below the head of a table
        (r"^[ \t]*+(?:>[ \t]?|#{1,6}[ \t]+)+", ""),
        (r"^[ \t]*+[-*+][ \t]+", "• "),
        (r"!?\[([^\]\[]*)\]\([^)\s\x02\x03]*\)", r"\1"),
        (rf"(?<!{LETTER})(\*{{1,3}})(?=[^\s*])(.{{0,200}}?[^\s*])\1(?!\x02?{LETTER}|\*)", r"\2"),
        # two stars whose partners lie outside of the piece
        (rf"(?<!{LETTER})\*\*(?=[^\s*])|(?<=[^\s*])\*\*(?!\x02?{LETTER})", ""),
    )
)


def plain(text: str) -> str:
    """The piece without signs."""
    for sign, instead in SIGNS:
        text = sign.sub(instead, text)
    return text
