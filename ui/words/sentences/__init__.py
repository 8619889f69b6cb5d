"""Every sentence that app and engine say on the page: English -> Chinese, {name} is a hole for a value.

They are written in English where they arise, and stay English in commands, in the API and in the file of the
chats. The page takes a sentence apart by these templates and puts it together in its own language
(assets/page/said.js): whole ones, several in a row, and those inside of others. A test reads the code of all
layers and fails for a sentence that has no Chinese form here, and for one that nobody says any more.
"""

from __future__ import annotations

from .architectures import ARCHITECTURES
from .chats import CHATS
from .checkpoints import CHECKPOINTS
from .engine import ENGINE
from .models import MODELS
from .system import SYSTEM

SAID = (CHATS, MODELS, ENGINE, CHECKPOINTS, ARCHITECTURES)


def sentences() -> dict[str, str]:
    """All of them, as the browser gets them."""
    return {english: chinese for part in (*SAID, SYSTEM) for english, chinese in part.items()}
