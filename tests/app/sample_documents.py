"""Documents for tests, made byte by byte: PDFs with pages of text, Word files, and those that do harm."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence

import docx


def pdf(pages: Sequence[str]) -> bytes:
    """A page for each text; "" is a page without any, as scans are."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj T*" for line in text.splitlines())
        content = f"BT /F1 12 Tf 14 TL 50 750 Td {lines} ET" if text else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Contents {5 + 2 * n} 0 R {font} >>")
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return assembled(objects)


def assembled(objects: Sequence[str], trailer: str = "") -> bytes:
    """Numbered objects, the table of where they stand, and the end."""
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = f"/Size {len(objects) + 1} /Root 1 0 R {trailer}"
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< {size} >>\n"
    return bytes(out) + f"{end}startxref\n{len(out)}\n%%EOF\n".encode()


def huge_pdf(pages: int) -> bytes:
    """So many pages, all of them the same one: each level of the tree names the next a hundred times."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    while pages > 1:
        below = f"{len(objects) + 2} 0 R " * 100
        objects.append(f"<< /Type /Pages /Kids [{below}] /Count {pages} >>")
        pages //= 100
    objects.append("<< /Type /Page /Parent 2 0 R >>")
    return assembled(objects)


def pdf_bomb(size: int) -> bytes:
    """A small PDF with a page whose content unpacks to `size` bytes."""
    word = b"(x) Tj "
    packed = zlib.compress(b"BT " + word * (size // len(word)) + b"ET").hex() + ">"
    filters = "/Filter [/ASCIIHexDecode /FlateDecode]"
    return assembled(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << >> >> >>",
            f"<< /Length {len(packed)} {filters} >>\nstream\n{packed}\nendstream",
        ]
    )


def word(paragraphs: Sequence[str], table: Sequence[Sequence[str]] = ()) -> bytes:
    """Paragraphs, those that begin with "# " as headings, then a table."""
    document, out = docx.Document(), io.BytesIO()
    for text in paragraphs:
        if text.startswith("# "):
            document.add_heading(text[2:], 1)
        else:
            document.add_paragraph(text)
    for row in table:
        cells = document.add_table(0, len(row)).add_row().cells
        for cell, text in zip(cells, row):
            cell.text = text
    document.save(out)
    return out.getvalue()


def bomb(size: int) -> bytes:
    """A small Word document that unpacks to `size` bytes."""
    out = io.BytesIO(word(["x"]))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("word/x.xml", "w") as file:
        piece = bytes(2**20)
        for _ in range(size // len(piece)):
            file.write(piece)
    return out.getvalue()
