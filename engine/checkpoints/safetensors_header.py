"""The header of a safetensors file, read as data that nobody vouches for.

    length of the JSON, u64 | JSON: {name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__":
    {text: text}}, spaces at its end | the tensors' bytes, all of them used, none twice
                                                          https://github.com/huggingface/safetensors, README
The library would do, but it takes a key that stands twice, and files of empty tensors in any number.
"""

from __future__ import annotations

import math
import mmap
from itertools import pairwise
from typing import Any, NoReturn

from ..errors import BadCheckpoint
from .checkpoint import TensorInfo
from .files import parse_json, printable

MAX_HEADER = 8 << 20  # bytes; one file of 36,000 tensors has 5 MB
MAX_VALUES = 1 << 19
MAX_NAME, MAX_DIMS, MAX_DIM = 256, 8, 1 << 48
ENTRY = {"dtype", "shape", "data_offsets"}

# Name -> bits of a value.
DTYPES = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8"), 8),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


class SafetensorsHeader:
    """Reads one file's header, or says why the file is bad."""

    def __init__(self, data: mmap.mmap, name: str, file: int = 0) -> None:
        """`file`: its number among the checkpoint's files."""
        self.data, self.name, self.file = data, name, file

    def read(self) -> dict[str, TensorInfo]:
        """All tensors, in the file's order."""
        size, length = len(self.data), int.from_bytes(self.data[:8], "little")
        if length > size - 8:
            self.bad(f"its header takes {length} bytes from 8 on, the file ends at {size}")
        if length > MAX_HEADER:
            self.bad(f"its header has {length} bytes, more than {MAX_HEADER}")
        header = self.data[8 : 8 + length]
        if header[:1] != b"{":
            self.bad(f"its header begins with {header[:8]!r}, not with {{")
        entries = parse_json(header, self.name, MAX_VALUES)
        self.check_notes(entries.pop("__metadata__", {}))
        tensors = {name: self.tensor(name, entry, 8 + length) for name, entry in entries.items()}
        self.check_places(tensors, 8 + length)
        return tensors

    def bad(self, what: str) -> NoReturn:
        """What is wrong, in a text that is safe to print."""
        raise BadCheckpoint(f"{self.name} is damaged: {printable(what)}. Download it again.")

    def check_notes(self, notes: Any) -> None:
        if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
            self.bad("its __metadata__ is not a table of texts")

    def tensor(self, name: str, entry: Any, start: int) -> TensorInfo:
        """One tensor, its size computed from its shape and compared with its place."""
        if not name or len(name) > MAX_NAME:
            self.bad(f"a tensor's name has {len(name)} characters, not 1 to {MAX_NAME}")
        if not isinstance(entry, dict) or entry.keys() != ENTRY:
            self.bad(f"tensor {name} is {str(entry)[:80]}, not dtype, shape and data_offsets")
        dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            self.bad(f"tensor {name} has the unknown dtype {str(dtype)[:40]!r}")
        if not _are_sizes(shape) or len(shape) > MAX_DIMS:
            self.bad(f"tensor {name} has the shape {str(shape)[:80]}, not up to {MAX_DIMS} sizes from 1 on")
        if not _are_sizes(place, least=0) or len(place) != 2:
            self.bad(f"tensor {name} has the data_offsets {str(place)[:80]}, not where it begins and ends")
        bits, room = math.prod(shape) * DTYPES[dtype], place[1] - place[0]
        if bits != 8 * room:
            self.bad(f"tensor {name}, {dtype} {shape}, takes {-(-bits // 8)} bytes and has {room}")
        if shape and shape[-1] * DTYPES[dtype] % 8:
            self.bad(f"tensor {name} has rows of {shape[-1]} {dtype}, which are no whole bytes")
        return TensorInfo(name, tuple(shape), dtype, start + place[0], bits // 8, self.file)

    def check_places(self, tensors: dict[str, TensorInfo], start: int) -> None:
        """One after another from the first byte to the last: the format allows no holes."""
        ordered = sorted(tensors.values(), key=lambda tensor: tensor.offset)
        first = TensorInfo("the header", (), "U8", 0, start)
        for before, tensor in pairwise((first, *ordered)):
            if tensor.offset != before.end:
                ends = f"{before.name} ends at {before.end}"
                self.bad(f"tensor {tensor.name} begins at byte {tensor.offset}, {ends}")
        end = ordered[-1].end if ordered else start
        if end != len(self.data):
            self.bad(f"its tensors end at byte {end}, the file at {len(self.data)}")


def _are_sizes(values: Any, least: int = 1) -> bool:
    return isinstance(values, list) and all(type(v) is int and least <= v <= MAX_DIM for v in values)
