"""Summaries of long chats in the store: each stands for a message and all above it, on its branch only.

When they are made, and of what, is compaction.py's to know.
"""

from __future__ import annotations

import struct

from .database import Database
from .records import Summary


def keep_summary(db: Database, chat: str, summary: Summary) -> None:
    """From now on it stands for what it sums up."""
    ids = struct.pack(f"<{len(summary.token_ids)}I", *summary.token_ids)
    values = {"message": summary.message, "chat": chat, "text": summary.text, "token_ids": ids}
    db["summaries"].upsert({**values, "tokenizer": summary.tokenizer}, pk="message")


def drop_summary(db: Database, chat: str, message: int) -> None:
    """The messages themselves are given again, or the summary before."""
    db.execute("DELETE FROM summaries WHERE (chat, message) = (?, ?)", [chat, message])


def summary_of(db: Database, chat: str, branch: set[int]) -> Summary | None:
    """The newest summary of this branch."""
    newest = "SELECT * FROM summaries WHERE chat = ? ORDER BY message DESC"
    for row in db.execute(newest, [chat]).fetchall():
        if row["message"] in branch:
            ids = struct.unpack(f"<{len(row['token_ids']) // 4}I", row["token_ids"])
            return Summary(row["message"], row["text"], ids, row["tokenizer"])
    return None
