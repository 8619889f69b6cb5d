"""Every word that was said, found: an index (SQLite's FTS5) beside the messages, and how one asks it.

Chinese, Japanese and Korean are written without spaces, so each of their characters is a word of its own in
the index, and a run of them is looked for as a phrase. Triggers keep the index true within the transaction
that changes a message; an answer comes in when it is finished. What a person types is only ever words: no
character of it means anything to FTS5.
"""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from unicodedata import combining, normalize

from .database import Database
from .excerpts import plain

# kana, han, bopomofo, hangul, and what compatibility blocks and the far planes have of them
CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)
ALONE = re.compile(f"([{CJK}])")
TAGS = re.compile(r"</?think>")
MOST_WORDS, MOST_TITLES, MOST_HITS, MOST_IN_CHAT, MOST_LOOKED_AT = 20, 8, 30, 3, 1000
LONGEST = 1000  # characters of a piece that is shown: the words in it may stand far apart
LEAST_BEGUN = 3  # letters of the last word, for others to be found that begin with it
SAID = """
    SELECT m.id, m.chat, m.role, c.title, c.updated, c.archived
    FROM words JOIN messages m ON m.id = words.rowid JOIN chats c ON c.id = m.chat
    WHERE words MATCH :query AND NOT c.deleted ORDER BY words.rowid DESC LIMIT :most
"""
# one walk over the hits: for each of them alone, and without the +, the index would be asked anew
SNIPPETS = """
    SELECT rowid, snippet(words, 0, char(2), char(3), '…', 24) FROM words WHERE words MATCH :query AND
    rowid BETWEEN :first AND :last AND +rowid IN (SELECT value FROM json_each(:ids))
"""
MERGED_PAGES = 400  # in one transaction: about 10 ms
# of FTS5: bytes in memory, and parts of the index of one size, before they are made one; as it is used, and
# where much comes in: what is merged seldom is written seldom
PACES = {"hashsize": (2**20, 2**24), "automerge": (4, 16), "crisismerge": (16, 64)}
EDGE = "\x1f"  # stands around each of them; to FTS5 it ends a word
INDEX = (
    "CREATE VIEW said AS SELECT id, spaced(text) AS text FROM messages WHERE finish IS NOT NULL",
    """CREATE VIRTUAL TABLE words USING fts5(
        text, content='said', content_rowid='id', tokenize='unicode61 remove_diacritics 2'
    )""",
    """CREATE TRIGGER words_new AFTER INSERT ON messages WHEN new.finish IS NOT NULL BEGIN
        INSERT INTO words(rowid, text) VALUES (new.id, spaced(new.text));
    END""",
    """CREATE TRIGGER words_gone AFTER DELETE ON messages WHEN old.finish IS NOT NULL BEGIN
        INSERT INTO words(words, rowid, text) VALUES ('delete', old.id, spaced(old.text));
    END""",
    """CREATE TRIGGER words_old BEFORE UPDATE OF text, finish ON messages WHEN old.finish IS NOT NULL BEGIN
        INSERT INTO words(words, rowid, text) VALUES ('delete', old.id, spaced(old.text));
    END""",
    """CREATE TRIGGER words_changed AFTER UPDATE OF text, finish ON messages WHEN new.finish IS NOT NULL BEGIN
        INSERT INTO words(rowid, text) VALUES (new.id, spaced(new.text));
    END""",
)
PARTS = (
    *(("TRIGGER", f"words_{name}") for name in ("new", "gone", "old", "changed")),
    ("TABLE", "words"),
    ("VIEW", "said"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chat whose title has the words, or a message of one. `pieces`: (text, whether it was looked for)."""

    chat: str
    title: str
    updated: float
    archived: bool
    message: int | None = None
    role: str = ""
    pieces: tuple[tuple[str, bool], ...] = ()


def spaced(text: str) -> str:
    """The text as it is indexed: each character that is a word of its own stands alone."""
    text = text.replace(EDGE, " ")
    return text if text.isascii() else ALONE.sub(rf"{EDGE}\1{EDGE}", text)


def has_index(db: Database) -> bool:
    """Whether all of it is there."""
    names = {row[0] for row in db.execute("SELECT name FROM sqlite_master").fetchall()}
    return names.issuperset(name for _, name in PARTS)


def make_index(db: Database) -> None:
    """The index of all messages that there are. It needs `spaced` as a function of the connection."""
    for statement in INDEX:
        db.execute(statement)
    db.execute("INSERT INTO words(words) VALUES ('rebuild')")


def mend_index(db: Database) -> None:
    """Make the index anew, whatever became of the old one."""
    for kind, name in PARTS:
        db.execute(f"DROP {kind} IF EXISTS {name}")
    make_index(db)


def tidy_index(db: Database) -> bool:
    """Take what was deleted out of the index's own pages, a part of the work; whether more is to be done."""
    before = db.conn.total_changes
    db.execute("INSERT INTO words(words, rank) VALUES ('merge', ?)", [-MERGED_PAGES])
    return db.conn.total_changes - before > 1


def set_pace(db: Database, is_much: bool) -> None:
    """Say whether much will come in, or no more."""
    for name, values in PACES.items():
        db.execute("INSERT INTO words(words, rank) VALUES (?, ?)", [name, values[is_much]])


def find(db: Database, text: str) -> list[Hit]:
    """Chats by their title, then messages, each the newest first; in both all words of the text stand."""
    words = text.replace("\0", " ").split()[:MOST_WORDS]
    if not words:
        return []
    chats = "SELECT id, title, updated, archived FROM chats WHERE NOT deleted AND leaf IS NOT NULL "
    wanted = [_folded(word) for word in words]
    titled = [
        Hit(row["id"], row["title"], row["updated"], bool(row["archived"]))
        for row in db.execute(chats + "ORDER BY turn DESC, updated DESC").fetchall()
        if all(word in _folded(row["title"]) for word in wanted)
    ]
    return titled[:MOST_TITLES] + _said(db, words)


def _folded(text: str) -> str:
    """The text without case and accents, as the index has it."""
    if text.isascii():
        return text.lower()
    return "".join(sign for sign in normalize("NFD", text.casefold()) if not combining(sign))


def _said(db: Database, words: list[str]) -> list[Hit]:
    quoted = ['"{}"'.format(spaced(word).replace('"', '""')) for word in words]
    is_begun = len(words[-1]) >= LEAST_BEGUN
    query = " ".join(quoted) + ("*" if is_begun else "")
    rows: list[sqlite3.Row] = []
    in_chat: dict[str, int] = {}
    for row in db.execute(SAID, {"query": query, "most": MOST_LOOKED_AT}):
        in_chat[row["chat"]] = in_chat.get(row["chat"], 0) + 1
        if in_chat[row["chat"]] <= MOST_IN_CHAT:
            rows.append(row)
        if len(rows) == MOST_HITS:
            break
    if not rows:
        return []
    ids = [row["id"] for row in rows]
    about = {"query": query, "first": min(ids), "last": max(ids), "ids": json.dumps(ids)}
    snippets = dict(db.execute(SNIPPETS, about).fetchall())
    return [_hit(row, snippets[row["id"]]) for row in rows]


def _hit(row: sqlite3.Row, snippet: str) -> Hit:
    text = TAGS.sub("", snippet.replace(EDGE, ""))
    begin = max(0, text.find("\2") - LONGEST // 4)
    text = text[begin : begin + LONGEST]
    if row["role"] == "assistant":
        text = plain(text)
    pieces = []
    for number, part in enumerate(re.split("[\2\3]", text)):
        if part:
            pieces.append((part, number % 2 == 1))
    chat = row["chat"], row["title"], row["updated"], bool(row["archived"])
    return Hit(*chat, row["id"], row["role"], tuple(pieces))
