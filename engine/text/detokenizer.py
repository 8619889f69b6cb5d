"""Token ids to text as they come: whole characters only, and never a stop string or what may become one.

What `push` and `finish` return, joined, is the answer's text, however it was cut into tokens. Bytes that are
no UTF-8 become U+FFFD; a character that the answer's end cut in two is left out. Knows nothing of end tokens:
a control token adds no text, and whether it ends the answer is the caller's business.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from .reply_parts import PartReader
from .tokenizer import Tokenizer


class Detokenizer:
    """The text of one answer, after the ids that it has `already`. `stopped` once a stop string was written:
    the text ended just before it.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = (), already: Sequence[int] = ()) -> None:
        self.stopped = False
        self._tokenizer = tokenizer
        self._stops = tuple(stops)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # decoded, but it may be the beginning of a stop string
        self._reader = PartReader(tokenizer.parts)
        for token_id in already:  # they may end in the middle of a part, or of a character
            self._decoder.decode(self._piece(token_id))
        # an answer's first word brings SentencePiece's own space
        self._strip_space = tokenizer.space_prefix and not already

    def push(self, token_id: int) -> str:
        """Text that may be shown now; empty while a character or a possible stop string is incomplete."""
        piece = self._piece(token_id)
        if self.stopped or not piece:
            return ""
        if self._strip_space:
            piece, self._strip_space = piece.removeprefix(b" "), False
        text = self._held + self._decoder.decode(piece)
        # the stop string that is complete first, and of two that end together the longer
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        sent = len(text) - max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[sent:]
        return text[:sent]

    def _piece(self, token_id: int) -> bytes:
        """What a token adds to the text that is shown."""
        return self._reader.read(token_id, self._tokenizer.piece_bytes(token_id))

    def finish(self) -> str:
        """The rest: what was held back as the possible beginning of a stop string that did not come."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of text that begins stop."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
