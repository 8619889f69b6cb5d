"""The form of chats.db, as steps from nothing to now. A released step never changes; new ones are added.

Ids of messages are never used twice, so that an answer still being written can't land in another chat's
message.
"""

from __future__ import annotations

from .database import Database, Migrations

migrations = Migrations("octavo")
VERSION = 1  # how many steps there are


@migrations()
def m001_chats_and_messages(db: Database) -> None:
    """Chats, and their messages as a tree."""
    db.execute(
        """
        CREATE TABLE chats (
            id TEXT PRIMARY KEY,
            title TEXT NOT NULL,
            model TEXT NOT NULL,
            system_prompt TEXT NOT NULL,
            date TEXT NOT NULL,              -- what templates take for today
            updated REAL NOT NULL,           -- for show only: clocks jump
            turn INTEGER NOT NULL,           -- the larger, the newer
            leaf INTEGER                     -- the last message of the branch on screen
        )
        """
    )
    db.execute(
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat TEXT NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
            parent INTEGER,
            depth INTEGER NOT NULL,          -- how many messages stand above it
            role TEXT NOT NULL,
            text TEXT NOT NULL,
            token_ids BLOB NOT NULL,         -- little-endian 32-bit, as they were sampled
            tokenizer TEXT NOT NULL,         -- the fingerprint of the tokenizer they belong to
            finish TEXT,                     -- NULL: still being written, or interrupted by a crash
            error TEXT NOT NULL,
            stats TEXT                       -- JSON
        )
        """
    )
    db.execute("CREATE INDEX messages_chat ON messages(chat)")
