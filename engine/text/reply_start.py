"""Where a reply begins: after what the template has written of it, or where an unfinished one stopped.

Some templates ask for a reply with its first word, <think>. That word belongs to the reply: it comes first
in the stream, with its ids, so that what is kept of the reply is what the model has seen of it. An unfinished
reply goes on in the same way, from its own ids; `Request.begin` is written for the model then, or at the very
start. Knows no scheduling: ids go out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import BadRequest
from ..types import THINKS, THOUGHT, Message, Request
from .prompt import reply_ids
from .reply_parts import PartReader
from .tokenizer import Tokenizer

_OPENED = re.compile(rf"{THINKS}\s*$")
_MARKS = re.compile(f"({THINKS}|{THOUGHT})")
_TAIL = 8  # tokens: as many as the mark has where it is no token of its own, and a line's end


@dataclass(frozen=True, slots=True)
class ReplyStart:
    """`prompt`: all ids up to the first that is sampled. The last `num_own` of them are the reply's, of which
    `new_ids`, with their `text`, are not known to who asked.
    """

    prompt: list[int]
    num_own: int
    new_ids: tuple[int, ...]
    text: str


def start_reply(
    tokenizer: Tokenizer, request: Request, build: Callable[[Sequence[Message]], list[int]]
) -> ReplyStart:
    """`build` makes a prompt of messages. Raises what it raises, and BadRequest."""
    last = request.messages[-1] if request.messages else Message("user", "")
    if not request.continue_last:
        prompt, own = build(request.messages), 0
        text, new = _written(tokenizer, prompt)
    elif last.role != "assistant" or not last.content:
        raise BadRequest("Only a reply that was begun can go on.")
    else:
        prompt = build(request.messages[:-1])
        if last.content.lstrip().startswith(THINKS):
            del prompt[len(prompt) - len(_written(tokenizer, prompt)[1]) :]
        said = reply_ids(tokenizer, last) or _spelled(tokenizer, last.content, prompt, begun=False)
        prompt, own, text, new = [*prompt, *said], len(said), "", []
    if request.begin:
        added = _spelled(tokenizer, request.begin, prompt, begun=own > 0)
        prompt, text, new = [*prompt, *added], text + request.begin, [*new, *added]
    return ReplyStart(prompt, own + len(new), tuple(new), text)


def _written(tokenizer: Tokenizer, prompt: list[int]) -> tuple[str, list[int]]:
    """What the template has written of the reply, as text and as the ids at the prompt's end."""
    for count in range(1, min(_TAIL, len(prompt)) + 1):
        ids, reader = prompt[-count:], PartReader(tokenizer.parts)
        text = b"".join(reader.read(i, tokenizer.piece_bytes(i)) for i in ids).decode("utf-8", "replace")
        if _OPENED.match(text):
            return text, ids
    return "", []


def _spelled(tokenizer: Tokenizer, text: str, before: list[int], begun: bool) -> list[int]:
    """The ids of a reply whose own are not known: an edited one, or another model's; or of more of one."""
    if tokenizer.parts:
        pieces = tokenizer.parts.spell(text, begun)
    else:
        pieces = [(part, place % 2 == 1) for place, part in enumerate(_MARKS.split(text))]
    ids: list[int] = []
    for part, is_mark in pieces:
        last = (ids or before)[-1:]
        ids += tokenizer.encode(part, special=is_mark, before=last[0] if last else None)
    return ids
