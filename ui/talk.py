"""What the conversation may ask for (assets/talk.js)."""

from __future__ import annotations

from typing import Any

from .acts import act

MOST_MESSAGES = 2_000  # on one page


def _text(page: Any, chat: str, message: int) -> dict[str, Any]:
    """A message's text as it is stored, for the clipboard."""
    found = [each.text for each in page.chats.view(chat, MOST_MESSAGES).messages if each.id == message]
    return {"text": found[0]} if found else {"error": "This message is gone."}


ACTS = {
    "text": act(_text, chat=str, message=int),
    "retry": act(lambda page, chat: page.chats.retry(chat), chat=str),
}
