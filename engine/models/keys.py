"""A checkpoint's metadata, asked for by type and limits: a sound answer, or an error that names both.

The same for GGUF, whose keys begin with the architecture, and for config.json. Knows no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..checkpoints import Checkpoint
from ..errors import BadCheckpoint, UnsupportedModel

MOST = 1 << 20  # layers, heads, widths: enough for any model


class Keys:
    """A table of settings; `prefix` stands before every key. What is null counts as missing."""

    def __init__(
        self, checkpoint: Checkpoint, prefix: str = "", table: Mapping[str, Any] | None = None
    ) -> None:
        self.table = checkpoint.metadata if table is None else table
        self.checkpoint, self.prefix, self.file = checkpoint, prefix, checkpoint.path.name

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """Whatever stands there."""
        value = self.table.get(self.prefix + key)
        return default if value is None else value

    def unserved(self, why: str) -> UnsupportedModel:
        """The error for what is sound, but cannot be computed here."""
        return UnsupportedModel(f"{self.file} cannot be used: {why}.")

    def bad(self, key: str, value: Any, wanted: str) -> BadCheckpoint:
        """The error for what makes no sense."""
        shown = "missing" if value is None else f"{value!r:.40}"
        return BadCheckpoint(f"{self.file} is damaged: {self.prefix}{key} is {shown}; it must be {wanted}.")

    def neutral(self, values: Mapping[str, Any]) -> None:
        """Refuse keys that would change the computation, unless they say what changes nothing."""
        for key, wanted in values.items():
            value = self.get(key, wanted)
            if value != wanted:
                raise self.unserved(f"{self.prefix}{key} is {value!r:.40}; only {wanted!r} is served")

    def count(self, key: str, most: int = MOST, default: int | None = None) -> int:
        """A whole number from 1 to `most`."""
        value = self.get(key, default)
        if isinstance(value, list):
            raise self.unserved(f"{self.prefix}{key} differs from layer to layer")
        if type(value) is not int or not 1 <= value <= most:
            raise self.bad(key, value, f"a whole number from 1 to {most}")
        return value

    def counts(self, key: str, length: int, most: int = MOST, default: int | None = None) -> list[int]:
        """The same for each of so many layers: a list, or one number for all."""
        value = self.get(key)
        if not isinstance(value, list) or length == 1:
            return [self.count(key, most, default)] * length
        if len(value) != length or not all(type(each) is int and 1 <= each <= most for each in value):
            raise self.bad(key, value, f"a list of {length} whole numbers from 1 to {most}")
        return value

    def real(self, key: str, most: float, default: float | None = None, above: float = 0.0) -> float:
        """A number above 0, or another limit, up to `most`; infinities and not-a-numbers are neither."""
        value = self.get(key, default)
        if type(value) not in (int, float) or not above < value <= most:
            raise self.bad(key, value, f"a number above {above:g}, up to {most:g}")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or False."""
        value = self.get(key, default)
        if type(value) is not bool:
            raise self.bad(key, value, "true or false")
        return value

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of the words that are understood."""
        value = self.get(key, default)
        if value not in known:
            raise self.unserved(f"{self.prefix}{key} is {value!r:.40}; these are served: {', '.join(known)}")
        return str(value)

    def reals(self, key: str, length: int) -> tuple[float, ...]:
        """A list of so many numbers above 0."""
        value = self.get(key)
        sound = isinstance(value, list) and len(value) == length
        if not sound or not all(type(x) in (int, float) and 0 < x < 1e9 for x in value):
            raise self.bad(key, value, f"a list of {length} numbers above 0")
        return tuple(float(x) for x in value)

    def divides(self, key: str, part: int, whole: int) -> None:
        """A part that must go into the whole without a rest."""
        if whole % part:
            raise self.bad(key, self.get(key, part), f"such that {part} divides {whole}")
