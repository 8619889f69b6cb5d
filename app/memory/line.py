"""The line of those who wait for a model, first come first served, and the streams that they are given.

When a model is in memory, everyone in the line who wants it is served; who comes later for it stands behind
those who want another, so that no model keeps the others out. Loads nothing; runtime.py does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine import Delta, Finish, FinishReason, Stream, Usage


@dataclass(slots=True, eq=False)
class Place:
    """Somebody's place. Once it is served, `answer` keeps its model in memory, or `error` says why it is not
    there.
    """

    target: str
    is_choice: bool = False  # of the person, what answers from now on; a later one takes its place
    answer: Running | None = None
    error: Exception | None = None


class Line:
    """Places in order. Its user holds a lock."""

    def __init__(self) -> None:
        self._places: list[Place] = []

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def first(self) -> str:
        """The model that is wanted first."""
        return self._places[0].target

    def wants(self, target: str) -> bool:
        """Whether somebody waits for this model."""
        return any(place.target == target for place in self._places)

    def enter(self, target: str, is_choice: bool = False) -> Place:
        """A place at the end."""
        self._places.append(place := Place(target, is_choice))
        return place

    def drop_choice(self) -> None:
        """What the person chose last need not come any more."""
        self._places = [place for place in self._places if not place.is_choice]

    def leave(self, place: Place) -> None:
        """It does not wait any more."""
        if place in self._places:
            self._places.remove(place)

    def serve(self, target: str) -> list[Place]:
        """All who want this model; they leave the line."""
        served = [place for place in self._places if place.target == target]
        self._places = [place for place in self._places if place.target != target]
        return served


class _Relay:
    """What a stream says that is perhaps not there yet."""

    def __init__(self) -> None:
        self._stream: Stream | None = None

    @property
    def prompt_tokens(self) -> int:
        """See Stream."""
        return self._stream.prompt_tokens if self._stream is not None else 0

    @property
    def read_tokens(self) -> int:
        """See Stream."""
        return self._stream.read_tokens if self._stream is not None else 0

    def cancel(self) -> None:
        """See Stream."""
        if self._stream is not None:
            self._stream.cancel()


class Running(_Relay):
    """The stream of a request that the model in memory has; `ended` is called when it is over."""

    def __init__(self, ended: Callable[[Running], None]) -> None:
        super().__init__()
        self._ended = ended

    def over(self, stream: Stream) -> Running:
        """Now it is this stream."""
        self._stream = stream
        return self

    def __iter__(self) -> Iterator[Delta | Finish]:
        assert self._stream is not None
        try:
            for part in self._stream:
                if isinstance(part, Finish):
                    self._ended(self)
                yield part
        finally:
            self._ended(self)


class Waiting(_Relay):
    """The stream of a request that came before its model. Iterating raises what submit would have raised.

    `wait` sleeps until the place is served, or until what it is given says so after a `wake`.
    """

    def __init__(
        self,
        place: Place,
        wait: Callable[[Place, Callable[[], bool]], None],
        wake: Callable[[], None],
        submit: Callable[[Place], Stream],
    ) -> None:
        super().__init__()
        self._place, self._wait, self._wake, self._submit = place, wait, wake, submit
        self._cancelled = threading.Event()

    def __iter__(self) -> Iterator[Delta | Finish]:
        self._wait(self._place, self._cancelled.is_set)
        if self._cancelled.is_set():
            self._place.answer = None
            yield Finish(FinishReason.CANCELLED, Usage())
            return
        self._stream = self._submit(self._place)
        if self._cancelled.is_set():  # while it was submitted
            self._stream.cancel()
        yield from self._stream

    def cancel(self) -> None:
        """See Stream."""
        self._cancelled.set()
        self._wake()
        super().cancel()
