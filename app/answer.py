"""One answer in the making, in a thread of its own: it belongs to the program, not to a browser's tab.

The text grows in memory and is saved at most once a second and at its end. An end that can't be saved (the
disk is full) stays in memory and is tried again each second; `trouble` says so meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from engine import Backend, EngineError, Finish, FinishReason, Request, Stream

from .errors import AppError, StoreError
from .faults import explain
from .records import INTERRUPTED, Reply, ReplyStats

SAVE_EVERY_S = 1.0


class Answer:
    """`message_id` is its row. `save` keeps a Reply or raises StoreError; `done` is called last of all."""

    def __init__(
        self,
        message_id: int,
        backend: Backend,
        request: Request,
        save: Callable[[Reply], None],
        changed: Callable[[], None],
        done: Callable[[], None],
    ) -> None:
        self.message_id, self.trouble = message_id, ""
        self._backend, self._request = backend, request
        self._save, self._changed, self._done = save, changed, done
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._stream: Stream | None = None
        self._stopped = self._interrupted = self._discarded = False
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
    def context(self) -> int:
        """The conversation's tokens, prompt and answer so far; 0 until the prompt's are known."""
        prompt = self._stream.prompt_tokens if self._stream is not None else 0
        return prompt and prompt + len(self._ids)

    def stop(self) -> None:
        """End it soon, keeping what there is."""
        self._stopped = True
        if self._stream is not None:
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
        try:
            finish = self._consume()
            error, reason = finish.error, str(finish.reason)
        except (AppError, EngineError) as problem:
            finish, error, reason = None, str(problem), str(FinishReason.ERROR)
        except Exception as problem:
            finish, error, reason = None, explain("The answer failed", problem), str(FinishReason.ERROR)
        if self._interrupted and reason == FinishReason.CANCELLED:
            reason = INTERRUPTED
        self._end = Reply(
            text="".join(self._texts),
            token_ids=tuple(self._ids),
            tokenizer=finish.tokenizer if finish else "",
            finish=reason,
            error=error,
            stats=_stats(finish) if finish else None,
        )
        self._keep_trying()
        self._done()

    def _consume(self) -> Finish:
        self._stream = self._backend.submit(self._request)
        if self._stopped:  # before there was anything to cancel
            self._stream.cancel()
        saved = time.monotonic()
        for part in self._stream:
            if isinstance(part, Finish):
                return part
            self._texts.append(part.text)
            self._ids += part.token_ids
            if time.monotonic() - saved >= SAVE_EVERY_S and not self._discarded:
                self._checkpoint()
                saved = time.monotonic()
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


def _stats(finish: Finish) -> ReplyStats:
    usage = finish.usage
    return ReplyStats(
        tokens=usage.completion_tokens,
        tokens_per_s=usage.tokens_per_s,
        first_token_s=usage.first_token_s,
        cached_tokens=usage.cached_tokens,
        prompt_tokens=usage.prompt_tokens,
    )
