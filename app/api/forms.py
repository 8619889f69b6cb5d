"""The two forms that an answer has in the API, a message or a bare text; each whole, or part by part.

What a part says is taken from the engine as it comes; nothing is known here of events and streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from engine import Split

from .reasoning import Halves


def choice(own: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    """The one of an answer, with what both forms have in common."""
    return {"index": 0, **own, "logprobs": None, "finish_reason": finish_reason}


class Form(Protocol):
    """What a choice is of its own: of the whole answer, and as it begins, grows and ends."""

    id: str
    whole_object: str
    part_object: str

    def whole(self, text: str) -> dict[str, Any]: ...
    def begin(self) -> Iterable[dict[str, Any]]: ...
    def push(self, text: str) -> Iterable[dict[str, Any]]: ...
    def rest(self) -> Iterable[dict[str, Any]]: ...
    def end(self) -> dict[str, Any]: ...


class ChatForm:
    """A message; its parts are deltas."""

    id, whole_object, part_object = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self) -> None:
        self._halves = Halves()

    def whole(self, text: str) -> dict[str, Any]:
        said = Split.of(text)
        thoughts = {"reasoning_content": said.thoughts} if said.thoughts else {}
        return {"message": {"role": "assistant", "content": said.answer, "refusal": None, **thoughts}}

    def begin(self) -> Iterable[dict[str, Any]]:
        return [{"delta": {"role": "assistant", "content": ""}}]

    def push(self, text: str) -> Iterable[dict[str, Any]]:
        return self._deltas(self._halves.push(text))

    def rest(self) -> Iterable[dict[str, Any]]:
        return self._deltas(self._halves.finish())

    def end(self) -> dict[str, Any]:
        return {"delta": {}}

    def _deltas(self, halves: tuple[str, str]) -> Iterable[dict[str, Any]]:
        named = zip(("reasoning_content", "content"), halves, strict=True)
        return [{"delta": {name: text}} for name, text in named if text]


class TextForm:
    """A text; so are its parts."""

    id, whole_object, part_object = "cmpl", "text_completion", "text_completion"

    def whole(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def begin(self) -> Iterable[dict[str, Any]]:
        return []

    def push(self, text: str) -> Iterable[dict[str, Any]]:
        return [{"text": text}] if text else []

    def rest(self) -> Iterable[dict[str, Any]]:
        return []

    def end(self) -> dict[str, Any]:
        return {"text": ""}
