"""Replies in parts, as gpt-oss writes them: what it thinks in one channel, what it says in another.

    <|channel|>analysis<|message|> ... <|end|><|start|>assistant<|channel|>final<|message|> ... <|return|>

They are shown as other models' replies are: thoughts between THINKS and THOUGHT, then the answer. Format:
https://github.com/openai/harmony/blob/main/docs/format.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..types import THINKS, THOUGHT

FINAL = "final"
_MARKS = re.compile(rf"\s*({THINKS}|{THOUGHT})\s*")
_SPELLED = {
    THINKS: "<|channel|>analysis<|message|>",
    THOUGHT: "<|end|><|start|>assistant<|channel|>final<|message|>",
    "": "<|channel|>final<|message|>",  # a reply without thoughts
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The control tokens of a vocabulary that has parts."""

    channel: int
    message: int
    start: int
    end: int

    @staticmethod
    def of(ids: Mapping[str, int]) -> Parts | None:
        """`ids` of control tokens by their text; None where there are no parts."""
        wanted = [ids.get(f"<|{name}|>") for name in Parts.__slots__]
        return None if None in wanted else Parts(*wanted)  # type: ignore[arg-type]

    def last(self, reply: Sequence[int]) -> tuple[int, ...]:
        """What a reply says: the ids behind its last mark of a message."""
        ids = tuple(reply)
        return ids[len(ids) - ids[::-1].index(self.message) :] if self.message in ids else ids


class PartReader:
    """One reply, token by token, as the text that is shown."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._channel: bytes | None = None  # its name, while that is written
        self._hidden = self._thinking = False  # between parts; in a part of thoughts

    def read(self, token_id: int, piece: bytes) -> bytes:
        """What a token adds, whose own text is `piece`."""
        parts = self._parts
        if token_id == parts.channel:
            self._channel = b""
        elif token_id == parts.message:
            says = self._channel is None or self._channel.decode("utf-8", "replace").strip() == FINAL
            self._channel, self._hidden = None, False
            was, self._thinking = self._thinking, not says
            mark = THINKS if self._thinking else f"\n{THOUGHT}\n\n"
            return b"" if was == self._thinking else mark.encode()
        elif token_id in (parts.start, parts.end):
            self._hidden = True
        elif self._channel is not None:
            self._channel += piece
        elif not self._hidden:
            return piece
        return b""


def spell(text: str, begun: bool) -> list[tuple[str, bool]]:
    """A reply's text, or more of one that has `begun`, as pieces: (text, whether it is control tokens)."""
    first, *rest = _MARKS.split(text)
    pieces = [(first, False)]
    if not begun and not text.lstrip().startswith(THINKS):
        pieces.insert(0, (_SPELLED[""], True))
    for mark, said in zip(rest[::2], rest[1::2], strict=True):
        pieces += [(_SPELLED[mark], True), (said, False)]
    return [piece for piece in pieces if piece[0]]
