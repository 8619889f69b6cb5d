"""Replies in parts: what a model thinks in one, what it says in another, told apart by control tokens.

    gpt-oss   <|channel|>analysis<|message|> ... <|end|><|start|>assistant<|channel|>final<|message|> ...
    Gemma 4   <|channel>thought ⏎ ... <channel|> ...

They are shown as other models' replies are: thoughts between THINKS and THOUGHT, then the answer. Formats:
https://github.com/openai/harmony/blob/main/docs/format.md
https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..types import THINKS, THOUGHT

FINAL = "final"  # the channel of what is said; what stands in others is thought
# What a control token begins: NAME, that of a channel, up to TEXT, what is written in it; LINE, the name of
# a channel, up to the line's end, and its text; NOTHING, neither thought nor said; SAID, what is said.
NAME, LINE, TEXT, NOTHING, SAID = range(5)


@dataclass(frozen=True, slots=True)
class Form:
    """A family's way to write parts: its control tokens, and what others' marks are spelled as."""

    tokens: Mapping[str, int]
    thinks: str
    thought: str
    says: str  # before a reply without thoughts


FORMS = (
    Form(
        {"<|channel|>": NAME, "<|message|>": TEXT, "<|start|>": NOTHING, "<|end|>": NOTHING},
        thinks="<|channel|>analysis<|message|>",
        thought="<|end|><|start|>assistant<|channel|>final<|message|>",
        says="<|channel|>final<|message|>",
    ),
    Form(
        {"<|channel>": LINE, "<channel|>": SAID},
        thinks="<|channel>thought\n",
        thought="\n<channel|>",
        says="",
    ),
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The form that a vocabulary has the control tokens of, and what follows each, by id."""

    form: Form
    follows: Mapping[int, int]

    @staticmethod
    def of(ids: Mapping[str, int]) -> Parts | None:
        """`ids` of tokens by their text; None where there are no parts."""
        form = next((form for form in FORMS if form.tokens.keys() <= ids.keys()), None)
        return Parts(form, {ids[token]: what for token, what in form.tokens.items()}) if form else None

    def last(self, reply: Sequence[int]) -> tuple[int, ...]:
        """What a reply says: the ids behind the last mark of it."""
        marks = [place for place, i in enumerate(reply, 1) if self.follows.get(i) in (TEXT, SAID)]
        return tuple(reply[marks[-1] if marks else 0 :])

    def spell(self, text: str, begun: bool) -> list[tuple[str, bool]]:
        """A reply's text, or more of one that has `begun`, as pieces: (text, has it control tokens). Marks of
        thoughts count where thoughts stand; further on they are words.
        """
        if text.lstrip().startswith(THINKS):
            head, text = self.form.thinks, text.lstrip().removeprefix(THINKS).lstrip()
        elif not begun:
            return [(piece, is_mark) for piece, is_mark in ((self.form.says, True), (text, False)) if piece]
        else:
            head = ""
        thoughts, mark, said = text.partition(THOUGHT)
        pieces = [(head, True), (thoughts.rstrip() if mark else thoughts, False)]
        pieces += [(self.form.thought, True), (said.lstrip(), False)] if mark else []
        return [piece for piece in pieces if piece[0]]


class PartReader:
    """One reply, token by token, as the text that is shown; without parts, as it is."""

    def __init__(self, parts: Parts | None) -> None:
        self._follows: Mapping[int, int] = parts.follows if parts else {}
        self._name: bytes | None = None  # a channel's, while that is written
        self._is_line = False  # that name ends with its line
        self._hidden = self._thinking = False  # between parts; in a part of thoughts

    def read(self, token_id: int, piece: bytes) -> bytes:
        """What a token adds, whose own text is `piece`."""
        following = self._follows.get(token_id)
        if following in (NAME, LINE):
            self._name, self._is_line = b"", following == LINE
        elif following == NOTHING:
            self._hidden = True
        elif following is not None:
            return self._begin(thinks=following == TEXT and self._is_thought())
        elif self._name is not None:
            self._name += piece
            if self._is_line and b"\n" in self._name:
                self._name, _, text = self._name.partition(b"\n")
                return self._begin(thinks=self._is_thought()) + text
        elif not self._hidden:
            return piece
        return b""

    def _is_thought(self) -> bool:
        return self._name is not None and self._name.decode("utf-8", "replace").strip() != FINAL

    def _begin(self, thinks: bool) -> bytes:
        self._name, self._hidden = None, False
        was, self._thinking = self._thinking, thinks
        mark = THINKS if thinks else f"\n{THOUGHT}\n\n"
        return b"" if was == thinks else mark.encode()
