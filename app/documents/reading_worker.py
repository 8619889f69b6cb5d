"""Reads one document in a process of its own, started as a file: a JSON line in, one out.

What a person attaches came from anywhere and is not trusted: it may be damaged, or made to fill the memory.
This process keeps that away from the program: memory is limited where the system can do that, output is
capped, and the parent ends it when reading takes long (reading.py). What a file is, its bytes say, not its
name. Imports the standard library, and pypdf or python-docx where they are wanted.
In: {"path", "memory", "seconds", "pages", "unpacked", "characters"}, and where the path is "" the document
itself, up to the end. Out: {"unit", "parts"} or {"error"}, sentences about "it". A unit is
what a part is: a page, a paragraph, a line.
"""

from __future__ import annotations

import io
import json
import re
import signal
import sys
import zipfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import IO, Any

TEXT_ONLY = "this program reads text only"
# how a file begins that is no text -> what to say of it
STRANGERS = (
    (
        rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|BM.{4}\0\0\0\0|II\*\0|MM\0\*",
        f"It is a picture; {TEXT_ONLY}.",
    ),
    (rb"\xd0\xcf\x11\xe0", "It is a document of an old Office; save it as .docx or PDF and attach that."),
    (rb"\{\\rtf", "It is a document in Rich Text; save it as .docx or PDF and attach that."),
    (
        rb"ID3[\x02-\x04]|OggS\0|fLaC|RIFF....WAVE|....ftyp|\x1aE\xdf\xa3",
        f"It is sound or film; {TEXT_ONLY}.",
    ),
    (
        rb"\x1f\x8b|7z\xbc\xaf|Rar!\x1a|\xfd7zXZ|BZh[1-9]1AY",
        "It is an archive; unpack it and attach what is in it.",
    ),
)
# a file in a ZIP archive -> what the archive is
ARCHIVES = (
    ("xl/workbook.xml", "It is a spreadsheet; save it as CSV and attach that."),
    ("ppt/presentation.xml", "It is a presentation; save it as PDF and attach that."),
    ("content.xml", "It is an OpenDocument file; save it as .docx or PDF and attach that."),
    ("", "It is a ZIP archive and no Word document; unpack it and attach what is in it."),
)
NOT_TEXT = f"It is neither text nor PDF nor Word; {TEXT_ONLY}."
ENCRYPTED = "It is protected by a password; save a copy without one (by printing to PDF) and attach that."
BLOATED = "A page of it unpacks to more than is read; print it into a new PDF and attach that."
DAMAGED = "It is damaged or cut short; open it in another program and save it anew."
HEADING = re.compile(r"Heading (\d)")
LARGE = 20_000_000  # bytes of XML; what makes the library give up from here on is the size
MAX_ENTRIES = 10_000  # of a Word document's archive
_CONTROLS = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class Refused(Exception):
    """The sentence is the answer."""


def read(file: IO[bytes], setup: dict[str, Any]) -> dict[str, Any]:
    """What a file says, in parts."""
    head = file.read(1024)
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    for pattern, sentence in STRANGERS:
        if re.match(pattern, head, re.DOTALL):
            raise Refused(sentence)
    if b"%PDF-" in head:
        unit, parts = "page", _pdf(file, setup)
    elif head.startswith(b"PK\x03\x04"):
        unit, parts = "paragraph", _docx(file, setup)
    else:
        if size > 4 * setup["characters"]:  # bytes of one, at most
            raise Refused(_too_long(setup["characters"]))
        unit, parts = "line", iter(_text(file.read()).splitlines())
    kept = list(_capped(parts, setup["characters"]))
    if not any(part.strip() for part in kept):
        pages = f"{len(kept):,} pages" if len(kept) > 1 else "a page"
        scans = f"It has {pages} without text, scanned perhaps; {TEXT_ONLY}, no pictures."
        raise Refused(scans if unit == "page" else "There is no text in it.")
    return {"unit": unit, "parts": kept}


def _capped(parts: Iterable[str], most: int) -> Iterator[str]:
    length = 0
    for part in parts:
        length += len(part) + 1
        if length > most:
            raise Refused(_too_long(most))
        yield part


def _too_long(most: int) -> str:
    return f"It has more than {most:,} characters of text; attach a part of it."


