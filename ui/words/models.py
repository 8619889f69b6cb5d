"""The words of the page of models: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "models": ("Models", "模型"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(["models"])
