"""The chat page. Answers grow in the app; a tab only watches one chat, so closing or reloading it costs
nothing.

Three ways lead here from the page's scripts (assets/page/link.js): the event `show` mirrors a chat into a tab
until its answer ends; the functions `act` (do something, out of the tables of rail.py, talk.py and desk.py)
and `frame` (what changed) answer at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from app import AppError, ChatView, Services, UnknownChat, bare

from . import chat_settings, desk, rail, talk
from .acts import served, told
from .quick_gradio import gradio as gr
from .rows import apart, row, summary
from .shell import part

UPDATES_PER_S = 12  # of an answer on the screen; what they take themselves counts
CHARACTERS_PER_S = 50_000  # a long answer is drawn less often: the browser renders all of it each time
ACTS = {**rail.ACTS, **chat_settings.ACTS, **talk.ACTS, **desk.ACTS}
# scripts of the place where one writes
DESK = ("desk/drafts", "desk/attach", "desk/dictate", "desk/cost", "desk/desk")
LATEX = [("$$", "$$", True), ("\\[", "\\]", True), ("\\(", "\\)", False)]  # begin, end, on a line of its own
TALK: dict[str, Any] = {  # Chatbot as a plain list of messages: scrolling and buttons are ours (talk.js)
    "autoscroll": False,
    "buttons": [],
    "container": False,
    "feedback_options": None,
    "group_consecutive_messages": False,
    "height": None,
    "latex_delimiters": [{"left": begin, "right": end, "display": alone} for begin, end, alone in LATEX],
    "layout": "bubble",
    "show_label": False,
}


class ChatPage:
    """The page's side of the chats. One object for all tabs."""

    def __init__(self, services: Services, restart: Callable[[], None]) -> None:
        self.chats, self.runtime, self.restart = services.chats, services.runtime, restart
        self.shelf, self.presets, self.library = services.shelf, services.presets, services.library
        self._starter = services.library.starter
        self.was_shown = threading.Event()  # some tab has a chat on its screen
        self._watching: dict[str, int] = {}  # tab -> which of its requests may write to it

    def build(self) -> None:
        """The list of chats, the conversation, and where one writes."""
        list_ = part("rail", "page/link", "rail/rail", server_functions=served(ACTS, self))
        with gr.Column(elem_id="page", elem_classes=["leaf"]):
            head = part("head", "talk/head")
            with gr.Column(elem_id="talk"):
                past = gr.Chatbot(elem_id="past", **TALK)
                now = gr.Chatbot(elem_id="now", **TALK)
            part("desk", *DESK)
        quiet: dict[str, Any] = {
            "show_progress": "hidden",
            "api_visibility": "private",
            "trigger_mode": "multiple",
        }
        # no progress to show on anything: Gradio would copy each part, the whole past too, at every update
        list_.show(self.show, None, [past, now, head], concurrency_limit=None, show_progress_on=[], **quiet)
        list_.leave(self.leave, None, None, queue=False, **quiet)

    async def show(self, event: gr.EventData, request: gr.Request) -> AsyncIterator[tuple[Any, Any, Any]]:
        """Mirror a chat into the tab until its answer ends or the tab shows something else.

        `ask` numbers a tab's requests, which may overtake each other on the way; what is shown repeats it.
        """
        tab, chat, last, ask = request.session_hash or "", *wanted(event._data)
        try:
            if ask >= self._watching.get(tab, 0):
                self._watching[tab] = ask
                self.chats.attend(chat)
            shown = None
            async for view, busy in self._watch(tab, ask, chat, last):
                about = {**summary(view, busy), "ask": ask, "status": self._status()}
                before, turn = apart(view.messages)
                past = gr.skip() if before == shown else [row(message) for message in before]
                shown = before
                yield past, [row(message) for message in turn], about
                self.was_shown.set()
        except AppError as error:
            yield gr.skip(), gr.skip(), {"ask": ask, "error": str(error)}
        finally:
            if self._watching.get(tab) == ask:
                del self._watching[tab]
        # at its end Gradio sends what was yielded last once more, or None if nothing was; a skip is no change
        yield gr.skip(), gr.skip(), gr.skip()

    async def _watch(self, tab: str, ask: int, chat: str, last: int) -> AsyncIterator[tuple[ChatView, bool]]:
        """The chat after each change, and whether its answer still grows."""
        seen = None
        while self._watching.get(tab) == ask:
            begin = time.monotonic()
            busy = self.chats.busy(chat)  # before the content, or the last change could be missed
            now = busy, self.chats.version(chat), self.chats.reading(chat)
            if now != seen:
                view, seen = await asyncio.to_thread(self._view, chat, last), now
                if self._watching.get(tab) == ask:
                    yield view, busy
            if not busy:
                break
            length = len(view.messages[-1].text) if view.messages else 0
            pause = max(1 / UPDATES_PER_S, length / CHARACTERS_PER_S)
            await asyncio.sleep(max(pause / 4, begin + pause - time.monotonic()))

    def leave(self, request: gr.Request) -> None:
        """The tab is hidden: end its stream."""
        self._watching.pop(request.session_hash or "", None)

    def _view(self, chat: str, last: int) -> ChatView:
        """The chat, or a blank page where there is none, not yet or not any more."""
        try:
            return self.chats.view(chat, last)
        except UnknownChat:
            return self.chats.blank()

    def frame(self, data: Any) -> dict[str, Any]:
        """The list of chats and the model's state; only its name if that is what the page has seen."""
        content = {**rail.look(self, data), "status": self._status()}
        seen = hashlib.blake2b(json.dumps(content).encode(), digest_size=12).hexdigest()
        return {"seen": seen} if told(data, "seen", "") == seen else {"seen": seen, **content}

    def _status(self) -> dict[str, Any]:
        status, stats = self.runtime.status(), self.runtime.stats()
        fault = {"state": "failed", "message": stats.fault} if stats and stats.fault else {}
        is_starter = bare(status.model) == self._starter
        return {**dataclasses.asdict(status), "starter": is_starter, **fault}


def wanted(asked: Any) -> tuple[str, int, int]:
    """What a tab asks to be shown: a chat, how many of its messages, and the number of this request."""
    last = min(max(told(asked, "last", 40), 1), talk.MOST_MESSAGES)
    return told(asked, "chat", ""), last, told(asked, "ask", 0)
