"""Documents to text, read by a helper process (reading_worker.py), one for each document.

Reading that takes over 60 s, wants more than 1 GiB or gives more than 8 million characters ends in
Unreadable; so does what holds no text. Knows neither chats nor where files are kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from ..errors import Unreadable

LIMIT_S = 60
MEMORY = 2**30
MAX_PAGES = 5_000
MAX_UNPACKED = 256 * 10**6  # bytes in a Word document's archive
MAX_CHARACTERS = 8_000_000
AT_ONCE = 2  # helpers
KEPT_ENVIRONMENT = ("SYSTEMROOT", "LD_LIBRARY_PATH")  # without which Python may not start

_seats = threading.Semaphore(AT_ONCE)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says. `unit` is what a part is: "page", "paragraph" or "line"; parts are counted from 1."""

    unit: str
    parts: tuple[str, ...]

    @property
    def length(self) -> int:
        """Characters."""
        return sum(map(len, self.parts)) + len(self.parts)


def read_document(source: Path | bytes, limit_s: float = LIMIT_S, memory: int = MEMORY) -> Document:
    """A file's text, or that of a document in memory, which then stays off the disk. Raises Unreadable.

    Any thread may call; a third waits until one of two has finished.
    """
    is_file = isinstance(source, Path)
    setup = {
        "path": str(source) if is_file else "",
        "memory": memory,
        "seconds": int(limit_s),
        "pages": MAX_PAGES,
        "unpacked": MAX_UNPACKED,
        "characters": MAX_CHARACTERS,
    }
    with _seats:
        answer = _ask(b"%s\n%s" % (json.dumps(setup).encode(), b"" if is_file else source), limit_s)
    if "error" in answer:
        raise Unreadable(answer["error"])
    return Document(answer["unit"], tuple(answer["parts"]))


def _ask(given: bytes, limit_s: float) -> dict[str, str]:
    try:
        done = subprocess.run(
            # as a file: it needs nothing of this package, and -E -P keep foreign modules off its path
            [sys.executable, "-E", "-P", str(Path(__file__).with_name("reading_worker.py"))],
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=limit_s,
            env={key: os.environ[key] for key in KEPT_ENVIRONMENT if key in os.environ},
            start_new_session=True,  # Ctrl-C in the terminal is for the program alone
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise Unreadable(f"Reading it took longer than {limit_s:g} s; attach a part of it.") from None
    except (OSError, ValueError):  # it could not start, or died
        raise Unreadable("The process that reads documents failed on it.") from None
