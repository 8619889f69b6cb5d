"""Guesses of what comes next, taken from the text itself, and whether they pay.

Where the last tokens stood before, what followed them then may follow again: a repeated name, quoted code, an
edited page. The more tokens agree, the likelier; how likely is measured for each text and each number of
agreeing tokens, also while nothing is drafted, so trying costs nothing. Drafts are sent along as long as the
tokens they are likely to save are worth what they make the step last longer, by the pace's own measurements:
alone they are nearly free, beside many answers they rarely pay. A text among n for which none pay is looked
at in every n-th step, so that looking costs next to nothing.

Draws are a function of (seed, position), so drafts change how fast a text comes, never what it says.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Seq
from weakref import WeakKeyDictionary

from .pace import Pace
from .sequence import Sequence

MOST = 8  # drafts for one sequence
MOST_IN_STEP = 16  # for all together; the runner has as many more rows of logits
LEAST_GAIN = 1.04  # so much faster a step must promise to be; what it promises is an estimate
LONGEST = 16  # agreeing tokens beyond these are not counted
UNLIKELY = 0.05  # a chance that is not worth a look
LIKELY = 0.6  # one that is worth waiting for
TRIES = 8  # latest places compared
LEARN = 0.1  # part that one token has in a rate
BUCKETS = 1 << 14  # of the table of pairs


class Speculation:
    """Decides on the drafts of each step."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._texts: WeakKeyDictionary[Sequence, Text] = WeakKeyDictionary()

    def propose(self, answering: list[tuple[Sequence, int]]) -> list[list[int]]:
        """Drafts for the sequences of a step, which are all answering, each at most its limit."""
        drafts: list[list[int]] = []
        num_tokens, expected = len(answering), float(len(answering))
        for seq, limit in answering:
            text = self._texts.get(seq) or self._texts.setdefault(seq, Text())
            if text.resting:
                text.resting -= 1
                drafts.append([])
                continue
            text.read(seq.tokens)
            limit = min(limit, MOST, MOST_IN_STEP + len(answering) - num_tokens)
            count, gain = self._choose(text, limit, num_tokens, expected)
            text.resting = 0 if count else len(answering) - 1
            drafts.append(text.guess(seq.tokens, count))
            num_tokens, expected = num_tokens + count, expected + gain
        return drafts

    def is_promising(self, running: Seq[Sequence]) -> bool:
        """Whether a text goes on as it did before, as far as it is known: the next guess would be right
        rather than wrong, and few share the step.
        """
        texts = [self._texts.get(seq) for seq in running] if len(running) <= MOST else []
        return any(text and text.agreeing and text.rates[text.agreeing] > LIKELY for text in texts)

    def _choose(self, text: Text, limit: int, num_tokens: int, expected: float) -> tuple[int, float]:
        """How many drafts give the most tokens a second, and how many of them will be right, on average."""
        best = 0, 0.0
        if text.agreeing == 0 or limit < 1:
            return best
        seconds = self._pace.answers_s
        best_speed = expected / seconds(num_tokens) * LEAST_GAIN
        chance, gain = 1.0, 0.0
        for count in range(1, limit + 1):
            chance *= text.rates[min(text.agreeing + count - 1, LONGEST)]
            if chance < UNLIKELY:
                break
            gain += chance
            speed = (expected + gain) / seconds(num_tokens + count)
            if speed > best_speed:
                best, best_speed = (count, gain), speed
        return best


class Text:
    """What the tokens of one sequence say about those that follow. Each is read once.

    Pairs of tokens are found like strings in zlib: `_last` is the latest place of a pair (of all that fall
    into one bucket), `_before` the place before each place.
    """

    def __init__(self) -> None:
        self.resting = 0  # steps in which it is not looked at
        self.agreeing = 0  # how many of the last tokens stood at the place found; 0: none found
        self.rates = [n / (n + 6) for n in range(LONGEST + 1)]  # how often a guess was right, by `agreeing`
        self._place = 0  # where the token stands that is the guess for the next
        self._last = array("i", [-1]) * BUCKETS
        self._before = array("i", [-1])

    def read(self, tokens: list[int]) -> None:
        """Take in what is new of the text, and see which guesses were right."""
        for at in range(len(self._before), len(tokens)):
            if self.agreeing:
                self._judge(tokens[at] == tokens[self._place])
            bucket = (tokens[at - 1] * 31 + tokens[at]) % BUCKETS
            self._before.append(self._last[bucket])
            self._last[bucket] = at
        if not self.agreeing and tokens:
            self._search(tokens, self._before[-1])

    def guess(self, tokens: list[int], count: int) -> list[int]:
        """The next `count` tokens, if the text goes on as it did at the place found."""
        found = tokens[self._place : self._place + count]
        while len(found) < count:  # it repeats itself without end
            found += found[: count - len(found)]
        return found

    def _judge(self, right: bool) -> None:
        self.rates[self.agreeing] += (right - self.rates[self.agreeing]) * LEARN
        self.agreeing = min(self.agreeing + 1, LONGEST) if right else 0
        self._place += 1

    def _search(self, tokens: list[int], place: int) -> None:
        """Of the latest places where the last tokens stood before, take the one where most agree."""
        end = len(tokens) - 1
        for _ in range(TRIES):
            if place < 1:
                return
            agreeing = 0
            while agreeing < min(LONGEST, place + 1) and tokens[place - agreeing] == tokens[end - agreeing]:
                agreeing += 1
            if agreeing > max(self.agreeing, 1):
                self.agreeing, self._place = agreeing, place + 1
            place = self._before[place]
