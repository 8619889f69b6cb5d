"""What is aimed at, in one place: a row for each figure that has a goal.

A goal about a ratio counts in the same run; a ratio above 1 says that we are better, whatever the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SMALL, LARGE = "SmolLM2-135M", "Qwen2.5-Coder-1.5B"  # how the models' files begin
ANY = ""


class Kind(StrEnum):
    """What a goal is about."""

    RATIO = "at least {:g} x"
    LEAST = "at least {:g}"
    MOST = "at most {:g}"


@dataclass(frozen=True, slots=True)
class Goal:
    """A kind and its number."""

    kind: Kind
    number: float

    def met(self, ours: float, ratio: float | None) -> bool | None:
        """Whether it is reached; None where this run cannot tell."""
        if self.kind is Kind.RATIO:
            return None if ratio is None else ratio >= self.number
        return ours >= self.number if self.kind is Kind.LEAST else ours <= self.number

    def __str__(self) -> str:
        return self.kind.format(self.number)


FELT = ("list_ms", "switch_ms", "search_english_common_ms", "search_chinese_common_ms", "search_begun_ms")
# (measure, figure, how the model's file begins, peer) -> goal; ANY fits all, the first row that fits counts
GOALS = {
    ("prefill", "tokens_per_s", LARGE, "llama.cpp"): Goal(Kind.RATIO, 1.8),
    ("prefill", "tokens_per_s", SMALL, "llama.cpp"): Goal(Kind.RATIO, 5),
    ("decode", "tokens_per_s", LARGE, "llama.cpp"): Goal(Kind.RATIO, 1.15),
    ("decode", "tokens_per_s", SMALL, "llama.cpp"): Goal(Kind.RATIO, 2),
    ("decode", "tokens_per_s", LARGE, "read"): Goal(Kind.RATIO, 0.9),
    ("batch", "tokens_per_s", ANY, "llama.cpp"): Goal(Kind.RATIO, 4),
    ("batch", "tokens_per_s", ANY, "vllm"): Goal(Kind.RATIO, 4),
    ("prefix", "times_sooner", ANY, ANY): Goal(Kind.LEAST, 8),
    ("reopen", "times_sooner", ANY, ANY): Goal(Kind.LEAST, 10),
    ("mixed", "stretch", ANY, ANY): Goal(Kind.MOST, 3),
    ("load", "seconds", LARGE, ANY): Goal(Kind.MOST, 2),
    ("restart", "seconds", ANY, ANY): Goal(Kind.MOST, 5),
    ("quality", "perplexity", ANY, "llama.cpp"): Goal(Kind.RATIO, 1),
    ("quality", "mean_kl", ANY, ANY): Goal(Kind.MOST, 0.005),
    ("startup", "first_byte_s", ANY, ANY): Goal(Kind.MOST, 3.5),
    ("startup", "usable_later_s", ANY, ANY): Goal(Kind.MOST, 1.5),
    ("page", "stream_updates_per_s", ANY, ANY): Goal(Kind.LEAST, 10),
    ("page", "stream_core_percent", ANY, ANY): Goal(Kind.MOST, 50),
    ("page", "stream_all_updates_per_s", ANY, ANY): Goal(Kind.LEAST, 10),
    ("page", "stream_all_core_percent", ANY, ANY): Goal(Kind.MOST, 50),
    ("page", "idle_browser_percent", ANY, ANY): Goal(Kind.MOST, 5),
    ("page", "idle_server_percent", ANY, ANY): Goal(Kind.MOST, 5),
    ("page", "map_ms_per_s", ANY, ANY): Goal(Kind.MOST, 50),
    ("page", "tabs_usable", ANY, ANY): Goal(Kind.LEAST, 9),
    **{("store", figure, ANY, ANY): Goal(Kind.MOST, 150) for figure in FELT},
}


def goal_of(measure: str, figure: str, model: str, peer: str) -> Goal | None:
    """The goal of a row, None where there is none. `model` is the file's name."""
    for (about, which, begins, against), goal in GOALS.items():
        if (about, which) == (measure, figure) and model.startswith(begins) and against in (ANY, peer):
            return goal
    return None
