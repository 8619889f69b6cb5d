"""A vocabulary, from whatever file it came: which tokens there are, which steer the model, how text is cut.

vocabulary_gguf.py and vocabulary_json.py make it; tokenizer.py turns text into ids with it. Two spellings of
tokens: bytes as letters ("bytes", as GPT-2 has them), or text with a space written "▁" ("pieces", as
SentencePiece has it).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Literal, TypeVar

import tokenizers

from ..errors import BadCheckpoint, EngineError

Made = TypeVar("Made")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # tokenizer.ggml.token_type
SPACE = "▁"  # how SentencePiece writes a space

# Control tokens that end an answer wherever they occur; a file names at most three of its model's.
_END_TOKENS = """<|im_end|> <|eot_id|> <|eom_id|> <|end|> <|endoftext|> <|end_of_text|> <end_of_turn> </s>
    <turn|> <EOT> <eos> <｜end▁of▁sentence｜> <|fim_pad|> <|repo_name|> <|file_sep|> <|return|> <|call|>"""
END_TOKENS = frozenset(_END_TOKENS.split())


class Texts(Sequence[str]):
    """Texts by number, in one piece of memory: a list of them takes seven times as much."""

    def __init__(self, texts: Iterable[str]) -> None:
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._bytes, self._ends = b"".join(parts), array("q", accumulate(map(len, parts), initial=0))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._bytes[self._ends[index] : self._ends[index + 1]].decode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All that a Tokenizer needs to know."""

    tokens: Texts  # by id; empty where an id has no token
    types: bytes
    spelling: Literal["bytes", "pieces"]
    inside: tokenizers.Tokenizer  # cuts text that stands anywhere
    first: tokenizers.Tokenizer | None  # cuts text that a space is put before; None: that is never done
    space_after_found: bool  # not only at the beginning, but after control and user-defined tokens, too
    bos_id: int | None
    add_bos: bool
    eos_id: int | None  # the end token that templates write
    eos_ids: frozenset[int]
    chat_template: str | None
    digest: str  # of all that decides which ids a text has
    eats_left: frozenset[int] = frozenset()  # control tokens that swallow white space before them
    eats_right: frozenset[int] = frozenset()


def named_ends(tokens: Iterable[str], types: list[int]) -> set[int]:
    """Ids of the tokens that are known to end answers, if they are no mere text here.

    Gemma has </s> as HTML. Where <|return|> ends answers, as in gpt-oss, <|end|> only ends a part of one.
    """
    found = {token: i for i, token in enumerate(tokens) if token in END_TOKENS}
    if "<|return|>" in found:
        found.pop("<|end|>", None)
    served = (CONTROL, USER_DEFINED)
    return {i for token, i in found.items() if types[i] in (served if token != "</s>" else (CONTROL,))}


def digest(*parts: str | bytes) -> str:
    """A hash that tells vocabularies apart."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(b"%d:" % len(data) + data)
    return hasher.hexdigest()


def from_library(make: Callable[[], Made], what: str, kind: type[EngineError] = BadCheckpoint) -> Made:
    """Runs the tokenizers library, which raises plain Exceptions, and panics, which are no Exceptions."""
    try:
        return make()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise kind(f"{what}: {str(error)[:300].rstrip('.')}.") from error
