"""The words of the page of memory: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "memory": ("Memory", "内存"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(["memory"])
