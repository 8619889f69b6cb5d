"""Summing up, as it runs: a thread for each chat whose person has asked for it, and how far it is.

What is summed up, and how the model is asked, is compaction.py's; what stands in the store summaries.py's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from engine import EngineError, Finish, FinishReason, Request, Split, Stream, Usage

from ..errors import AppError
from ..faults import explain
from ..memory.runtime import Runtime
from .compaction import fits_after, older_part, summary_request
from .database import Database, DatabaseFile
from .open_chats import OpenChats
from .records import OpenChat, Summary
from .summaries import drop_summary, keep_summary


@dataclass(slots=True)
class Job:
    """`messages` are summed up in this round, `tokens` were written so far; `error` is how it ended."""

    messages: int = 0
    tokens: int = 0
    error: str = ""
    kept: int = 0  # the message of its newest summary
    stop: threading.Event = field(default_factory=threading.Event)
    stream: Stream | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class Compactor:
    """Any thread may call. `place` says in which file of the store a chat is."""

    def __init__(
        self, runtime: Runtime, chats: OpenChats, place: Callable[[str | int], DatabaseFile]
    ) -> None:
        self._runtime, self._chats, self._place = runtime, chats, place
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def start(self, chat: str) -> None:
        """Sum up a chat's older part, unless that is under way. Raises AppError where there is none."""
        found = self._chats.load(chat)
        older_part(self._runtime, found.branch, found.summary)
        with self._lock:
            if (job := self._jobs.get(chat)) and not job.ended.is_set():
                return
            job = self._jobs[chat] = Job()
        threading.Thread(target=self._run, args=(chat, job), name="octavo-summary", daemon=True).start()

    def state(self, chat: str) -> Job | None:
        """What is under way or was last; None if nothing ever was."""
        return self._jobs.get(chat)

    def stop(self, chat: str) -> None:
        """End it; nothing changes then."""
        if job := self._jobs.get(chat):
            job.stop.set()
            if job.stream is not None:
                job.stream.cancel()

    def undo(self, chat: str) -> None:
        """Give the model the messages again that the newest summary stands for."""
        if summary := self._chats.load(chat).summary:
            self._place(chat).transact(lambda db: drop_summary(db, chat, summary.message))
            self._chats.touch(chat, stored=True)

    def close(self) -> None:
        """End all."""
        for chat in list(self._jobs):
            self.stop(chat)

    # ---- in the thread

    def _run(self, chat: str, job: Job) -> None:
        try:
            while not self._round(chat, job):
                pass
        except (AppError, EngineError) as error:
            job.error = str(error)
        except Exception as error:
            job.error = explain("Summing up failed", error)
        finally:
            job.ended.set()

    def _round(self, chat: str, job: Job) -> bool:
        """Sum up once and keep that; whether it was enough."""
        found = self._chats.load(chat)
        last, job.messages = older_part(self._runtime, found.branch, found.summary)
        request = summary_request(self._runtime, found.chat, found.branch, found.summary, last)
        summary = self._asked(job, request, last)
        if summary is None:
            return True
        before, job.kept = job.kept, last

        def write(db: Database) -> None:
            drop_summary(db, chat, before)  # a round's is only a step: to undo is to undo all of them
            keep_summary(db, chat, summary)

        self._place(chat).transact(write)
        self._chats.touch(chat, stored=True)
        return _is_enough(self._runtime, self._chats.load(chat), summary)

    def _asked(self, job: Job, request: Request, last: int) -> Summary | None:
        """The model's summary; None if it was stopped. Raises AppError."""
        if job.stop.is_set():
            return None
        job.stream = self._runtime.submit(request)
        text, ids, end = "", list[int](), Finish(FinishReason.CANCELLED, Usage())
        for part in job.stream:
            if isinstance(part, Finish):
                end = part
                break
            text += part.text
            ids += part.token_ids
            job.tokens = len(ids)
            if job.stop.is_set():
                job.stream.cancel()
        if end.reason is FinishReason.CANCELLED:
            return None
        if end.reason is FinishReason.ERROR:
            raise AppError(end.error)
        said = Split.of(text)
        if not said.answer.strip():
            raise AppError("The model wrote no summary. Try again, or start a new chat.")
        return Summary(last, said.answer.strip(), () if said.thoughts else tuple(ids), end.tokenizer)


def _is_enough(runtime: Runtime, found: OpenChat, summary: Summary) -> bool:
    return found.summary != summary or fits_after(runtime, found.branch, summary)
