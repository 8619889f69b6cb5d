"""A message's way from the click to the stored reply, and what a page may see of it.

Answers live here, not in the browser: a page that is loaded again finds its chat still growing (`version`
changes with every change). The user's message is on the disk before its answer starts. Several chats answer
at once, each one answer at a time. How chats are kept is store.py's, how an answer grows answer.py's.
"""

from __future__ import annotations

import datetime
import itertools
import threading
import time

from engine import Priority, Request

from .answer import Answer
from .conversation import conversation
from .errors import AppError
from .records import INTERRUPTED, Chat, StoredMessage
from .runtime import Runtime
from .settings import Settings
from .store import ChatStore
from .views import ChatSummary, ChatView, MessageView, shown

TITLE_LENGTH = 200
CLOSE_S = 5.0  # how long ending the program waits for answers to be saved
REMEMBERED = 32  # chats whose messages are kept in memory


class ChatService:
    """Any thread may call. Errors are AppErrors whose text is for the person."""

    def __init__(self, store: ChatStore, runtime: Runtime, settings: Settings) -> None:
        self._store, self._runtime, self._settings = store, runtime, settings
        self._turns = threading.Lock()  # one send, retry or delete at a time
        self._changed = threading.Condition()  # guards what follows
        self._clock = itertools.count(time.time_ns() // 10**6)  # versions go on growing after a restart
        self._start = next(self._clock)
        self._versions: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}
        self._stored: dict[str, tuple[Chat, tuple[StoredMessage, ...]]] = {}
        self._writes = 0
        self._beginning = ""  # the chat whose answer is in the store but not yet in _answers
        self._attended = ""

    # ---- what is there

    @property
    def notice(self) -> str:
        """What the person should know of their chats since the start; mostly ""."""
        return self._store.notice

    def list_chats(self) -> list[ChatSummary]:
        """All chats in which something was said, newest first."""
        return [
            ChatSummary(chat.id, chat.title, chat.updated, self.busy(chat.id), chat.model)
            for chat in self._store.chats()
            if chat.leaf is not None
        ]

    def blank(self) -> ChatView:
        """What is shown where there is no chat yet."""
        return self._view(Chat("", "", "", "", "", 0.0, 0, None), [], 0, 0)

    def view(self, chat_id: str, last: int = 40) -> ChatView:
        """The chat as it is now. Raises UnknownChat."""
        while True:
            version = self.version(chat_id)  # before the content: what changes meanwhile is seen next time
            chat, messages = self._load(chat_id)
            views = [shown(message) for message in messages[-last:]]
            if messages:
                views[-1] = self._last(chat_id, messages[-1])
            ended_meanwhile = version != self.version(chat_id)
            if not (views and views[-1].finish_reason == INTERRUPTED and ended_meanwhile):
                break
        return self._view(chat, views, len(messages) - len(views), version)

    def version(self, chat_id: str) -> int:
        """A number that grows with every change of the chat."""
        return self._versions.get(chat_id, self._start)

    def busy(self, chat_id: str) -> bool:
        """Whether an answer is growing in this chat."""
        answer = self._answers.get(chat_id)
        return answer is not None and answer.growing

    def wait(self, chat_id: str, version: int, timeout: float) -> int:
        """Sleep until the chat's version is another than `version`; the version then."""
        with self._changed:
            self._changed.wait_for(lambda: self.version(chat_id) != version, timeout)
            return self.version(chat_id)

    # ---- what can be done

    def new_chat(self) -> str:
        """The id of a chat without messages: a new one, or the one that was never used."""
        model, today = self._runtime.status().model, datetime.date.today().isoformat()
        chat = self._store.fresh(model, self._settings.system_prompt, today)
        self._touch(chat.id, stored=True)
        return chat.id

    def attend(self, chat_id: str) -> None:
        """This chat is on screen: what it asks from now on goes first."""
        self._attended = chat_id

    def send(self, chat_id: str, text: str) -> str:
        """Keep the user's message, then start to answer it; "" begins a chat of its own. The chat's id."""
        if not text.strip():
            raise AppError("Write a message first: this one is empty.")
        return self._begin(chat_id, _sound(text))

    def retry(self, chat_id: str) -> None:
        """Answer the last question once more; the answer before stays in the tree."""
        self._begin(chat_id, None)

    def stop(self, chat_id: str) -> None:
        """End the answer that grows; what there is stays."""
        if answer := self._answers.get(chat_id):
            answer.stop()

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat another title."""
        if not (title := " ".join(title.split())):
            raise AppError("Write a title first: this one is empty.")
        self._store.rename(chat_id, _sound(title[:TITLE_LENGTH]))
        self._touch(chat_id, stored=True)

    def delete(self, chat_id: str) -> None:
        """Remove a chat, ending its answer first. It can't be brought back."""
        with self._turns:
            if answer := self._answers.get(chat_id):
                answer.discard()
            try:
                self._store.delete(chat_id)
            finally:  # a full disk may keep it; its answer has ended all the same
                with self._changed:
                    self._answers.pop(chat_id, None)
                self._touch(chat_id, stored=True)

    def close(self) -> None:
        """End all answers, keeping what there is, and let go of the file."""
        for answer in list(self._answers.values()):
            answer.stop()  # all at once, before the first is waited for
        end = time.monotonic() + CLOSE_S
        for answer in list(self._answers.values()):
            answer.interrupt(max(0.0, end - time.monotonic()))
        self._store.close()

    # ---- inside

    def _view(self, chat: Chat, views: list[MessageView], earlier: int, version: int) -> ChatView:
        status = self._runtime.status()
        return ChatView(
            id=chat.id,
            title=chat.title,
            messages=tuple(views),
            earlier=earlier,
            busy=bool(views) and views[-1].streaming,
            version=version,
            model=status.model,
            context_used=self._context(chat.id, views),
            context_limit=self._runtime.context_length,
            status=status.message,
        )

    def _context(self, chat_id: str, views: list[MessageView]) -> int:
        """The conversation's tokens: of the answer that grows, else as the last one left it."""
        answer = self._answers.get(chat_id)
        if answer and answer.growing and answer.context:
            return answer.context
        stats = [view.stats for view in views if view.stats and view.stats.prompt_tokens]
        return stats[-1].prompt_tokens + stats[-1].tokens if stats else 0

    def _last(self, chat_id: str, message: StoredMessage) -> MessageView:
        """The last message of a branch: an answer that may be growing."""
        # in this order: an answer is there before its chat stops beginning
        beginning, answer = self._beginning == chat_id, self._answers.get(chat_id)
        mine = answer if answer and answer.message_id == message.id else None
        return shown(message, mine, beginning)

    def _begin(self, chat_id: str, text: str | None) -> str:
        with self._turns:
            if not chat_id:
                self.attend(chat_id := self.new_chat())
            if before := self._answers.get(chat_id):
                if before.growing:
                    raise AppError("This chat is still answering. Stop it, or wait until it has finished.")
                before.keep()
            self._beginning = chat_id
            try:
                answer = self._answer(chat_id, text)
                with self._changed:
                    self._answers[chat_id] = answer
            finally:
                self._beginning = ""
            answer.start()
        self._touch(chat_id)
        return chat_id

    def _answer(self, chat_id: str, text: str | None) -> Answer:
        """Keep the turn, and prepare its answer."""
        leaf = self._load(chat_id)[0].leaf
        model = self._runtime.status().model
        reply_id = self._store.begin_turn(chat_id, leaf, text, title=_title(text or ""), model=model)
        self._touch(chat_id, stored=True)
        chat, messages = self._load(chat_id)
        request = Request(
            messages=conversation(chat, messages[:-1]),
            sampling=self._settings.sampling,
            shorten=True,
            priority=Priority.FOREGROUND if chat_id == self._attended else Priority.CHAT,
            date=chat.date,
            id=f"{chat_id}-{reply_id}",
        )
        answer = Answer(
            reply_id,
            self._runtime,
            request,
            save=lambda reply: self._store.save_reply(reply_id, reply),
            changed=lambda: self._touch(chat_id),
            done=lambda: self._finished(chat_id, answer),
        )
        return answer

    def _finished(self, chat_id: str, answer: Answer) -> None:
        self._touch(chat_id, stored=True)  # before it is taken away: its end is in the store by now
        with self._changed:
            if self._answers.get(chat_id) is answer and not answer.trouble:
                del self._answers[chat_id]
        self._touch(chat_id)

    def _touch(self, chat_id: str, stored: bool = False) -> None:
        """The chat has changed; `stored`: what the disk has of it, too."""
        with self._changed:
            self._versions[chat_id] = next(self._clock)
            if stored:
                self._stored.pop(chat_id, None)
                self._writes += 1
            self._changed.notify_all()

    def _load(self, chat_id: str) -> tuple[Chat, tuple[StoredMessage, ...]]:
        """A chat and its branch, from memory if nothing was written since."""
        with self._changed:
            if found := self._stored.get(chat_id):
                return found
            writes = self._writes
        found = self._store.chat(chat_id), self._store.branch(chat_id)
        with self._changed:
            if writes == self._writes:
                while len(self._stored) >= REMEMBERED:
                    del self._stored[next(iter(self._stored))]
                self._stored[chat_id] = found
        return found


def _sound(text: str) -> str:
    """The text without half characters, which a browser may send and no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _title(text: str) -> str:
    """The first line of a chat's first message, shortened."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = " ".join(line.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
