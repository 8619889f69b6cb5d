"""What a model thought before it answered: where it stands in a reply's text, and how long it took.

A reply keeps its text whole, thoughts and marks included, as the model has written it; what is shown, copied
and exported as its answer is what comes after them.
"""

from __future__ import annotations

from engine import THINKS, THOUGHT, Split


class ThinkingClock:
    """How long a reply thinks, of which it hears every piece. Times in seconds.

    It starts with the first thought, not with the mark before it: some templates write that one, long
    before the model has a word.
    """

    def __init__(self, text: str, seconds: float) -> None:
        """`text` and `seconds`: what there is already of a reply that goes on."""
        self._before, self._tail = seconds, text if Split.of(text).thinking else ""
        self._over = bool(text) and not self._tail
        self._since: float | None = None
        self._until: float | None = None

    def hear(self, text: str, now: float) -> None:
        """More of the reply."""
        if self._over:
            return
        self._tail += text
        if self._since is None:
            body = self._tail.lstrip()
            self._over = not THINKS.startswith(body[: len(THINKS)])
            if not body.removeprefix(THINKS).strip() or self._over or len(body) <= len(THINKS):
                return
            self._since = now
        if THOUGHT in self._tail:
            self._over, self._until = True, now
        self._tail = self._tail[1 - len(THOUGHT) :]

    def seconds(self, now: float) -> float:
        """Up to the end of the thoughts, or so far; 0 if there are none."""
        if self._since is None:
            return self._before
        return self._before + (now if self._until is None else self._until) - self._since
