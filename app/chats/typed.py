"""What a person typed, or a file brought, made text that can be kept: whole characters, names of one line.

What is too long otherwise, its callers say.
"""

from __future__ import annotations

from ..errors import AppError
from .records import NAME_LENGTH


def sound(text: str) -> str:
    """The text without what no file can hold: half characters, and the character that ends texts in C."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def name_of(text: str) -> str:
    """A folder's or preset's name. Raises AppError where there is none."""
    if not (name := sound(" ".join(text.split()))[:NAME_LENGTH]):
        raise AppError("Write a name first: this one is empty.")
    return name
