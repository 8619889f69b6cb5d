"""How long the chats take to be listed, opened and searched, with 2,000 of them and 100,000 messages, half of
these Chinese.

In milliseconds on the server, the longest of some tries: what a person waits for beside the browser's own
time. No model is loaded.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import app
from app import Home, Services, Settings

from .sides import Figures

CHATS, MESSAGES, TRIES = 2_000, 50, 7  # messages in a chat
WORDS = (
    *(
        "the",
        "of",
        "and",
        "a",
        "to",
        "in",
        "is",
        "that",
        "for",
        "it",
        "as",
        "was",
        "with",
        "be",
        "by",
        "on",
        "not",
    ),
    *(
        "than",
        "he",
        "his",
        "but",
        "at",
        "are",
        "this",
        "have",
        "from",
        "or",
        "had",
        "an",
        "they",
        "which",
        "one",
    ),
)
HAN = (
    "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能对小多"
)
RARE = "zymurgy", "茴香豆"
SEARCHES = {  # what is typed, by what it is
    "english_rare": "zymurgy",
    "english_common": "that have",
    "begun": "tha",
    "chinese_rare": "茴香",
    "chinese_common": "的一",
    "absent": "xylograph",
}


def message(rng: random.Random, number: int) -> str:
    """Some 600 bytes; a hundred of them have the rare words."""
    rare = RARE[number % 2] if number % 1000 < 2 else ""
    if number % 2:
        return "".join(rng.choices(HAN, k=200)) + rare
    return f"{' '.join(rng.choices(WORDS, k=100))} word{number % 5000} {rare}"


def fill(db: Any) -> None:
    """Chats as if they had been said."""
    rng, first = random.Random(0), time.time() - 1e7
    for chat in range(CHATS):
        ids = range(chat * MESSAGES + 1, (chat + 1) * MESSAGES + 1)
        about = {"id": f"c{chat}", "title": f"Chat {chat}", "model": "m", "date": "", "system_prompt": ""}
        db["chats"].insert({**about, "updated": first + chat, "turn": chat, "leaf": ids[-1]})
        common = {"chat": f"c{chat}", "token_ids": b"", "tokenizer": "", "error": "", "finish": "stop"}
        db["messages"].insert_all(
            {
                **common,
                "id": id,
                "parent": id - 1 if depth else None,
                "depth": depth,
                "role": ("user", "assistant")[depth % 2],
                "text": message(rng, id),
            }
            for depth, id in enumerate(ids)
        )


def longest(work: Callable[[], object]) -> float:
    """Of some tries, in milliseconds."""
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return max(times)


def store() -> Figures:
    """All figures, in a home folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.prepare()
        services = app.build(Settings(home))
        services.store.file.transact(fill)
        services.close()
        start = time.perf_counter()
        services = app.build(Settings(home))
        found = {"start_ms": (time.perf_counter() - start) * 1000}
        try:
            return found | ask(services)
        finally:
            services.close()


def ask(services: Services) -> Figures:
    """What a page asks."""
    chats, shelf, rng = services.chats, services.shelf, random.Random(1)

    def some() -> str:
        return f"c{rng.randrange(CHATS)}"

    def changed() -> None:
        chats.note_change("")
        shelf.look("", 100, some())

    found = {
        "list_ms": longest(changed),
        "list_same_ms": longest(lambda: shelf.look("", 100, some())),
        "switch_ms": longest(lambda: chats.view(some())),
        "pin_ms": longest(lambda: shelf.pin(some(), True)),
    }
    for name, wanted in SEARCHES.items():
        found[f"search_{name}_ms"] = longest(lambda wanted=wanted: shelf.search(wanted))  # type: ignore[misc]
    start = time.perf_counter()
    chats.delete("c5")
    return found | {"delete_for_good_ms": (time.perf_counter() - start) * 1000}
