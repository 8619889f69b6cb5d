"""What steps cost, learned from those that ran, and how much of a prompt fits beside the answers that stream.

A long prompt is computed in chunks. Their size decides how long each answer waits for its next token, and how
soon Stop stops: beside answers a step may last STRETCH times as long as without a prompt, else `target_s`.

    seconds of a step = answers_s(tokens of answers and drafts) + prompt tokens * (token_s + place_s * place)

for attention makes a token the dearer the later its place in the text. Knows no clock: durations are passed
in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

STRETCH = 2.4  # answers are promised 3; what is measured needs some air
GUESS = 0.1  # one more token's part of a step of answers, where that has not been measured
KEPT = 256  # steps of answers after which a measured one counts no more: the machine may have been busy then
CALM = 16  # after so many steps with prompts one is without, to see what answers cost by now
YOUNG = 256  # tokens of prompts, before which the quickest step tells more than all others
FULL = 16  # tokens of prompts from which on a step is believed as far as any
LEAST, MOST_LEAST = 16, 256  # tokens of a prompt in a step without answers, however dear they seem
CHEAPER = 0.75  # of the seconds of a token: twice as many at once are worth it
USUAL_PLACE = 2048  # brings places and numbers of tokens to one scale

Chunks = Sequence[tuple[int, int]]  # (place of the first token, number of tokens) of prompts in a step


@dataclass(slots=True)
class Pace:
    """The costs of one model on one machine."""

    target_s: float  # of a step without answers
    token_s: float = 0.001  # until steps have been measured
    place_s: float = 0.0
    _answers: dict[int, tuple[float, int]] = field(default_factory=dict)  # tokens -> (seconds, which step)
    _num_prompt_tokens: int = 0  # that were measured
    _num_steps: int = 0  # of answers alone
    _num_mixed: int = 0  # steps with prompts since the last of these
    _least: int = LEAST
    _least_token_s: float = math.inf  # in a step of half as many

    # ---- what may be done

    def allowance(self, num_answers: int, max_tokens: int) -> Allowance:
        """What prompts may take of a step in which so many sequences answer."""
        if num_answers and self._num_mixed >= CALM:
            return Allowance(self, 0.0, 0, least=0)
        if num_answers and self._num_steps:
            return Allowance(self, (STRETCH - 1) * self.answers_s(num_answers), max_tokens, least=1)
        return Allowance(self, self.target_s, max_tokens, least=self._least)

    def answers_s(self, num_tokens: int) -> float:
        """How long a step of so many tokens of answers and drafts lasts: measured, or guessed from others.

        Only once a step was measured.
        """
        oldest = self._num_steps - KEPT
        if (known := self._answers.get(num_tokens)) and known[1] > oldest:
            return known[0]
        fresh = {n: seconds for n, (seconds, step) in self._answers.items() if step > oldest}
        above = min((seconds for n, seconds in fresh.items() if n > num_tokens), default=math.inf)
        below = max((n for n in fresh if n < num_tokens), default=0)
        return min(above, fresh[below] * (1 + GUESS * (num_tokens - below))) if below else above

    def prompts_s(self, chunks: Chunks) -> float:
        """How much longer a step lasts for the prompts in it."""
        return sum(count * (self.token_s + self.place_s * (start + count / 2)) for start, count in chunks)

    # ---- what was seen

    def observe(self, num_answer_tokens: int, chunks: Chunks, seconds: float) -> None:
        """Learn from a step. One odd step (the machine slept) counts for little."""
        if seconds <= 0:
            return  # the clock was set, or stands still
        if chunks:
            self._num_mixed += 1
            known = num_answer_tokens and self._num_steps
            seconds -= self.answers_s(num_answer_tokens) if known else 0.0
            self._observe_prompts(chunks, seconds, is_alone=not num_answer_tokens)
            if not num_answer_tokens:
                self._observe_least(sum(count for _, count in chunks), seconds)
        elif num_answer_tokens:
            self._observe_answers(num_answer_tokens, seconds)

    def _observe_answers(self, num_tokens: int, seconds: float) -> None:
        if self._num_steps:
            known = self.answers_s(num_tokens)
            seen = min(max(seconds, known / 2), known * 2)
            # a step may be disturbed, but never helped: it is believed sooner if it was quick
            weight = 1 if num_tokens not in self._answers else 2 if seen < known else 4
            seconds = known + (seen - known) / weight
        self._num_steps, self._num_mixed = self._num_steps + 1, 0
        self._answers[num_tokens] = seconds, self._num_steps

    def _observe_prompts(self, chunks: Chunks, seconds: float, is_alone: bool) -> None:
        """Move both costs, each by its part, some of the way to what would have been right."""
        work = sum(count for _, count in chunks)
        if seconds > 0 and not self._num_prompt_tokens:
            self.token_s = seconds / work
        elif is_alone and self._num_prompt_tokens < YOUNG:  # the first ones waited for the weights
            self.token_s = min(self.token_s, seconds / work)
        self._num_prompt_tokens += work if seconds > 0 else 0
        known = self.prompts_s(chunks)
        error = min(max(seconds, known / 2), known * 2) - known
        # a step may have been disturbed, never helped: less is believed at once, more by degrees, the fewer
        # tokens had to bear what disturbed it; or small chunks would seem dear and get smaller still
        weight = 1 / 2 if error < 0 else min(1.0, work / FULL) / 4
        later = sum(count * (start + count / 2) for start, count in chunks) / USUAL_PLACE
        step = weight * error / (work * work + later * later)
        self.token_s = max(self.token_s + step * work, self.token_s / 2)
        self.place_s = max(self.place_s + step * later / USUAL_PLACE, 0.0)

    def _observe_least(self, work: int, seconds: float) -> None:
        """Where a step takes too long however small it is, for it waits for a busy machine and not for its
        tokens, more of them at once are tried, and kept as long as that makes each cheaper.
        """
        if seconds <= self.target_s:
            self._least, self._least_token_s = LEAST, math.inf
        elif work >= self._least:
            is_cheaper = seconds / work < CHEAPER * self._least_token_s
            self._least_token_s = seconds / work if is_cheaper else math.inf
            least = self._least * 2 if is_cheaper else self._least // 2
            self._least = min(max(least, LEAST), MOST_LEAST)


@dataclass(slots=True)
class Allowance:
    """What is left of a step for prompts."""

    pace: Pace
    seconds: float
    tokens: int
    least: int  # the first prompt gets that much in any case, so that it moves on

    def __bool__(self) -> bool:
        return self.tokens > 0 and (self.least > 0 or self.seconds > 0)

    def take(self, start: int, wanted: int) -> int:
        """How many of the tokens wanted from place `start` on fit; from 16 on, whole sixteens."""
        pace = self.pace
        rough = self.seconds / (pace.token_s + pace.place_s * start)
        fitting = max(0, int(self.seconds / (pace.token_s + pace.place_s * (start + max(0.0, rough) / 2))))
        fitting = max(fitting if fitting < 16 else fitting // 16 * 16, self.least)
        count = min(fitting, wanted, self.tokens)
        self.seconds -= pace.prompts_s([(start, count)])
        self.tokens -= count
        self.least = 0
        return count
