"""What the list of chats may ask for (assets/rail.js)."""

from __future__ import annotations

from .acts import act

ACTS = {
    "rename": act(lambda page, chat, title: page.chats.rename(chat, title), chat=str, title=str),
    "delete": act(lambda page, chat: page.chats.delete(chat), chat=str),
}
