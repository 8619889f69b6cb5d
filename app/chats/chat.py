"""The chats as a person has them: what a page may see of them, and what can be done to them.

Answers live here, not in the browser: a page that is loaded again finds its chat still growing (`version`
changes with every change). Several chats answer at once. How chats are kept is store.py's and tree.py's, what
asks for answers chat_turns.py's, how an answer grows answer.py's.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from engine import Split

from ..documents.attachments import FOLDER, Attachments
from ..errors import AppError
from ..memory.runtime import Runtime
from ..settings import Settings
from .answer import Answer
from .chat_turns import ChatTurns
from .comparison import ONCE, Comparison
from .open_chats import OpenChats
from .records import INTERRUPTED, TITLE_LENGTH, Chat, OpenChat, StoredMessage
from .store import ChatStore
from .typed import sound
from .views import ChatSummary, ChatView, MessageView, shown, summary
from .writing import Writing

CLOSE_S = 5.0  # how long ending the program waits for answers to be saved


class ChatService:
    """Any thread may call. Errors are AppErrors whose text is for the person. `turns`: what can be asked."""

    def __init__(self, store: ChatStore, runtime: Runtime, settings: Settings) -> None:
        self._store, self._runtime = store, runtime
        self._open = OpenChats(store.tree)
        self.attachments = Attachments(settings.home / FOLDER, store.place)
        self.turns = ChatTurns(store.tree, self._open, runtime, settings, self.attachments)
        self.writing = Writing(self.attachments, self._open, self.turns, runtime, store.place)

    # ---- what is there

    @property
    def notice(self) -> str:
        """What the person should know of their chats since the start; mostly ""."""
        return self._store.notice

    def list_chats(self) -> list[ChatSummary]:
        """All chats in which something was said, newest first."""
        return [replace(chat, busy=self.busy(chat.id)) for chat in self.summaries() if chat.said]

    def summaries(self) -> list[ChatSummary]:
        """All chats, newest first, as the disk has them: without who is busy."""
        return [summary(chat) for chat in self._store.chats()]

    @property
    def writes(self) -> int:
        """A number that grows when the disk's state of some chat has changed."""
        return self._open.writes

    def note_change(self, chat_id: str) -> None:
        """What the disk has of a chat was changed from outside."""
        self._open.touch(chat_id, stored=True)

    def blank(self) -> ChatView:
        """What is shown where there is no chat yet."""
        return self._view(OpenChat(Chat("", "", "", "", "", 0.0, 0, None), (), (), ()), [], 0)

    def view(self, chat_id: str, last: int = 40) -> ChatView:
        """The chat as it is now. Raises UnknownChat."""
        while True:
            version = self.version(chat_id)  # before the content: what changes meanwhile is seen next time
            found = self._open.load(chat_id)
            messages = (*found.branch[:-1], *found.beside) if found.beside else found.branch
            beside = {message.id for message in found.beside}
            views = [self._shown(chat_id, each, each.id in beside) for each in messages[-last:]]
            ended_meanwhile = version != self.version(chat_id)
            if not ended_meanwhile or all(view.finish_reason != INTERRUPTED for view in views):
                break
        return self._view(found, views, version)

    def thoughts(self, chat_id: str, message: int) -> str:
        """What was thought before an answer, so far."""
        found = self._open.load(chat_id)
        stored = [each.text for each in (*found.branch, *found.beside) if each.id == message]
        growing = self._open.answer(chat_id, message)
        return Split.of(growing.reply.text if growing else "".join(stored[:1])).thoughts

    def version(self, chat_id: str) -> int:
        """A number that grows with every change of the chat."""
        return self._open.version(chat_id)

    def reading(self, chat_id: str) -> tuple[object, ...]:
        """How far its answers are before their first words: something that differs when that has changed."""
        return tuple(answer.reading for answer in self._open.answers(chat_id))

    def gone(self, chat_ids: Sequence[str]) -> list[str]:
        """Those of some chats that are gone for good: one in the bin may come back."""
        return [chat for chat in chat_ids if not self._store.exists(chat)]

    def busy(self, chat_id: str) -> bool:
        """Whether an answer is growing in this chat."""
        return self._open.busy(chat_id)

    def busy_chats(self) -> set[str]:
        """All chats in which an answer is growing."""
        return self._open.busy_chats()

    def wait(self, chat_id: str, version: int, timeout: float) -> int:
        """Sleep until the chat's version is another than `version`; the version then."""
        return self._open.wait(chat_id, version, timeout)

    # ---- what can be done

    def new_chat(self, private: bool = False) -> str:
        """The id of a chat without messages: a new one, or the one that was never used."""
        make = self._store.private if private else self._store.fresh
        today = datetime.date.today().isoformat()
        chat = make(self._runtime.status().model, self.turns.usual().system_prompt, today)
        self._open.touch(chat.id, stored=True)
        return chat.id

    def attend(self, chat_id: str) -> None:
        """This chat is on screen: what it asks from now on goes first."""
        self.turns.attended = chat_id

    def send(self, chat_id: str, text: str, files: Sequence[str] = (), compared: Comparison = ONCE) -> str:
        """Keep the user's message, then answer it; "" begins a chat of its own. The chat's id."""
        if not text.strip():
            raise AppError("Write a message first: this one is empty.")
        if not chat_id:
            self.attend(chat_id := self.new_chat())
        self.turns.send(chat_id, text, files, compared)
        return chat_id

    def stop(self, chat_id: str) -> None:
        """End the answers that grow; what there is stays."""
        self.turns.stop(chat_id)

    def show(self, chat_id: str, message: int) -> None:
        """Put a version of a message on screen, with what was last seen below it."""
        with self.turns.lock:
            self._store.tree.show(chat_id, message)
            self._open.touch(chat_id, stored=True)

    def reach(self, chat_id: str, message: int) -> int:
        """Put the branch of a message on screen; how many messages stand from it to the end."""
        for turned in (False, True):
            found = self._open.load(chat_id)
            ids = [each.id for each in (*found.branch, *found.beside)]
            if message in ids:
                return len(ids) - ids.index(message)
            if not turned:
                self.show(chat_id, message)
        raise AppError("This message does not exist any more.")

    def pick(self, chat_id: str, message: int) -> None:
        """Go on with one of the answers that stand side by side."""
        with self.turns.lock:
            self._store.tree.pick(chat_id, message)
            self._open.touch(chat_id, stored=True)
        self.turns.advance(chat_id)

    def revise(self, chat_id: str, message: int, text: str) -> None:
        """Another version of an answer, as the person writes it."""
        if not text.strip():
            raise AppError("Write an answer first: this one is empty.")
        with self.turns.lock:
            self.turns.ready(chat_id)
            self._store.tree.revise(chat_id, message, sound(text))
            self._open.touch(chat_id, stored=True)

    def branch(self, chat_id: str, message: int) -> str:
        """A new chat that begins as this one does, up to a message. Its id."""
        growing = self._open.answer(chat_id, message)
        new = self._store.tree.fork(chat_id, message, growing.reply.text if growing else "")
        self._open.touch(new, stored=True)
        return new

    def remove(self, chat_id: str, message: int) -> None:
        """Delete a version of a message and all below it. It can't be brought back."""
        with self.turns.lock:
            self.turns.ready(chat_id)
            self._store.tree.remove(chat_id, message)
            self._open.touch(chat_id, stored=True)
        self.attachments.sweep()

    def change_waiting(self, chat_id: str, waiting: int, text: str) -> None:
        """Another text for a message that waits in the line; without one it is taken out of it."""
        with self.turns.lock:
            self._store.tree.change_waiting(chat_id, waiting, sound(text))
            self._open.touch(chat_id, stored=True)
        self.attachments.sweep()

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat another title."""
        if not (title := " ".join(title.split())):
            raise AppError("Write a title first: this one is empty.")
        self._store.change(chat_id, title=sound(title[:TITLE_LENGTH]))
        self._open.touch(chat_id, stored=True)

    def delete(self, chat_id: str) -> None:
        """Remove a chat, ending its answers first. It can't be brought back."""
        with self.turns.lock:
            answers = self._open.answers(chat_id)
            for answer in answers:
                answer.discard()
            try:
                self._store.hide(chat_id)
            finally:  # a full disk may keep it; its answers have ended all the same
                for answer in answers:
                    self._open.drop(chat_id, answer)
                self._open.touch(chat_id, stored=True)
        self._store.remove_hidden(chat_id)
        self.attachments.sweep()
        self._runtime.forget(chat_id)

    def forget_deleted(self) -> None:
        """What no chat that is there has left behind in the memory goes: the program may have been killed."""
        self._runtime.forget_others([chat.id for chat in self._store.chats()])

    def close(self) -> None:
        """End all answers, keeping what there is, and let go of the file."""
        self.writing.compactor.close()
        self.turns.close(CLOSE_S)
        self._store.close()

    # ---- inside

    def _shown(self, chat_id: str, message: StoredMessage, beside: bool) -> MessageView:
        """A message as it is shown: an answer may be growing."""
        # in this order: an answer is there before its chat stops beginning
        beginning = self._open.beginning == chat_id
        return shown(message, self._open.answer(chat_id, message.id), beginning, beside)

    def _view(self, found: OpenChat, views: list[MessageView], version: int) -> ChatView:
        status, chat = self._runtime.status(), found.chat
        total = len(found.branch) + max(0, len(found.beside) - 1)
        names = {id: self._runtime.name(id) for id in {view.model for view in views if view.model}}
        return ChatView(
            id=chat.id,
            title=chat.title,
            messages=tuple(replace(view, model=names.get(view.model, "")) for view in views),
            earlier=total - len(views),
            busy=any(view.streaming for view in views),
            version=version,
            model=status.model,
            context_used=self._context(self._open.answers(chat.id), views),
            context_limit=self._runtime.context_length,
            status=status.message,
            line=found.line,
        )

    def _context(self, answers: tuple[Answer, ...], views: list[MessageView]) -> int:
        """The conversation's tokens: of the answer that grows, else as the last one left it."""
        growing = [answer.context for answer in answers if answer.growing and answer.context]
        stats = [view.stats for view in views if view.stats and view.stats.prompt_tokens]
        ended = stats[-1].prompt_tokens + stats[-1].tokens if stats else 0
        return max(growing, default=ended)
