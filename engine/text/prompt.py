"""Messages to prompt ids, such that a reply stands in the next prompt as exactly the ids that were sampled.

The template's own text is tokenized with control tokens on, contents with them off, each piece alone: a
pasted <|im_start|> stays text, and no token reaches across a border. To tell them apart the template is
rendered twice, with the messages and with marks for them. Where the renders differ in nothing else, contents
trimmed or not, the marks say where the contents are; known ids of a reply go there, less the end token,
which the template writes.
A template may do more: cut out reasoning, test a content, write it twice. Such a message is shown to it as
it is, only the control tokens in it as marks, and what becomes of it is tokenized as text; what the prompt
shares with earlier ones ends there. So are blank messages: templates ask whether there is content.
"""

from __future__ import annotations

import datetime
import re
import secrets
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from ..errors import BadRequest, PromptTooLong, TemplateError
from ..types import Message, Split
from .reply_parts import Parts
from .templates import TemplateRenderer, Turn
from .tokenizer import Tokenizer, well_formed

ROLES = ("system", "user", "assistant")
MAX_CHARACTERS = 2_000_000  # what the renderer has memory for; contexts end long before
SLICE, LONG = 10_000, 100_000  # characters

# Marks are private-use characters and digits, which no filter trims or changes, and nobody can guess them.
# The number is a message's place or a control token's id.
_SECRET = f"{secrets.randbelow(10**12):012}"
_MESSAGE, _CONTROL = f"\ue000{_SECRET}.{{}}\ue001", f"\ue002{_SECRET}.{{}}\ue003"
_MESSAGE_MARK, _CONTROL_MARK = (re.compile(mark.format("([0-9]{1,7})")) for mark in (_MESSAGE, _CONTROL))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a rendered prompt: a message's content or, where message is -1, the template's own text."""

    text: str
    message: int = -1


def build_prompt(
    tokenizer: Tokenizer,
    renderer: TemplateRenderer,
    messages: Sequence[Message],
    date: str,
    limit: int,
) -> list[int]:
    """The ids that ask for the next reply. date: ISO, "" for today. limit: how many tokens may fit.

    Raises BadRequest, PromptTooLong (where it is hopeless; else the caller counts) or TemplateError.
    """
    _check(messages)
    date = date or datetime.date.today().isoformat()
    if tokenizer.parts:  # its template takes what a reply says, and asks for each part by itself
        messages = [_last_part(tokenizer.parts, message) for message in messages]
    turns = [(message.role, _mark_controls(tokenizer, well_formed(message.content))) for message in messages]
    replies = {place: reply for place, m in enumerate(messages) if (reply := reply_ids(tokenizer, m))}
    pieces, shown = _divide(renderer, turns, date, replies.keys())
    times = Counter(piece.message for piece in pieces)
    spliced = {place: reply for place, reply in replies.items() if times[place] == 1}
    gap = _gap(renderer, pieces, shown, date, max(spliced)) if spliced else ""
    ids: list[int] = []

    def add(text: str, special: bool) -> None:
        check_hope(tokenizer, text, special, limit, len(ids))
        ids.extend(tokenizer.encode(text, special, ids[-1] if ids else None))

    for piece, following in zip(pieces, [*pieces[1:], Piece("")], strict=True):
        text = piece.text.removesuffix(gap if following.message in spliced else "")
        if piece.message in spliced:
            ids += spliced[piece.message]
        elif piece.message >= 0:
            add(_CONTROL_MARK.sub(lambda mark: tokenizer.text_of(int(mark[1])), text), special=False)
        else:
            for n, part in enumerate(_CONTROL_MARK.split(text)):  # text and ids of controls by turns
                add(tokenizer.text_of(int(part)) if n % 2 else part, special=n % 2 == 0)
    return with_bos(tokenizer, ids)


def with_bos(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """A prompt's ids behind the begin token, where the model wants one; it may be written out already."""
    if tokenizer.add_bos and tokenizer.bos_id is not None and ids[:1] != [tokenizer.bos_id]:
        ids.insert(0, tokenizer.bos_id)
    return ids


def _last_part(parts: Parts, message: Message) -> Message:
    if message.role != "assistant":
        return message
    answer = Split.of(message.content).answer
    return replace(message, content=answer, token_ids=parts.last(message.token_ids) if answer else ())


