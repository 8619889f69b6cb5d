"""The rows of messages that wait: what tree.py asks of them and changes in them.

Each function works within a transaction of its caller. A message that waits goes below the one it was written
under, or what took that one's place, whichever version is on screen by then.
"""

from __future__ import annotations

import json

from ..documents.attachments import found_of
from .database import Database
from .records import Waiting

# one whose message is gone goes below what is on screen
LINE = """
    SELECT line.*, m.id AS under FROM line LEFT JOIN messages m ON m.id = line.below
    WHERE line.chat = ? ORDER BY line.id
"""


def line_of(db: Database, chat: str) -> tuple[Waiting, ...]:
    """What waits in a chat, first come first."""
    found = []
    for row in db.execute(LINE, [chat]).fetchall():
        files = tuple(json.loads(row["files"]))
        found.append(Waiting(row["id"], row["text"], files, row["under"], found_of(db, files)))
    return tuple(found)


def follow(db: Database, chat: str, old: int | None, new: int) -> None:
    """What waits below a message waits below another from now on."""
    db.execute("UPDATE line SET below = ? WHERE chat = ? AND below IS ?", [new, chat, old])
