"""One answer in the making, in a thread of its own: it belongs to the program, not to a browser's tab.

The text grows in memory and is saved at most once a second and at its end. An end that can't be saved (the
disk is full) stays in memory and is tried again each second; `trouble` says so meanwhile. An answer may go on
where it stopped before; told to hurry, it ends its thoughts and goes on with what it has to say.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from engine import THOUGHT, Backend, EngineError, Finish, FinishReason, Message, Request, Split, Stream

from ..errors import AppError, StoreError
from ..faults import explain
from .records import INTERRUPTED, Reply, ReplyStats
from .thinking import ThinkingClock

SAVE_EVERY_S = 1.0
ENOUGH = f"\n{THOUGHT}\n\n"  # what ends thoughts that have no end of their own


class Answer:
    """`message_id` is its row. `ask` says who is asked what, `save` keeps a Reply or raises StoreError,
    `done` is called last of all.

    `before` is what there is of it already; `temperature` tells it from answers beside it. It asks once
    the answer `after` which it comes has asked: of several models, the one in memory is asked first.
    """

    def __init__(
        self,
        message_id: int,
        ask: Callable[[], tuple[Backend, Request]],
        save: Callable[[Reply], None],
        changed: Callable[[], None],
        done: Callable[[], None],
        before: Reply = Reply(),
        temperature: float | None = None,
        after: Answer | None = None,
    ) -> None:
        self.message_id, self.trouble = message_id, ""
        self._after, self._has_asked = after, threading.Event()
        self._before, self._temperature = before, temperature
        self._ask, self._save, self._changed, self._done = ask, save, changed, done
        self._texts, self._ids = [before.text], [*before.token_ids]
        self._thinking = ThinkingClock(before.text, before.stats.thought_s if before.stats else 0.0)
        self._stream: Stream | None = None
        self._stopped = self._interrupted = self._discarded = self._hurried = False
        self._end: Reply | None = None
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="octavo-answer", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    @property
    def growing(self) -> bool:
        """Whether more may come."""
        return self._end is None

    @property
    def reply(self) -> Reply:
        """What there is so far."""
        return self._end or Reply("".join(self._texts), tuple(self._ids))

    @property
    def thought_s(self) -> float:
        """How long it thought, or has been thinking."""
        return self._thinking.seconds(time.monotonic())

    @property
    def context(self) -> int:
        """The conversation's tokens, prompt and answer so far; 0 until the prompt's are known."""
        prompt = self._stream.prompt_tokens if self._stream is not None else 0
        return prompt and prompt + len(self._ids)

    @property
    def reading(self) -> tuple[int, int] | None:
        """Before its first word: how many tokens of how many that stand before it are read."""
        if self._stream is None or self._end or self._ids or not self._stream.prompt_tokens:
            return None
        return self._stream.read_tokens, self._stream.prompt_tokens

    def stop(self) -> None:
        """End it soon, keeping what there is."""
        self._stopped = True
        if self._stream is not None:
            self._stream.cancel()

    def hurry(self) -> None:
        """End its thoughts: it says what it has to say."""
        if self._stream is not None and Split.of(self.reply.text).thinking:
            self._hurried = True
            self._stream.cancel()

    def interrupt(self, timeout: float) -> None:
        """End it because the program ends, and wait until it is saved."""
        self._interrupted = True
        self.stop()
        self._wake.set()
        self._thread.join(timeout)

    def discard(self) -> None:
        """End it and keep nothing."""
        self._discarded = True
        self.stop()
        self._wake.set()

    def keep(self) -> None:
        """Save the end now. Raises StoreError; the text stays in memory then."""
        if self._end is not None and not self._discarded:
            self._save(self._end)
        self.trouble = ""

    def _run(self) -> None:
        if self._after:
            self._after._has_asked.wait()
        try:
            finish = self._consume()
            error, reason = finish.error, str(finish.reason)
        except (AppError, EngineError) as problem:
            finish, error, reason = None, str(problem), str(FinishReason.ERROR)
        except Exception as problem:
            finish, error, reason = None, explain("The answer failed", problem), str(FinishReason.ERROR)
        self._has_asked.set()
        if self._interrupted and reason == FinishReason.CANCELLED:
            reason = INTERRUPTED
        tokenizer = finish.tokenizer if finish else self._before.tokenizer
        own = not self._before.text or self._before.tokenizer == tokenizer  # all ids are of one tokenizer
        self._end = Reply(
            text="".join(self._texts),
            token_ids=tuple(self._ids) if own else (),
            tokenizer=tokenizer if own else "",
            finish=reason,
            error=error,
            stats=self._stats(finish) if finish else self._before.stats,
        )
        self._keep_trying()
        self._done()

    def _consume(self) -> Finish:
        finish = self._follow(*self._ask())
        if not self._hurried or self._stopped or finish.reason is not FinishReason.CANCELLED:
            return finish
        said = "".join(self._texts)
        reply = Message("assistant", said, tuple(self._ids), finish.tokenizer)
        backend, request = self._ask()
        messages = request.messages[: -1 if request.continue_last else None]
        begin = ENOUGH if Split.of(said).thinking else ""  # its thoughts may just have ended
        answer = self._follow(
            backend, replace(request, messages=(*messages, reply), continue_last=True, begin=begin)
        )
        last, first = answer.usage, finish.usage
        tokens = last.prompt_tokens + last.completion_tokens - first.prompt_tokens
        usage = replace(first, completion_tokens=tokens, tokens_per_s=last.tokens_per_s)
        return replace(answer, usage=usage)

    def _follow(self, backend: Backend, request: Request) -> Finish:
        self._stream = backend.submit(request)
        self._has_asked.set()
        if self._stopped:  # before there was anything to cancel
            self._stream.cancel()
        saved = time.monotonic()
        for part in self._stream:
            if isinstance(part, Finish):
                return part
            now = time.monotonic()
            self._thinking.hear(part.text, now)
            self._texts.append(part.text)
            self._ids += part.token_ids
            if now - saved >= SAVE_EVERY_S and not self._discarded:
                self._checkpoint()
                saved = now
            self._changed()
        raise EngineError("The answer ended without saying why.")

    def _checkpoint(self) -> None:
        try:
            self._save(self.reply)
            self.trouble = ""
        except StoreError as error:
            self.trouble = str(error)

    def _keep_trying(self) -> None:
        while True:
            try:
                return self.keep()
            except StoreError as error:
                self.trouble = str(error)
            self._changed()
            if self._wake.wait(SAVE_EVERY_S):  # nobody waits for it any more
                return

    def _stats(self, finish: Finish) -> ReplyStats:
        usage = finish.usage
        return ReplyStats(
            tokens=usage.completion_tokens,
            tokens_per_s=usage.tokens_per_s,
            first_token_s=usage.first_token_s,
            cached_tokens=usage.cached_tokens,
            prompt_tokens=usage.prompt_tokens,
            thought_s=self.thought_s,
            temperature=self._temperature,
        )
