"""The words of the page of settings: name -> (English,
Chinese). {name} in a text is a place for a value.
"""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "settings": ("Settings", "设置"),
}
# names that scripts put together from pieces
COMPUTED = frozenset(["settings"])
