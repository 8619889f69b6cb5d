"""The whole: the list of chats at the left, beside it one of four pages (chat, models, memory, settings).

All are drawn in one Gradio page, so that turning a page costs nothing and answers go on meanwhile. A page
is a class with `build()`, called inside the frame; what it shows is a part (shell.py), drawn by its script
from plain data. Its script has two functions of the server (acts.py): `act` does something, `frame` says what
there is to see. Which page is open is the browser's affair (assets/page/pages.js):
octavo.visit(name, look, ms) calls `look` now and then while it is.
"""

from __future__ import annotations

from collections.abc import Callable

from app import Services

from .chat_page import ChatPage
from .memory_page import MemoryPage
from .models_page import ModelsPage
from .quick_gradio import gradio as gr
from .settings_page import SettingsPage


def build(services: Services, restart: Callable[[], None]) -> tuple[gr.Blocks, ChatPage]:
    """All pages side by side, of which the styles hide all but the open one; and the one with the chats."""
    chat = ChatPage(services, restart)
    pages = (chat, ModelsPage(services), MemoryPage(services), SettingsPage(services, restart))
    with (
        gr.Blocks(title="Octavo", analytics_enabled=False, fill_height=True, fill_width=True) as blocks,
        gr.Row(elem_id="spread"),
    ):
        for page in pages:
            page.build()
    return blocks, chat
