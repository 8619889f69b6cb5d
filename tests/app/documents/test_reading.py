"""Documents of every kind, and those that were made to do harm: text, or one sentence with the numbers."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from app.documents.reading import Document, read_document
from app.errors import Unreadable
from tests.app.sample_documents import assembled, bomb, huge_pdf, pdf, pdf_bomb, word

CHINESE = "天气很好，我们去公园散步。\n第二行也有一些文字。"


def read(tmp_path: Path, data: bytes) -> Document:
    file = tmp_path / "document"
    file.write_bytes(data)
    return read_document(file)


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"one\ntwo\r\n\r\nthree", ("one", "two", "", "three")),
        ("\ufeffmit Umlaut: ü".encode(), ("mit Umlaut: ü",)),
        ("café déjà vu".encode("cp1252"), ("café déjà vu",)),
        (CHINESE.encode("gb18030"), tuple(CHINESE.split("\n"))),
        (CHINESE.encode("utf-16"), tuple(CHINESE.split("\n"))),
        (b"\x1b[31mred\x1b[0m ID3 GIF8 BM", ("\x1b[31mred\x1b[0m ID3 GIF8 BM",)),
    ],
)
def test_text(tmp_path: Path, data: bytes, parts: tuple[str, ...]) -> None:
    assert read(tmp_path, data) == Document("line", parts)


def test_a_pdf_is_read_by_pages(tmp_path: Path) -> None:
    found = read(tmp_path, pdf(["First page\nsecond line", "", "Third"]))
    assert found == Document("page", ("First page\nsecond line", "", "Third"))


def test_a_word_document(tmp_path: Path) -> None:
    found = read(tmp_path, word(["# Title", "A line.", "天气"], [["a", "b", "b"], ["1", "2", "3"]]))
    assert found == Document("paragraph", ("# Title", "A line.", "天气", "| a | b |", "| 1 | 2 | 3 |"))


def _archive(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "x")
    return out.getvalue()


def _encrypted(password: str, algorithm: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer, out = PdfWriter(PdfReader(io.BytesIO(pdf(["secret"])))), io.BytesIO()
    writer.encrypt(password, "the owner's", algorithm=algorithm)
    writer.write(out)
    return out.getvalue()


CIPHERS = ("RC4-40", "RC4-128", "AES-128", "AES-256-R5", "AES-256")


@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_pdf_that_anyone_may_open_is_read_whatever_its_cipher(tmp_path: Path, cipher: str) -> None:
    """Encrypted against printing, say: readers open it without asking."""
    assert read(tmp_path, _encrypted("", cipher)) == Document("page", ("secret",))


def _odd_aes() -> bytes:
    """Whose keys are too short to be any."""
    known = "/Filter /Standard /V 5 /R 6 /Length 256 /P -1 /O <00> /U <00> /OE <00> /UE <00> /Perms <00>"
    crypt = "/CF << /StdCF << /CFM /AESV3 /Length 32 >> >> /StmF /StdCF /StrF /StdCF"
    pages = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>"]
    return assembled(pages, f"/ID [<00> <00>] /Encrypt << {known} {crypt} >>")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "There is no text in it."),
        (b" \n\n ", "There is no text in it."),
        (bytes(1000), "It is neither text nor PDF nor Word"),
        (bytes(range(1, 256)) * 4, "It is neither text nor PDF nor Word"),
        (b"\x89PNG\r\n\x1a\n" + bytes(9), "It is a picture; this program reads text only."),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "save it as .docx or PDF"),
        (b"\x1f\x8b" + bytes(9), "It is an archive"),
        (_archive("readme.txt"), "It is a ZIP archive and no Word document"),
        (_archive("xl/workbook.xml"), "save it as CSV"),
        (_archive("word/document.xml"), "It is damaged or cut short"),
        (word(["x"])[:2000], "It is damaged or cut short"),
        (pdf(["x"])[:60], "It is damaged or cut short"),
        (pdf(["", "", ""]), "It has 3 pages without text, scanned perhaps"),
        (pdf([""]), "It has a page without text, scanned perhaps"),
        (pdf_bomb(100 * 2**20), "A page of it unpacks to more than is read"),
        (word(["x" * 21_000_000]), "It unpacks to 22 MB, which was too much; attach a part of it."),
        *((_encrypted("a password", each), "It is protected by a password") for each in CIPHERS),
        (_odd_aes(), "It is protected by a password"),
        (huge_pdf(100_000_000), "It has 100,000,000 pages; at most 5,000 are read."),
        (bomb(300 * 2**20), "It unpacks to 315 MB; at most 256 MB are read."),
        (b"words " * 2_000_000, "It has more than 8,000,000 characters of text"),
        (b"words " * 8_000_000, "It has more than 8,000,000 characters of text"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path: Path, data: bytes, sentence: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read(tmp_path, data)
    assert sentence in str(refused.value)


def test_more_pages_than_it_says(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="It has 5,001 pages; at most 5,000 are read"):
        read(tmp_path, pdf([""] * 5001).replace(b"/Count 5001", b"/Count 0003"))


def test_reading_that_takes_long_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "document"
    file.write_bytes(pdf(["a line\n" * 300_000]))
    with pytest.raises(Unreadable, match="took longer than 1 s"):
        read_document(file, limit_s=1)


def test_too_much_memory(tmp_path: Path) -> None:
    file = tmp_path / "document"
    file.write_bytes(b"\n" * 30_000_000)
    with pytest.raises(Unreadable, match="wanted more than 128 MiB of memory"):
        read_document(file, memory=128 << 20)


def test_a_reader_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.documents.reading.sys.executable", "/nowhere/python")
    with pytest.raises(Unreadable, match="The process that reads documents failed"):
        read(tmp_path, b"x")
