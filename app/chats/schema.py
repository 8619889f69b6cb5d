"""The form of chats.db, as steps from nothing to now. A released step never changes; new ones are added.

Ids of messages are never used twice, so that an answer still being written can't land in another chat's
message.
"""

from __future__ import annotations

from .database import Database, Form, Migrations
from .search import has_index, make_index, mend_index, spaced, tidy_index

migrations = Migrations("octavo")
FORM = Form(migrations, {"spaced": spaced}, has_index, mend_index, tidy_index)


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


@migrations()
def m002_the_list_of_chats(db: Database) -> None:
    """What a chat is in the list, what it asks of the model, and the index of all words that were said."""
    db.execute("CREATE TABLE folders (id TEXT PRIMARY KEY, name TEXT NOT NULL, system_prompt TEXT NOT NULL)")
    db.execute(
        """
        CREATE TABLE presets (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            system_prompt TEXT NOT NULL,
            sampling TEXT NOT NULL,          -- JSON: fields of SamplingParams that it decides
            model TEXT NOT NULL              -- "": whichever is loaded
        )
        """
    )
    for column in (
        "pinned INTEGER NOT NULL DEFAULT 0",
        "archived INTEGER NOT NULL DEFAULT 0",
        "folder TEXT REFERENCES folders(id) ON DELETE SET NULL",
        "deleted INTEGER NOT NULL DEFAULT 0",  # waits until nobody can want it back
        "preset TEXT NOT NULL DEFAULT ''",  # the name of the one that its settings were taken from
        "sampling TEXT NOT NULL DEFAULT '{}'",  # as a preset's
        "own_model TEXT NOT NULL DEFAULT ''",  # the one it asks for; "model" is who answered last
        "origin TEXT NOT NULL DEFAULT ''",  # of an imported chat, so that it comes in once
    ):
        db.execute(f"ALTER TABLE chats ADD COLUMN {column}")
    db.execute("CREATE INDEX chats_origin ON chats(origin)")
    db.execute("CREATE INDEX messages_unfinished ON messages(id) WHERE finish IS NULL")
    make_index(db)


@migrations()
def m003_versions_and_the_line(db: Database) -> None:
    """Which version was seen last, who answered, answers side by side, and messages that wait."""
    for column in (
        "next INTEGER",  # of the messages below, the one that was on screen last
        "model TEXT NOT NULL DEFAULT ''",  # who answered
        "beside INTEGER",  # the first of the answers it is compared with, until one of them is picked
    ):
        db.execute(f"ALTER TABLE messages ADD COLUMN {column}")
    db.execute("CREATE INDEX messages_tree ON messages(chat, parent)")
    db.execute("DROP INDEX messages_chat")
    below = "SELECT max(below.id) FROM messages below WHERE (below.chat, below.parent) = (m.chat, m.id)"
    db.execute(f"UPDATE messages AS m SET next = ({below})")
    db.execute(
        """
        UPDATE messages SET model = (SELECT model FROM chats WHERE chats.id = chat) WHERE role = 'assistant'
        """
    )
    db.execute(
        """
        CREATE TABLE line (              -- messages that wait until an answer has ended, first come first
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat TEXT NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
            text TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX line_chat ON line(chat)")


@migrations()
def m004_documents_and_summaries(db: Database) -> None:
    """Files given with messages, and what stands for the older part of a long chat."""
    db.execute(
        """
        CREATE TABLE attachments (
            id TEXT PRIMARY KEY,
            chat TEXT REFERENCES chats(id) ON DELETE CASCADE,          -- NULL: of a draft on a blank page
            message INTEGER REFERENCES messages(id) ON DELETE CASCADE, -- NULL: not sent yet
            place INTEGER NOT NULL,          -- among the files of its message
            hash TEXT NOT NULL,              -- the file's name in the home folder: its SHA-256
            name TEXT NOT NULL,
            size INTEGER NOT NULL,
            unit TEXT NOT NULL,              -- page, paragraph or line
            count INTEGER NOT NULL,
            blank INTEGER NOT NULL,          -- pages without text
            given TEXT,                      -- what the model gets of it; NULL: not chosen yet
            parts TEXT NOT NULL,             -- JSON: first and last of each run of parts in that; []: all
            added REAL NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX attachments_chat ON attachments(chat)")
    db.execute("CREATE INDEX attachments_message ON attachments(message)")
    db.execute("ALTER TABLE line ADD COLUMN files TEXT NOT NULL DEFAULT '[]'")
    db.execute(
        """
        CREATE TABLE summaries (             -- each stands for its message and all above it
            message INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
            chat TEXT NOT NULL REFERENCES chats(id) ON DELETE CASCADE,
            text TEXT NOT NULL,
            token_ids BLOB NOT NULL,
            tokenizer TEXT NOT NULL
        )
        """
    )
    db.execute("CREATE INDEX summaries_chat ON summaries(chat)")


@migrations()
def m005_where_the_line_goes_on(db: Database) -> None:
    """The message that each waiting one was written under, whichever version is on screen when it is sent."""
    db.execute("ALTER TABLE line ADD COLUMN below INTEGER")
    db.execute("UPDATE line SET below = (SELECT leaf FROM chats WHERE chats.id = chat)")
