"""Text to token ids and back, with one model's vocabulary, wherever that came from. No file is opened here.

Control tokens (<|im_start|>) steer the model; they are sought in text only on request. User-defined ones
(<tool_call>) are mere text that is one token, and always found.
"""

from __future__ import annotations

import re
from collections.abc import Set

from ..checkpoints import Checkpoint
from ..errors import BadRequest
from .reply_parts import Parts
from .vocabulary import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED, Vocabulary, from_library
from .vocabulary_gguf import gguf_vocabulary
from .vocabulary_json import json_vocabulary

FAILED = "The model's tokenizer failed on this text"
LONG = 5_000  # characters: what takes longer than the 10 ms that Python gives a thread


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes: printable Latin-1 characters are themselves, the rest is U+0100 onwards."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + n): byte for n, byte in enumerate(hidden)}


_BYTE_OF = _byte_alphabet()


class Tokenizer:
    """One model's vocabulary. Immutable, usable from any thread.

    vocab_size · bos_id · add_bos: a prompt begins with bos_id · eos_id: the end token that templates write ·
    eos_ids: any of them ends an answer · control_ids · control_text: finds control tokens in text ·
    spelling: see Vocabulary · space_prefix: a space is put before some texts · parts: replies are written in
    parts · chat_template · fingerprint: two tokenizers that share it give the same ids.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary, self._tokens, self._types = vocabulary, vocabulary.tokens, vocabulary.types
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id, self.add_bos = vocabulary.bos_id, vocabulary.add_bos
        self.eos_id, self.eos_ids = vocabulary.eos_id, vocabulary.eos_ids
        self.chat_template, self.fingerprint = vocabulary.chat_template, vocabulary.digest
        self.spelling = vocabulary.spelling
        self.space_prefix = vocabulary.first is not None
        bos = set() if self.bos_id is None else {self.bos_id}
        steering = self._of_types(CONTROL, UNKNOWN) | self.eos_ids | bos
        defined = self._of_types(USER_DEFINED)
        self._found = defined | steering  # as a whole, in text
        self._ids = {self._tokens[index]: index for index in sorted(self._found)}  # of doubles the last
        self.parts = Parts.of(self._ids)
        self.control_ids = frozenset(steering.union(self.parts.follows if self.parts else ()))
        defined -= self.control_ids
        self.control_text = self._finder(self.control_ids, eats=False)
        self._defined_text = self._finder(defined)
        self._special_text = self._finder(self._found)

    @staticmethod
    def of(checkpoint: Checkpoint) -> Tokenizer:
        """Raises UnsupportedModel for a kind of tokenizer not served, BadCheckpoint for a broken one."""
        if checkpoint.text is None:
            return Tokenizer(gguf_vocabulary(checkpoint.metadata))
        return Tokenizer(json_vocabulary(checkpoint.text, checkpoint.metadata))

    def encode(self, text: str, special: bool, before: int | None = None) -> list[int]:
        """Ids of text, no bos added; special: control tokens in it are taken as such, not as mere text.

        before: the token that the text comes after, None at the beginning of a prompt: some models' rules put
        a space before a text there. A lone surrogate becomes U+FFFD. Raises BadRequest.
        """
        ids: list[int] = []
        text = well_formed(text)
        done = 0
        for found in (self._special_text if special else self._defined_text).finditer(text):
            ids += self._encode_plain(text[done : found.start()], before)
            before = self._ids[found[0] if found[0] in self._ids else found[0].strip()]
            ids.append(before)
            done = found.end()
        return ids + self._encode_plain(text[done:], before)

    def piece_bytes(self, token_id: int) -> bytes:
        """What a token adds to a text, maybe half a character; nothing for control and unknown ids."""
        if not 0 <= token_id < self.vocab_size or token_id in self.control_ids:
            return b""
        token, kind = self._tokens[token_id], self._types[token_id]
        if kind == BYTE:
            return bytes((int(token[3:5], 16),))
        if kind not in (NORMAL, USER_DEFINED):
            return b""
        if self._vocabulary.spelling == "pieces":
            return token.replace(SPACE, " ").encode()
        if kind == USER_DEFINED:
            return token.encode()
        return b"".join(bytes((_BYTE_OF[char],)) if char in _BYTE_OF else char.encode() for char in token)

    def text_of(self, token_id: int | None) -> str:
        """A token as the vocabulary spells it, <|im_end|>; empty for None and unknown ids."""
        return "" if token_id is None or not 0 <= token_id < self.vocab_size else self._tokens[token_id]

    def _encode_plain(self, text: str, before: int | None) -> list[int]:
        if not text:
            return []
        vocabulary = self._vocabulary
        at_start = before is None or (vocabulary.space_after_found and before in self._found)
        rules = vocabulary.first if vocabulary.first is not None and at_start else vocabulary.inside
        if len(text) < LONG:
            return from_library(lambda: rules.encode(text, add_special_tokens=False).ids, FAILED, BadRequest)
        # this one lets other threads run meanwhile
        encode = rules.encode_batch_fast
        return from_library(lambda: encode([text], add_special_tokens=False)[0].ids, FAILED, BadRequest)

    def _of_types(self, *types: int) -> set[int]:
        return {index for index, kind in enumerate(self._types) if kind in types}

    def _finder(self, ids: Set[int], eats: bool = True) -> re.Pattern[str]:
        """Finds any of the tokens, the longest where several begin; with none, finds nothing.

        eats: white space beside it belongs to what is found, where the vocabulary says so.
        """
        longest_first = sorted(filter(self.text_of, ids), key=lambda index: -len(self._tokens[index]))
        return re.compile("|".join(self._pattern(index, eats) for index in longest_first) or "(?!)")

    def _pattern(self, index: int, eats: bool) -> str:
        before = r"(?:(?<!\s)\s+)?" if eats and index in self._vocabulary.eats_left else ""
        after = r"\s*" if eats and index in self._vocabulary.eats_right else ""
        return before + re.escape(self._tokens[index]) + after


def well_formed(text: str) -> str:
    """The text with surrogates that belong together joined, and others, which no UTF-8 has, as U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
