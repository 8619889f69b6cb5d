"""What a model thinks and what it says, told apart while the reply grows.

Programs get thoughts in a field of their own, `reasoning_content`, as DeepSeek's API has them.
"""

from __future__ import annotations

from engine import THINKS, THOUGHT, Split


class Halves:
    """A growing reply. Given out is what can no longer be part of a mark."""

    def __init__(self) -> None:
        self._text = self._thoughts = self._answer = ""

    def push(self, text: str) -> tuple[str, str]:
        """More of the reply; what there is more of its thoughts, and of its answer."""
        self._text += text
        split = Split.of(self._text)
        if split.thinking:
            return self._more(_without_mark(split.thoughts), "")
        may_think = THINKS.startswith(self._text.lstrip())
        return self._more(split.thoughts, "" if may_think else split.answer)

    def finish(self) -> tuple[str, str]:
        """What was kept back."""
        split = Split.of(self._text)
        return self._more(split.thoughts, split.answer)

    def _more(self, thoughts: str, answer: str) -> tuple[str, str]:
        more = thoughts[len(self._thoughts) :], answer[len(self._answer) :]
        self._thoughts, self._answer = thoughts, answer
        return more


def _without_mark(thoughts: str) -> str:
    """Less what may be the beginning of the mark that ends them."""
    ends = (THOUGHT[:size] for size in range(len(THOUGHT) - 1, 0, -1))
    return next((thoughts.removesuffix(end).rstrip() for end in ends if thoughts.endswith(end)), thoughts)
