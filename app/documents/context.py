"""What fits beside a conversation: of the documents given with a message all, or the passages that fit its
question best.

Chosen once, when the model is there to count tokens, and kept with the message: the conversation then stays
the same from turn to turn, and so does its prefix in the cache. Small documents go in whole, smallest first;
those that find no room whole share what is left, passage by passage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from engine import Estimate, Message, Request, Stream

from ..chats.conversation import with_files
from ..chats.records import Attachment
from ..errors import AppError
from ..memory.loading import Later, LoadedModel
from ..memory.runtime import Runtime
from .attachments import Attachments
from .passages import Passage

ANSWER = 1024  # tokens kept for an answer, or a quarter of a small context
LABEL = 16  # tokens of what stands around a passage or a document, at most
LEAST = 48  # tokens: less of a document is not worth giving
BATCH = 32  # passages counted at once
LONGEST_TOKEN = 16  # characters, on the average of a text, in languages and code alike


class Counter(Protocol):
    """Who can count: a model, or the runtime that has one."""

    @property
    def context_length(self) -> int: ...
    def estimate(self, request: Request) -> Estimate: ...
    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]: ...


def room_for_answer(counter: Counter, request: Request) -> int:
    """How many tokens are kept free for the answer."""
    return min(request.sampling.max_tokens or ANSWER, counter.context_length // 4)


def choose(
    counter: Counter, request: Request, files: Sequence[Attachment], kept: Attachments
) -> tuple[Attachment, ...]:
    """What is given of the files beside a request whose last message is the question. Raises AppError."""
    used = counter.estimate(request).prompt_tokens
    left = counter.context_length - used - room_for_answer(counter, request)
    if left < LEAST:
        raise AppError(
            f"The conversation has {used:,} of {counter.context_length:,} tokens, and its answer needs room: "
            "none is left for the files. Sum up the older part, or start a new chat."
        )
    wholes = [_whole(file, kept) for file in files]
    sizes = [_size(counter, text, left) for text in wholes]
    chosen, large = list(files), sorted(range(len(files)), key=sizes.__getitem__)
    while large and sizes[large[0]] <= left / len(large):
        place = large.pop(0)
        chosen[place] = replace(files[place], given=wholes[place], parts=())
        left -= int(sizes[place])
    if large:
        large.sort()
        found, ranking = kept.passages(tuple(files[place].hash for place in large))
        order = ranking.order(request.messages[-1].content)
        taken = _fill(counter, found, order, left - LABEL * len(large))
        for n, place in enumerate(large):
            mine = [taken[at] for at in sorted(taken) if found[at][0] == n]
            chosen[place] = _excerpt(files[place], mine)
    return tuple(chosen)


def _size(counter: Counter, text: str, most: int) -> float:
    """A text's tokens; more than any number where it is hopeless, which need not be counted."""
    return math.inf if len(text) > LONGEST_TOKEN * most else counter.count((text,))[0] + LABEL


def _fill(
    counter: Counter, found: list[tuple[int, Passage]], order: list[int], left: int
) -> dict[int, Passage]:
    """The best passages by their place, as many as there is room for; the last one is cut."""
    taken: dict[int, Passage] = {}
    ranked = iter(order)
    while batch := list(islice(ranked, BATCH)):
        counts = counter.count(tuple(found[at][1].text for at in batch))
        for at, count in zip(batch, counts):
            room = left - LABEL
            if count > room:
                return taken if room < LEAST else {**taken, at: _cut(found[at][1], room / count)}
            taken[at] = found[at][1]
            left = room - count
    return taken


def _cut(passage: Passage, share: float) -> Passage:
    """Its first part, a little less than that share."""
    text = passage.text[: int(len(passage.text) * share * 0.9)]
    last = min(passage.last, passage.first + text.count("\n"))
    return Passage(text, passage.first, last)


def _whole(file: Attachment, kept: Attachments) -> str:
    document = kept.document(file.hash)
    pages = document.unit == "page"
    parts = (f"[page {n}]\n{part}" if pages else part for n, part in enumerate(document.parts, 1))
    return _framed(file, "", "\n".join(parts))


def _excerpt(file: Attachment, passages: list[Passage]) -> Attachment:
    """Passages in the order of the document, and the runs of parts that they come from."""
    runs: list[tuple[int, int]] = []
    texts: list[str] = []
    for passage in passages:
        if runs and passage.first <= runs[-1][1] + 1:
            runs[-1] = runs[-1][0], max(passage.last, runs[-1][1])
        else:
            runs.append((passage.first, passage.last))
        label = in_runs(file.unit, [(passage.first, passage.last)])
        texts.append(f"[{label}]\n{passage.text}")
    if not runs:
        return replace(file, given="", parts=((0, 0),))
    about = f' excerpts="{in_runs(file.unit, runs)} of {file.count}"'
    return replace(file, given=_framed(file, about, "\n".join(texts)), parts=tuple(runs))


def in_runs(unit: str, runs: Sequence[tuple[int, int]]) -> str:
    """pages 3, 7-9"""
    several = len(runs) > 1 or runs[0][0] < runs[0][1]
    numbers = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
    return f"{unit}{'s' * several} {numbers}"


def _framed(file: Attachment, about: str, text: str) -> str:
    name = file.name.replace('"', "'")
    return f'<file name="{name}"{about}>\n{text.strip()}\n</file>'


def with_chosen(request: Request, files: Sequence[Attachment]) -> Request:
    """The request with the files' texts before its last message."""
    *before, last = request.messages
    question = Message(last.role, with_files(last.content, files))
    return replace(request, messages=(*before, question))


@dataclass(frozen=True, slots=True)
class Fitting:
    """A Backend for one request whose files are still to be chosen from; `keep` hears what was."""

    runtime: Runtime
    files: tuple[Attachment, ...]
    kept: Attachments
    keep: Callable[[tuple[Attachment, ...]], None]

    def submit(self, request: Request) -> Stream:
        """See Backend."""

        def write(model: LoadedModel) -> Request:
            chosen = choose(model, request, self.files, self.kept)
            self.keep(chosen)
            return with_chosen(request, chosen)

        return self.runtime.submit(Later(request.model, write))

    def estimate(self, request: Request) -> Estimate:
        """See Backend."""
        return self.runtime.estimate(
            with_chosen(request, choose(self.runtime, request, self.files, self.kept))
        )

    def count(self, texts: tuple[str, ...]) -> tuple[int, ...]:
        """See Backend."""
        return self.runtime.count(texts)
