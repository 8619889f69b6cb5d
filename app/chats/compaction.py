"""A long chat made shorter for the model, when the person asks for it: the model sums up the older part, and
its summary stands for those messages from then on. The page goes on showing them all, and it can be undone.

What is summed up at once leaves room for the summary; a chat that is longer than that, after a change to a
model with less context, is summed up in rounds. Plans it; compactor.py runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from engine import Message, Priority, Request, SamplingParams

from ..documents.context import Counter
from ..errors import AppError
from .conversation import SUM_UP, turns
from .records import Chat, StoredMessage, Summary

KEPT = 0.25  # of the context: the newest messages, which stay as they are
ROUND = 0.7  # of the context: what is summed up at once
LONGEST = 512  # tokens of a summary, or an eighth of a small context
MARKS = 8  # tokens around a message, about
TOO_SHORT = "There is nothing to sum up yet: this chat has no older part than its last question and answer."


def older_part(
    counter: Counter, messages: Sequence[StoredMessage], summary: Summary | None
) -> tuple[int, int]:
    """The first round: the id of the last message to be summed up, and how many messages that are.

    Raises AppError where there is too little.
    """
    said = turns(messages, summary)
    sizes = _sizes(counter, said)
    starts = [place for place, (message, _) in enumerate(said) if message and message.role == "user"]
    ends = [end for end in starts[1:] if said[end - 1][0] is not None]
    so_far, limit = list(accumulate(sizes)), counter.context_length
    if starts and so_far[-1] > ROUND * limit:  # the last answer too, if it leaves no room by itself
        ends.append(len(said))
    if not ends:
        raise AppError(TOO_SHORT)
    wanted = [end for end in ends if so_far[-1] - so_far[end - 1] >= KEPT * limit] or ends[:1]
    fitting = [end for end in wanted if so_far[end - 1] <= ROUND * limit] or wanted[:1]
    last = said[fitting[-1] - 1][0]
    assert last is not None
    return last.id, sum(message is not None for message, _ in said[: fitting[-1]])


def fits_after(counter: Counter, messages: Sequence[StoredMessage], summary: Summary) -> bool:
    """Whether what is left needs no other round."""
    return sum(_sizes(counter, turns(messages, summary))) <= ROUND * counter.context_length


def summary_request(
    counter: Counter, chat: Chat, messages: Sequence[StoredMessage], summary: Summary | None, last: int
) -> Request:
    """What the model is asked: the conversation as it was, which is found in the cache, then the task."""
    end = next(place for place, message in enumerate(messages, 1) if message.id == last)
    said = [message for _, message in turns(messages[:end], summary)]
    sizes, limit = counter.count(tuple(message.content for message in said)), counter.context_length
    if sum(sizes) + MARKS * len(said) > 0.8 * limit:  # a document may be as large as that alone
        share = int(0.7 * limit / len(said))
        said = [_cut(message, size, share) for message, size in zip(said, sizes)]
    system = [Message("system", chat.system_prompt)] if chat.system_prompt else []
    return Request(
        messages=(*system, *said, Message("user", SUM_UP)),
        sampling=SamplingParams(temperature=0.3, max_tokens=min(LONGEST, limit // 8)),
        owner=chat.owner,
        priority=Priority.CHAT,
        date=chat.date,
        group=chat.id,
        keep=not chat.is_private,
        model=chat.own_model,
        shorten=True,
    )


def _sizes(counter: Counter, said: Sequence[tuple[StoredMessage | None, Message]]) -> list[int]:
    return [count + MARKS for count in counter.count(tuple(message.content for _, message in said))]


def _cut(message: Message, size: int, share: int) -> Message:
    """A message of not much more tokens than its share: its beginning and its end."""
    if size <= share:
        return message
    kept = max(1, len(message.content) * share // size // 2)
    text = f"{message.content[:kept]}\n[…]\n{message.content[-kept:]}"
    return replace(message, content=text, token_ids=(), tokenizer="")