def _pdf(file: IO[bytes], setup: dict[str, Any]) -> Iterator[str]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, LimitReachedError

    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused(ENCRYPTED)
        tree: Any = reader.root_object["/Pages"]
        count = tree["/Count"]  # as it says itself, before the tree is walked
    except DependencyError as error:  # a cipher that would need another library
        raise Refused(ENCRYPTED) from error
    if count <= setup["pages"]:
        count = len(reader.pages)
    if count > setup["pages"]:
        raise Refused(f"It has {count:,} pages; at most {setup['pages']:,} are read. Attach a part of it.")
    for page in reader.pages:
        try:
            yield page.extract_text().strip()
        except MemoryError:
            raise
        except LimitReachedError as error:
            raise Refused(BLOATED) from error
        except Exception:  # a page that can't be read is one without text; the page says how many those are
            yield ""


def _docx(file: IO[bytes], setup: dict[str, Any]) -> Iterator[str]:
    from docx import Document
    from docx.table import Table

    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    names = {entry.filename for entry in entries}
    if "word/document.xml" not in names:
        raise Refused(next(sentence for name, sentence in ARCHIVES if not name or name in names))
    if len(entries) > MAX_ENTRIES:
        raise Refused(f"It is made of {len(entries):,} files; at most {MAX_ENTRIES:,} are read.")
    if (size := sum(entry.file_size for entry in entries)) > setup["unpacked"]:
        most = setup["unpacked"] / 1e6
        raise Refused(f"It unpacks to {size / 1e6:,.0f} MB; at most {most:,.0f} MB are read.")
    try:
        document = Document(file)
    except Exception as error:
        if size < LARGE:
            raise
        raise Refused(
            f"It unpacks to {size / 1e6:,.0f} MB, which was too much; attach a part of it."
        ) from error
    for block in document.iter_inner_content():
        yield "\n".join(_rows(block)) if isinstance(block, Table) else _paragraph(block)


def _paragraph(paragraph: Any) -> str:
    """Its text; a heading as Markdown has it."""
    level = HEADING.match(paragraph.style.name if paragraph.style is not None else "")
    return f"{'#' * int(level[1])} {paragraph.text}" if level else str(paragraph.text)


def _rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        # a cell that spans columns comes once for each
        cells = [text for text, _ in groupby(cell.text.replace("\n", " ") for cell in row.cells)]
        yield f"| {' | '.join(cells)} |"


def _text(data: bytes) -> str:
    """Unicode in either form, else Chinese or western European as older programs write it."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    elif b"\0" in data:
        raise Refused(NOT_TEXT)
    else:
        encodings = ["utf-8-sig", *_older(data)]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if len(_CONTROLS.findall(text)) * 100 <= len(text):
            return _CONTROLS.sub("", text)
        break
    raise Refused(NOT_TEXT)


def _older(data: bytes) -> list[str]:
    """Chinese characters are two bytes in a row above ASCII; European letters mostly stand alone there."""
    sample = data[: 2**16]
    high = len(re.findall(rb"[\x80-\xff]", sample))
    paired = sum(map(len, re.findall(rb"(?:[\x81-\xfe][\xa1-\xfe])+", sample)))
    return ["gb18030", "cp1252"] if paired * 10 > high * 9 else ["cp1252"]


def limit_memory(size: int) -> None:
    """At most size bytes of address space; Windows has no such limit, and macOS does not enforce it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    except (ImportError, OSError, ValueError):
        pass


def main() -> None:
    setup = json.loads(sys.stdin.buffer.readline())
    limit_memory(setup["memory"])
    # ends a reader that has outlived the parent
    getattr(signal, "alarm", lambda seconds: None)(setup["seconds"] + 2)
    try:
        given = sys.stdin.buffer
        with Path(setup["path"]).open("rb") if setup["path"] else io.BytesIO(given.read()) as file:
            answer = read(file, setup)
    except MemoryError:
        answer = {"error": f"Reading it wanted more than {setup['memory'] >> 20:,} MiB of memory."}
    except Refused as error:
        answer = {"error": str(error)}
    except Exception:  # whatever a document can raise is the document's error
        answer = {"error": DAMAGED}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    main()
