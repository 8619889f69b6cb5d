"""Documents within an export of chats: their text, and the messages that they were given with.

Octavo's own export has each document once, beside the chats; Open WebUI's has the text where the file is
named. A value of a wrong kind counts as missing. Knows no store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..documents.attachments import MOST_FILES, file_name
from ..documents.reading import MAX_CHARACTERS, Document
from ..errors import AppError
from .typed import sound

UNITS = ("page", "paragraph", "line")


class NotImported(AppError):
    """A file of chats that can't be taken."""


@dataclass(frozen=True, slots=True)
class GivenDocument:
    """A document's text; `id` is what files call it by."""

    id: str
    text: Document


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file of a message. Its text is `document`, or the document that has this id. What the model had of
    it, `given` and `parts`, is as in Attachment.
    """

    name: str
    size: int = 0
    id: str = ""
    document: Document | None = None
    given: str | None = None
    parts: tuple[tuple[int, int], ...] = ()


def document(found: dict[str, Any]) -> GivenDocument:
    """One of an export's documents. Raises NotImported for one that no program of ours has written."""
    parts = [sound(each) for each in found["parts"] if isinstance(each, str)]
    if sum(map(len, parts)) > MAX_CHARACTERS:
        raise NotImported(
            f"A document in this file has more than {MAX_CHARACTERS:,} characters. Nothing was imported."
        )
    unit = found.get("unit")
    return GivenDocument(str(found.get("id")), Document(unit if unit in UNITS else "line", tuple(parts)))


def own_files(found: Any) -> tuple[GivenFile, ...]:
    """The files of a message in Octavo's own export."""
    return tuple(
        GivenFile(
            file_name(sound(each["name"])),
            each["size"] if type(each.get("size")) is int and 0 <= each["size"] < 2**62 else 0,
            str(each.get("document")),
            given=sound(each["given"]) if isinstance(each.get("given"), str) else None,
            parts=_runs(each.get("parts")),
        )
        for each in _dicts(found)
        if isinstance(each.get("name"), str)
    )[:MOST_FILES]


def open_webui_files(found: Any) -> tuple[GivenFile, ...]:
    """The files of a message in Open WebUI's, where they have their text."""
    files = []
    for each in _dicts(found):
        file = each.get("file")
        data = file.get("data") if isinstance(file, dict) else None
        text = data.get("content") if isinstance(data, dict) else None
        name = each.get("name")
        if isinstance(name, str) and isinstance(text, str) and 0 < len(text) <= MAX_CHARACTERS:
            lines = Document("line", tuple(sound(text).splitlines()))
            size = len(text.encode("utf-8", "replace"))
            files.append(GivenFile(file_name(sound(name)), size, document=lines))
    return tuple(files[:MOST_FILES])


def _dicts(found: Any) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _runs(found: Any) -> tuple[tuple[int, int], ...]:
    """The first and last of each run of parts; none where one is no run."""
    runs = [tuple(each) for each in found if isinstance(each, list)] if isinstance(found, list) else []
    are_numbers = all(len(run) == 2 and all(type(n) is int and 0 <= n < 2**31 for n in run) for run in runs)
    return tuple((run[0], run[1]) for run in runs) if are_numbers else ()
