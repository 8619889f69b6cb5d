"""A text to go on with, just as it is: no template, no turns. Or one with a hole, to be filled.

A hole is written as models of code were taught it: what stands before, what stands after, then the middle
(Bavarian et al., https://arxiv.org/abs/2207.14255), each behind a control token of its own.
"""

from __future__ import annotations

from ..errors import BadRequest
from .prompt import check_hope, check_size, with_bos
from .tokenizer import Tokenizer

# before, after, middle
MARKS = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # https://github.com/QwenLM/Qwen2.5-Coder
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # https://github.com/bigcode-project/starcoder
    ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # https://github.com/deepseek-ai/DeepSeek-Coder
)


def text_prompt(tokenizer: Tokenizer, text: str, suffix: str | None, limit: int) -> list[int]:
    """The ids of `text`, in which control tokens count; with a `suffix` those of the hole between the two,
    in which they are mere text. limit: how many tokens may fit.

    Raises BadRequest, also where the model knows no holes, and PromptTooLong where it is hopeless.
    """
    check_size(len(text) + len(suffix or ""))
    if suffix is None and not text.strip():
        raise BadRequest("The prompt is empty.")
    pieces = [(text, True)] if suffix is None else _around(tokenizer, text, suffix)
    ids: list[int] = []
    for piece, special in pieces:
        check_hope(tokenizer, piece, special, limit, len(ids))
        ids += tokenizer.encode(piece, special, ids[-1] if ids else None)
    return with_bos(tokenizer, ids)


def _around(tokenizer: Tokenizer, text: str, suffix: str) -> list[tuple[str, bool]]:
    """Pieces, and whether control tokens count in them."""
    for before, after, middle in MARKS:
        if all(_is_token(tokenizer, mark) for mark in (before, after, middle)):
            return [(before, True), (text, False), (after, True), (suffix, False), (middle, True)]
    raise BadRequest("This model was not made to fill in what is missing before a suffix; send none.")


def _is_token(tokenizer: Tokenizer, text: str) -> bool:
    ids = tokenizer.encode(text, special=True)
    return len(ids) == 1 and tokenizer.text_of(ids[0]) == text
