"""What a file of chats holds, value by value: JSON, or a .zip of it, of any size, in little memory.

One conversation or document is in memory at a time; what is larger than one can be, or lies deeper, is
refused. What the values are is import_forms.py's to know.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import ijson

from engine import in_words

from .import_files import GivenDocument, NotImported
from .import_forms import Conversation, conversation

LARGEST_UNPACKED = 8 * 2**30  # of what a .zip holds
LARGEST_CHAT = 64 * 2**20  # of the text of one conversation
DEEPEST = 64  # values within values
PART = 2**16
CONVERSATIONS = re.compile(r"(.*/)?conversations(-\d+)?\.json")
BROKEN = "This file can't be read as JSON: it is none, is damaged or cut short. Nothing was imported."

Tell = Callable[[float], None]
Found = Conversation | GivenDocument | None


def conversations(path: Path, tell: Tell) -> Generator[Found, None, None]:
    """What a .json or .zip file holds, one by one; None for one that is empty. `tell` hears which share of it
    was read. Raises NotImported.
    """
    if not zipfile.is_zipfile(path):
        size = max(1, path.stat().st_size)
        with path.open("rb") as file:
            yield from map(conversation, values(file, lambda done: tell(done / size)))
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if CONVERSATIONS.fullmatch(name))
            if not names:
                raise NotImported("This .zip holds no conversations.json. Nothing was imported.")
            sizes = [archive.getinfo(name).file_size for name in names]
            for place, name in enumerate(names):
                before, size = sum(sizes[:place]), max(1, sum(sizes))
                with archive.open(name) as file:
                    told = partial(_tell_rest, tell, before, size)
                    yield from map(conversation, values(file, told))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as error:
        raise NotImported(f"This .zip can't be read: {error}. Nothing was imported.") from error


def _tell_rest(tell: Tell, before: int, size: int, done: int) -> None:
    tell(min(1.0, (before + done) / size))


class _Counted:
    """A file that counts what was read of it, in all and since `mark`."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file, self._tell, self.total, self.mark = file, tell, 0, 0

    def read(self, size: int = PART) -> bytes:
        data = self._file.read(min(size, PART))
        if not self.total:
            data = data.removeprefix(b"\xef\xbb\xbf")
        self.total += len(data)
        self._tell(self.total)
        for most, there, what in (
            (LARGEST_UNPACKED, self.total, "The file"),
            (LARGEST_CHAT, self.total - self.mark, "A conversation in this file"),
        ):
            if there > most + PART:
                raise NotImported(f"{what} is larger than {in_words(most)}. Nothing was imported.")
        return data


def values(file: IO[bytes], tell: Callable[[int], None] = lambda done: None) -> Iterator[Any]:
    """The values of a JSON list, or of the lists "documents" and "chats" in an object, one by one; or the
    object alone. `tell` hears how many bytes were read.
    """
    counted = _Counted(file, tell)
    events = ijson.basic_parse(counted, buf_size=PART, use_float=True)
    try:
        kind, value = next(events)
        if kind == "start_array":
            yield from _items(events, counted)
            for _ in events:  # none, or what stands behind the list is an error
                pass
            return
        rest, key, had_chats = ijson.ObjectBuilder(), "", False
        rest.event(kind, value)
        depth = 1
        for kind, value in events:
            key = value if kind == "map_key" and depth == 1 else key
            if depth == 1 and kind == "start_array" and key in ("documents", "chats"):
                had_chats = True
                yield from _items(events, counted)
                kind, value = "null", None
            depth = _deeper(depth, kind)
            rest.event(kind, value)
        if not had_chats:
            yield rest.value
    except StopIteration:
        raise NotImported("This file is empty. Nothing was imported.") from None
    except (ijson.JSONError, ValueError, ArithmeticError) as error:
        raise NotImported(BROKEN) from error


def _items(events: Iterator[tuple[str, Any]], counted: _Counted) -> Iterator[Any]:
    """The values up to the end of the list that has begun."""
    depth, builder = 0, None
    for kind, value in events:
        if depth == 0 and kind == "end_array":
            return
        builder = builder or ijson.ObjectBuilder()
        builder.event(kind, value)
        depth = _deeper(depth, kind)
        if depth == 0:
            counted.mark = counted.total
            yield builder.value
            builder = None


def _deeper(depth: int, kind: str) -> int:
    depth += kind.startswith("start_") - kind.startswith("end_")
    if depth > DEEPEST:
        raise NotImported(f"A value in this file lies more than {DEEPEST} deep. Nothing was imported.")
    return depth