def _check(messages: Sequence[Message]) -> None:
    if not messages or not messages[-1].content.strip():
        raise BadRequest("There is no message to answer." if not messages else "The last message is empty.")
    for message in messages:
        if message.role not in ROLES:
            raise BadRequest(f"A message has the role {message.role[:40]!r}; there are {', '.join(ROLES)}.")
    check_size(sum(len(message.content) for message in messages))


def check_size(num_characters: int) -> None:
    """Raises PromptTooLong for more than anybody's context."""
    if num_characters > MAX_CHARACTERS:
        raise PromptTooLong(
            f"This conversation has {num_characters:,} characters; at most {MAX_CHARACTERS:,} are taken. "
            "Shorten it or start a new chat."
        )


def check_hope(tokenizer: Tokenizer, text: str, special: bool, limit: int, count: int) -> None:
    """To tokenize megabytes takes seconds and a gigabyte: so a long text that can't fit, after `count`
    tokens, is counted in slices and no further than needed. Cut like that it has a few tokens more.
    """
    hopeless = 2 * limit + LONG
    for start in range(0, len(text) if len(text) > LONG else 0, SLICE):
        if count > hopeless:
            break
        count += len(tokenizer.encode(text[start : start + SLICE], special))
    if count > hopeless:
        raise PromptTooLong(
            f"This conversation has more than {count // 2:,} tokens; {limit:,} fit, the answer included. "
            "Shorten it or start a new chat."
        )


def _mark_controls(tokenizer: Tokenizer, text: str) -> str:
    def mark(found: re.Match[str]) -> str:
        return _CONTROL.format(tokenizer.encode(found[0], special=True)[0])

    return tokenizer.control_text.sub(mark, text)


def reply_ids(tokenizer: Tokenizer, message: Message) -> tuple[int, ...]:
    """The sampled ids of a reply, if they are this tokenizer's, without an end token."""
    ids = message.token_ids
    if message.role != "assistant" or message.tokenizer != tokenizer.fingerprint:
        return ()
    if not all(0 <= token_id < tokenizer.vocab_size for token_id in ids):
        return ()
    return ids[:-1] if ids and ids[-1] in tokenizer.eos_ids else ids


def _divide(
    renderer: TemplateRenderer, turns: list[Turn], date: str, replies: Set[int]
) -> tuple[list[Piece], list[Turn]]:
    """The prompt in pieces, and the turns as the template was shown them, most with a mark for a content."""
    prompt = renderer.render(turns, date)
    hidden = {place for place, (_, content) in enumerate(turns) if content.strip() or place in replies}
    while hidden:
        shown = [
            (role, _MESSAGE.format(place) if place in hidden else content)
            for place, (role, content) in enumerate(turns)
        ]
        try:
            pieces, misfits = _fit(renderer.render(shown, date), prompt, turns)
        except TemplateError:  # it does not take a mark for a content
            break
        if not misfits:
            return pieces, shown
        hidden -= misfits
    return [Piece(prompt)], turns


def _fit(layout: str, prompt: str, turns: list[Turn]) -> tuple[list[Piece], set[int]]:
    """Puts contents for the marks in layout, to get prompt; also the messages with which that fails."""
    first, *rest = _MESSAGE_MARK.split(layout)
    everything = set(range(len(turns)))
    if not prompt.startswith(first):
        return [], everything
    pieces, misfits, done = [Piece(first)], set[int](), len(first)
    for place, text in zip(map(int, rest[::2]), rest[1::2], strict=True):
        if place not in everything:  # a template has counted for itself
            return [], everything
        content = turns[place][1]
        for written in (content, content.strip(), content.lstrip(), content.rstrip()):
            if prompt.startswith(written + text, done):
                pieces += [Piece(written, place), Piece(text)]
                done += len(written) + len(text)
                break
        else:  # go on where the template's text does
            misfits.add(place)
            done = prompt.find(text, done) + len(text)
            if done < len(text):
                return [], everything
    return pieces, misfits if done == len(prompt) else everything


def _gap(renderer: TemplateRenderer, pieces: list[Piece], shown: list[Turn], date: str, reply: int) -> str:
    """White space that the template puts before a reply of the past, and not before one that is to come.

    Llama 2 writes "[/INST] Hello" but asks with "[/INST]": the space is the model's, part of the sampled ids.
    """
    marked = [_MESSAGE.format(piece.message) if piece.message >= 0 else piece.text for piece in pieces]
    before = "".join(marked).partition(_MESSAGE.format(reply))[0]
    try:
        asked = renderer.render(shown[:reply], date)
    except TemplateError:
        return ""
    gap = before.removeprefix(asked)
    return gap if gap != before and gap.isspace() else ""
