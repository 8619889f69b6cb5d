"""The header of a GGUF file, versions 2 and 3, read as data that nobody vouches for.

    magic, version, number of tensors, number of keys | keys and values | name, shape, type, offset of each
    tensor | padding | the tensors' bytes          https://github.com/ggml-org/ggml, docs/gguf.md

Every count and length is checked against what the file still holds, and against a bound of ours, before
anything is allocated for it. What keys and types mean is not known here.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..errors import BadCheckpoint, UnsupportedModel
from .checkpoint import TensorInfo
from .files import printable

# Ten times what the largest files have: a header that claims more is broken or hostile.
MAX_HEADER = 128 << 20  # bytes
MAX_KEYS = MAX_TENSORS = 1 << 16
MAX_ELEMENTS = 1 << 22  # of all arrays together; a vocabulary of 262,144 brings about a million
MAX_STRING = 16 << 20
MAX_KEY, MAX_TENSOR_NAME, MAX_DIMS = 65535, 64, 4  # the format's own
MIN_ALIGNMENT, DEFAULT_ALIGNMENT, MAX_ALIGNMENT = 8, 32, 1 << 16

STRING, ARRAY, BOOL = 8, 9, 7
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", BOOL: "B", 10: "Q", 11: "q", 12: "d"}

# Type number -> (name, values in a block, bytes of a block); ggml.h and gguf-py's GGML_QUANT_SIZES.
TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}


class GgufHeader:
    """A cursor over the header. Each method takes one thing and moves on, or says why the file is bad."""

    def __init__(self, data: mmap.mmap, name: str) -> None:
        self.data, self.name = data, name
        self.at = 4  # behind the magic
        self.end = min(len(data), MAX_HEADER)
        self.elements = 0  # of all arrays so far

    def read(self) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
        """All of it."""
        self.check_version()
        num_tensors = self.count("tensors", MAX_TENSORS, smallest=33)
        num_keys = self.count("keys", MAX_KEYS, smallest=14)
        metadata: dict[str, Any] = {}
        for _ in range(num_keys):
            key = self.string("a key", MAX_KEY)
            self.check_new(key, metadata, "key")
            metadata[key] = self.value(key)
        found: dict[str, tuple[tuple[int, ...], int, int]] = {}  # shape, type number, offset among the data
        for _ in range(num_tensors):
            name = self.string("a tensor's name", MAX_TENSOR_NAME)
            self.check_new(name, found, "tensor")
            found[name] = self.tensor(name)
        return metadata, self.place(found, self.alignment(metadata))

    def bad(self, what: str) -> NoReturn:
        """What is wrong, in a text that is safe to print: names from the file may hold anything."""
        raise BadCheckpoint(f"{self.name} is damaged: {printable(what)}. Download it again.")

    def check_version(self) -> None:
        magic = self.data[:4]
        if magic != b"GGUF":
            raise BadCheckpoint(
                f"{self.name} is not a GGUF file: it begins with '{printable(magic.decode('latin-1'))}'."
            )
        version = self.number("I", "the version")
        if version & 0xFFFF == 0 and version:
            raise UnsupportedModel(
                f"{self.name} is a big-endian GGUF file; only little-endian ones are served."
            )
        if version not in (2, 3):
            raise UnsupportedModel(
                f"{self.name} is GGUF version {version}; only versions 2 and 3 are served."
            )

    def check_new(self, name: str, seen: dict[str, Any], noun: str) -> None:
        if not name:
            self.bad(f"{noun} number {len(seen) + 1} has no name")
        if name in seen:
            self.bad(f"the {noun} {name!r} is there twice")

    def need(self, size: int, what: str) -> int:
        """Where `size` bytes begin, if the header still has them; the cursor is behind them then."""
        if size > self.end - self.at:
            self.bad(f"{what} takes {size} bytes from {self.at} on, the header can go to {self.end}")
        start, self.at = self.at, self.at + size
        return start

    def number(self, kind: str, what: str) -> Any:
        """One number of a struct format."""
        return struct.unpack_from("<" + kind, self.data, self.need(struct.calcsize("<" + kind), what))[0]

    def count(self, what: str, most: int, smallest: int) -> int:
        """A number of things that take at least `smallest` bytes each."""
        count = self.number("Q", f"the number of {what}")
        most = min(most, (self.end - self.at) // smallest)
        if count > most:
            self.bad(f"it claims {count} {what}, and there is room for {most}")
        return count

    def string(self, what: str, most: int = MAX_STRING) -> str:
        """A text and its length before it."""
        size = self.number("Q", f"the length of {what}")
        if size > most:
            self.bad(f"{what} has {size} bytes, more than {most}")
        start = self.need(size, what)
        return self.decode(self.data[start : start + size], what)

    def decode(self, text: bytes, what: str) -> str:
        try:
            return text.decode()
        except UnicodeDecodeError:
            self.bad(f"{what} is not UTF-8: {text[:40]!r}")

    def value(self, key: str) -> Any:
        """A key's value: a number, a bool, a str, or a list of one of them."""
        kind = self.number("I", f"the type of {key}")
        if kind == STRING:
            return self.string(key)
        if kind == ARRAY:
            return self.array(key)
        if kind not in SCALARS:
            self.bad(f"{key} has the unknown type {kind}")
        value = self.number(SCALARS[kind], key)
        return self.truth(key, [value])[0] if kind == BOOL else value

    def truth(self, key: str, values: list[int]) -> list[bool]:
        if values and max(values) > 1:
            self.bad(f"{key} is {max(values)}, neither false (0) nor true (1)")
        return [value == 1 for value in values]

    def array(self, key: str) -> list[Any]:
        """A list of numbers or texts; arrays of arrays are refused, no model has them."""
        kind = self.number("I", f"the element type of {key}")
        if kind != STRING and kind not in SCALARS:
            self.bad(f"{key} is an array of the type {kind}, which is not served")
        size = 8 if kind == STRING else struct.calcsize(SCALARS[kind])
        count = self.count(f"elements of {key}", MAX_ELEMENTS - self.elements, size)
        self.elements += count
        if kind == STRING:
            return self.strings(count, key)
        start = self.need(count * size, key)
        values = np.frombuffer(self.data[start : self.at], "<" + SCALARS[kind]).tolist()
        return self.truth(key, values) if kind == BOOL else values

    def strings(self, count: int, key: str) -> list[str]:
        """`count` texts at a stretch: a vocabulary has 300,000, so this loop is kept bare."""
        data, at, end = self.data, self.at, self.end
        length_at: Callable[..., tuple[int]] = struct.Struct("<Q").unpack_from
        texts: list[bytes] = []
        for _ in range(count):
            start = at + 8
            if start > end or length_at(data, at)[0] > end - start:
                self.at = at
                self.string(f"text {len(texts)} of {key}")  # says what is wrong
            at = start + length_at(data, at)[0]
            texts.append(data[start:at])
        self.at = at
        try:
            return [text.decode() for text in texts]
        except UnicodeDecodeError as error:
            self.bad(f"a text of {key} is not UTF-8: {error.object[:40]!r}")

    def tensor(self, name: str) -> tuple[tuple[int, ...], int, int]:
        """Shape, type number and offset of one tensor."""
        num_dims = self.number("I", f"the number of dimensions of {name}")
        if not 1 <= num_dims <= MAX_DIMS:
            self.bad(f"tensor {name} has {num_dims} dimensions, not 1 to {MAX_DIMS}")
        dims = tuple(self.number("Q", f"a dimension of {name}") for _ in range(num_dims))
        if not all(0 < dim < 1 << 63 for dim in dims):
            self.bad(f"tensor {name} has the dimensions {list(dims)}, not all between 1 and 2^63 - 1")
        kind = self.number("I", f"the type of {name}")
        if kind not in TENSOR_TYPES:
            self.bad(f"tensor {name} has the unknown type {kind}")
        block = TENSOR_TYPES[kind][1]
        if dims[0] % block:
            self.bad(f"tensor {name} has rows of {dims[0]} values, which blocks of {block} do not fill")
        return dims[::-1], kind, self.number("Q", f"the offset of {name}")

    def alignment(self, metadata: dict[str, Any]) -> int:
        alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        sound = type(alignment) is int and MIN_ALIGNMENT <= alignment <= MAX_ALIGNMENT
        if not sound or alignment & (alignment - 1):
            limits = f"a power of two from {MIN_ALIGNMENT} to {MAX_ALIGNMENT}"
            self.bad(f"general.alignment is {str(alignment)[:40]}, not {limits}")
        return alignment

    def place(
        self, found: dict[str, tuple[tuple[int, ...], int, int]], alignment: int
    ) -> dict[str, TensorInfo]:
        """The tensors' places in the file: aligned, inside it, none upon another."""
        start = -(-self.at // alignment) * alignment
        tensors = {}
        for name, (shape, kind, offset) in found.items():
            type_name, block, size = TENSOR_TYPES[kind]
            nbytes = math.prod(shape) // block * size  # Python's integers do not overflow
            if offset % alignment:
                self.bad(f"tensor {name} has the offset {offset}, no multiple of {alignment}")
            tensor = TensorInfo(name, shape, type_name, start + offset, nbytes)
            if tensor.end > len(self.data):
                self.bad(f"tensor {name} ends at byte {tensor.end}, the file at {len(self.data)}")
            tensors[name] = tensor
        last_end, last = 0, ""
        for tensor in sorted(tensors.values(), key=lambda tensor: tensor.offset):
            if tensor.offset < last_end:
                self.bad(f"tensor {tensor.name} begins at {tensor.offset}, before {last} ends at {last_end}")
            last_end, last = tensor.end, tensor.name
        return tensors
