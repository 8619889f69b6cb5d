"""A chat's turns: what asks for answers, and the answers that come of it.

A message, a question once more, an edited question, several answers side by side, an answer that goes on: all
of them are kept first, then answered, and a chat has one turn at a time. A message that is sent meanwhile
waits in the chat's line, on disk too. How the tree changes is tree.py's, how an answer grows answer.py's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from engine import Backend, FinishReason, Priority, Request, SamplingParams

from ..documents.attachments import Attachments
from ..documents.context import Fitting
from ..errors import AppError, Outdated
from ..memory.runtime import Runtime
from ..models.model_usage import settings_for
from ..settings import Settings
from .answer import Answer
from .comparison import ONCE, Comparison
from .conversation import conversation
from .open_chats import OpenChats
from .records import TITLE_LENGTH, Attachment, Chat, OpenChat, Reply, StoredMessage, Turn
from .sampling import sampled
from .tree import Tree
from .typed import sound

BUSY = "This chat is still answering. Stop it, or wait until it has finished."


class ChatTurns:
    """Any thread may call. Errors are AppErrors whose text is for the person."""

    def __init__(
        self, tree: Tree, open_chats: OpenChats, runtime: Runtime, settings: Settings, files: Attachments
    ) -> None:
        self._tree, self._open, self._runtime, self._settings = tree, open_chats, runtime, settings
        self._files = files
        self.lock = threading.RLock()  # one turn or change of the tree at a time
        self._next: dict[str, int] = {}  # chat -> the message in its line that goes first, whatever the end
        self._closed = False
        self.attended = ""  # the chat on screen

    def usual(self, model: str = "") -> Settings:
        """What a chat goes by that decides nothing, where this model answers, or the next one."""
        return settings_for(model or self._runtime.next_model, self._settings)

    def send(self, chat: str, text: str, files: Sequence[str] = (), compared: Comparison = ONCE) -> None:
        """Keep a message and answer it, now or, if it is to be answered once, after those before it."""
        text = _said(text)
        with self.lock:
            found = self._open.load(chat)
            if not found.line and not self._open.growing(chat):
                return self._begin(chat, Turn(found.chat.leaf, text, files=tuple(files)), compared)
            if compared != ONCE:
                raise AppError(BUSY)
            self._tree.wait(chat, text, files)
            self._open.touch(chat, stored=True)
            self.advance(chat)

    def edit(self, chat: str, message: int, text: str) -> None:
        """Ask something else at a message's place: a branch of its own, with the same files."""
        with self.lock:
            asked = self._found(chat, message, "user")
            files = tuple(file.id for file in asked.files)
            self._begin(chat, Turn(asked.parent, _said(text), files=files))

    def retry(self, chat: str, message: int | None = None, compared: Comparison = ONCE) -> None:
        """Answer a question once more, the last one or the one that `message` is or answers; the answers
        before stay in the tree.
        """
        with self.lock:
            branch = self._open.load(chat).branch
            last = self._found(chat, message) if message is not None else branch[-1] if branch else None
            question = last.parent if last and last.role == "assistant" else last.id if last else None
            if question is None:
                raise AppError("There is nothing in this chat to answer.")
            self._begin(chat, Turn(question), compared)

    def resume(self, chat: str, message: int) -> None:
        """Let an answer go on that was stopped or cut."""
        with self.lock:
            found = self._open.load(chat)
            reply = next((each.reply for each in _ends(found) if each.id == message), Reply())
            if not reply.text:
                raise AppError("Only the last answer of a chat can go on.")
            self.ready(chat)
            self._tree.save_reply(message, replace(reply, finish=None, error=""))
            self._open.touch(chat, stored=True)
            self._start(chat, (message,), reply, [self._sampled(found.chat)], [found.chat.own_model])

    def hurry(self, chat: str) -> None:
        """End the thoughts of what grows: it answers now."""
        for answer in self._open.answers(chat):
            answer.hurry()

    def send_now(self, chat: str, waiting: int) -> None:
        """Send a message that waits, ending the answer that grows."""
        with self.lock:
            found = self._open.load(chat)
            files = [each.files for each in found.line if each.id == waiting]
            if not files:
                raise AppError("This message does not wait any more.")
            if found.beside:
                raise AppError("Pick one of the answers first: the message goes below it.")
            self._files.waiting(chat, files[0])
            self._next[chat] = waiting
            self.stop(chat)
            self._advance(chat)

    def stop(self, chat: str) -> None:
        """End the answers that grow; what there is stays."""
        for answer in self._open.answers(chat):
            answer.stop()

    def close(self, timeout: float) -> None:
        """End all answers because the program ends, keeping what there is."""
        self._closed = True
        answers = self._open.all_answers()
        for answer in answers:
            answer.stop()  # all at once, before the first is waited for
        end = time.monotonic() + timeout
        for answer in answers:
            answer.interrupt(max(0.0, end - time.monotonic()))

    def ready(self, chat: str) -> None:
        """Raises AppError while an answer grows; what has ended is stored after this."""
        if self._open.growing(chat):
            raise AppError(BUSY)
        for answer in self._open.answers(chat):
            answer.keep()

    def advance(self, chat: str) -> None:
        """Send what stands first in the line, unless something hinders that; then it stays there."""
        with suppress(AppError):  # the chat or a file is gone, or the disk is full: the page has what waits
            self._advance(chat)

    def so_far(self, found: OpenChat) -> Request:
        """What the model would be given of a chat as it is, without a new message."""
        return self._request(found, found.branch, self._sampled(found.chat))

    # ---- inside

    def _advance(self, chat: str) -> None:
        with self.lock:
            found = self._open.load(chat)
            if self._closed or not found.line or found.beside or self._open.growing(chat):
                return
            first = self._next.pop(chat, None)
            waiting = next((each for each in found.line if each.id == first), found.line[0])
            below = found.chat.leaf if waiting.below is None else waiting.below
            self._begin(chat, Turn(below, waiting.text, waited=waiting.id, files=waiting.files))

    def _found(self, chat: str, message: int, role: str = "") -> StoredMessage:
        found = self._open.load(chat)
        for each in (*found.branch, *found.beside):
            if each.id == message and role in ("", each.role):
                return each
        raise Outdated("This message is not on the page any more. Reload it.")

    def _begin(self, chat: str, turn: Turn, compared: Comparison = ONCE) -> None:
        self.ready(chat)
        compared.check(self._runtime.check)
        found = self._open.load(chat).chat
        models = compared.models or (found.own_model,) * compared.answers
        who = [self._runtime.id_of(model) for model in models]
        sampling = compared.sampling([self._sampled(found, model) for model in models])
        self._open.beginning = chat
        try:
            ids = self._tree.begin(chat, found.leaf, turn, title=_title(turn.text or ""), models=who)
            self._open.touch(chat, stored=True)
            self._start(chat, ids, Reply(), sampling, models)
        finally:
            self._open.beginning = ""
        self._open.touch(chat)

    def _sampled(self, chat: Chat, model: str = "") -> SamplingParams:
        """As the chat decides, else as its model, or this one, is used."""
        return sampled(self.usual(model or chat.own_model).sampling, chat.sampling)

    def _start(
        self,
        chat: str,
        ids: Sequence[int],
        before: Reply,
        sampling: Sequence[SamplingParams],
        models: Sequence[str],
    ) -> None:
        by_heat = len({params.temperature for params in sampling}) > 1 == len(set(models))
        here, answers = self._runtime.status().model, list[Answer]()
        each = sorted(
            zip(ids, sampling, models, strict=True), key=lambda each: self._runtime.id_of(each[2]) != here
        )
        for id, params, model in each:
            heat = params.temperature if by_heat else None
            after = answers[-1] if answers else None
            answers.append(self._answer(chat, id, before, params, model, heat, after))
        self._open.put(chat, answers)
        for answer in answers:
            answer.start()

    def _answer(
        self,
        chat: str,
        id: int,
        before: Reply,
        params: SamplingParams,
        model: str,
        heat: float | None,
        after: Answer | None,
    ) -> Answer:
        began = self._open.load(chat)

        def ask() -> tuple[Backend, Request]:
            now = self._open.load(chat)  # what was chosen of its files is known by now
            found = now if any(each.id == id for each in _ends(now)) else began
            above = found.branch[:-1]
            last = tuple(each for each in _ends(found) if each.id == id) if before.text else ()
            request = replace(
                self._request(found, above + last, params),
                priority=Priority.FOREGROUND if chat == self.attended else Priority.CHAT,
                id=f"{chat}-{id}",
                model=model,
                continue_last=bool(before.text),
            )
            return self._backend(chat, above), request

        answer = Answer(
            id,
            ask,
            save=lambda reply: self._tree.save_reply(id, reply),
            changed=lambda: self._open.touch(chat),
            done=lambda: self._finished(chat, answer),
            before=before,
            temperature=heat,
            after=after,
        )
        return answer

    def _request(self, found: OpenChat, said: Sequence[StoredMessage], sampling: SamplingParams) -> Request:
        return Request(
            messages=conversation(found.chat, said, found.summary),
            sampling=sampling,
            owner=found.chat.owner,
            shorten=True,
            date=found.chat.date,
            group=found.chat.id,
            keep=not found.chat.is_private,
            model=found.chat.own_model,
        )

    def _backend(self, chat: str, above: Sequence[StoredMessage]) -> Backend:
        """Who answers; where a question came with files, what is given of them is chosen first."""
        files = above[-1].files if above else ()
        if all(file.given is not None for file in files):
            return self._runtime

        def keep(chosen: tuple[Attachment, ...]) -> None:
            self._files.choose(chat, chosen)
            self._open.touch(chat, stored=True)

        return Fitting(self._runtime, files, self._files, keep)

    def _finished(self, chat: str, answer: Answer) -> None:
        self._open.touch(chat, stored=True)  # before it is taken away: its end is in the store by now
        if answer.reply.finish in (FinishReason.STOP, FinishReason.LENGTH) or chat in self._next:
            self.advance(chat)  # first, so that the chat is busy all the while
        if not answer.trouble:
            self._open.drop(chat, answer)
        self._open.touch(chat)


def _ends(found: OpenChat) -> tuple[StoredMessage, ...]:
    """The answers that a chat ends with: one, or several side by side."""
    return found.beside or found.branch[-1:]


def _said(text: str) -> str:
    if not text.strip():
        raise AppError("Write a message first: this one is empty.")
    return sound(text)


def _title(text: str) -> str:
    """The first line of a chat's first message, shortened."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = " ".join(line.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
