"""What is known of chats between two looks at the disk: their answers that grow, a number that changes with
every change, and what was read of them last.

Any thread may call. Who begins answers is chat_turns.py's to know, what a page sees of them chat.py's.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence

from .answer import Answer
from .records import OpenChat
from .tree import Tree

REMEMBERED = 32  # chats whose messages are kept in memory


class OpenChats:
    """Chats by their id, answers by their message's."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._changed = threading.Condition()  # guards what follows
        self._clock = itertools.count(time.time_ns() // 10**6)  # versions go on growing after a restart
        self._start = next(self._clock)
        self._versions: dict[str, int] = {}
        self._answers: dict[str, dict[int, Answer]] = {}
        self._read: dict[str, OpenChat] = {}
        self._writes = 0
        self.beginning = ""  # the chat whose answers are in the store but not yet here

    def load(self, chat: str) -> OpenChat:
        """A chat, from memory if nothing was written since. Raises UnknownChat."""
        with self._changed:
            if found := self._read.get(chat):
                return found
            writes = self._writes
        found = self._tree.open(chat)
        with self._changed:
            if writes == self._writes:
                while len(self._read) >= REMEMBERED:
                    del self._read[next(iter(self._read))]
                self._read[chat] = found
        return found

    def touch(self, chat: str, stored: bool = False) -> None:
        """The chat has changed; `stored`: what the disk has of it, too."""
        with self._changed:
            self._versions[chat] = next(self._clock)
            if stored:
                self._read.pop(chat, None)
                self._writes += 1
            self._changed.notify_all()

    @property
    def writes(self) -> int:
        """How often the disk's state has changed."""
        return self._writes

    def version(self, chat: str) -> int:
        """A number that grows with every change of the chat."""
        return self._versions.get(chat, self._start)

    def wait(self, chat: str, version: int, timeout: float) -> int:
        """Sleep until the chat's version is another than `version`; the version then."""
        with self._changed:
            self._changed.wait_for(lambda: self.version(chat) != version, timeout)
            return self.version(chat)

    def answers(self, chat: str) -> tuple[Answer, ...]:
        """Answers that grow, or have ended and are not stored yet."""
        with self._changed:
            return tuple(self._answers.get(chat, {}).values())

    def all_answers(self) -> tuple[Answer, ...]:
        """Those of all chats."""
        with self._changed:
            return tuple(answer for mine in self._answers.values() for answer in mine.values())

    def answer(self, chat: str, message: int) -> Answer | None:
        """The answer that grows in a message."""
        return self._answers.get(chat, {}).get(message)

    def growing(self, chat: str) -> bool:
        """Whether an answer is growing in this chat."""
        return any(answer.growing for answer in self.answers(chat))

    def busy(self, chat: str) -> bool:
        """The same; or it has just ended, is being stored, and a message that waits may come next."""
        return any(answer.growing or not answer.trouble for answer in self.answers(chat))

    def busy_chats(self) -> set[str]:
        """All chats in which an answer is growing."""
        with self._changed:
            answers = {chat: tuple(mine.values()) for chat, mine in self._answers.items()}
        return {chat for chat, mine in answers.items() if any(answer.growing for answer in mine)}

    def put(self, chat: str, answers: Sequence[Answer]) -> None:
        """These grow from now on; what grew before has ended and is stored."""
        with self._changed:
            self._answers[chat] = {answer.message_id: answer for answer in answers}

    def drop(self, chat: str, answer: Answer) -> None:
        """This one has ended, and is stored."""
        with self._changed:
            mine = self._answers.get(chat, {})
            if mine.get(answer.message_id) is answer:
                del mine[answer.message_id]
            if not mine:
                self._answers.pop(chat, None)
