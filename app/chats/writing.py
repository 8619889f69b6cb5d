"""What the place where one writes asks for besides sending: files, what a message would cost, and summing up
the older part of a chat.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..documents.attachments import Attachments
from ..errors import AppError
from ..memory.runtime import Runtime
from .chat_turns import ChatTurns
from .compaction import older_part
from .compactor import Compactor
from .cost import Cost, cost_of
from .database import DatabaseFile
from .open_chats import OpenChats
from .records import Chat, OpenChat


@dataclass(frozen=True, slots=True)
class ContextView:
    """How the context of a chat is used. `older` messages would be summed up next, 0 if there are too few;
    `summed_up` are, and `summary` is what stands for them.
    """

    older: int
    summed_up: int
    summary: str


class Writing:
    """Any thread may call. Errors are AppErrors whose text is for the person."""

    def __init__(
        self,
        files: Attachments,
        chats: OpenChats,
        turns: ChatTurns,
        runtime: Runtime,
        place: Callable[[str | int], DatabaseFile],
    ) -> None:
        self.files, self.compactor = files, Compactor(runtime, chats, place)
        self._chats, self._turns, self._runtime = chats, turns, runtime

    def cost(self, chat: str, text: str, files: Sequence[str]) -> Cost:
        """What a message would cost if it were sent now. Raises AppError while the model is not there."""
        request = self._turns.so_far(self._open(chat))
        return cost_of(self._runtime, self.files, request, text, self.files.waiting(chat, files))

    def context(self, chat: str) -> ContextView:
        """How a chat's context is used."""
        found = self._open(chat)
        try:
            older = older_part(self._runtime, found.branch, found.summary)[1]
        except AppError:
            older = 0
        if (summary := found.summary) is None:
            return ContextView(older, 0, "")
        place = [message.id for message in found.branch].index(summary.message)
        return ContextView(older, place + 1, summary.text)

    def _open(self, chat: str) -> OpenChat:
        if chat:
            return self._chats.load(chat)
        prompt, today = self._turns.usual().system_prompt, datetime.date.today().isoformat()
        return OpenChat(Chat("", "", "", prompt, today, 0.0, 0, None), (), (), ())
