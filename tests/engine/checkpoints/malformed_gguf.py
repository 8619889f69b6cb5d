"""GGUF files made by hand, byte by byte, and a table of what can be wrong with one.

The cases follow llama.cpp's tests/test-gguf.cpp and the holes that were found in other readers.
"""

from __future__ import annotations

import struct

U8, I8, BOOL, STRING, ARRAY, U32, F32, U64 = 0, 1, 7, 8, 9, 4, 6, 10
HUGE = 2**64 - 1


def u32(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def u64(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return u64(len(data)) + data


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + u32(kind) + value


def array(name: str, kind: int, count: int, elements: bytes = b"") -> bytes:
    return key(name, ARRAY, u32(kind) + u64(count) + elements)


def tensor(name: str = "a", dims: tuple[int, ...] = (32, 2), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + u32(len(dims)) + u64(*dims) + u32(kind) + u64(offset)


def build(
    *,
    keys: tuple[bytes, ...] = (),
    tensors: tuple[bytes, ...] = (tensor(),),
    data: int = 256,
    magic: bytes = b"GGUF",
    version: int = 3,
    num_keys: int | None = None,
    num_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    """A file of these parts; counts are true unless given."""
    counts = (
        len(tensors) if num_tensors is None else num_tensors,
        len(keys) if num_keys is None else num_keys,
    )
    header = magic + u32(version) + u64(*counts) + b"".join(keys) + b"".join(tensors)
    return header + bytes(-len(header) % alignment + data)


ARCHITECTURE = key("general.architecture", STRING, text("llama"))
GOOD = build(keys=(ARCHITECTURE, array("x.names", STRING, 2, text("a") + text("Ġb"))))

# name -> (the file, a part of the error's text). Every number that matters stands in the text.
BAD: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "has 0 bytes"),
    "one byte": (b"G", "has 1 bytes"),
    "only a magic": (b"GGUF", "the version takes 4 bytes from 4 on, the header can go to 4"),
    "header cut": (GOOD[:23], "it claims 1 tensors, and there is room for 0"),
    "short text": (b"This is not a model", "is not a GGUF file: it begins with 'This'."),
    "no magic": (build(magic=b"\0\0\0\0"), "is not a GGUF file"),
    "another's magic": (build(magic=b"ggjt"), "it begins with 'ggjt'"),
    "zip file": (build(magic=b"PK\3\4"), "is not a GGUF file"),
    "magic backwards": (build(magic=b"FUGG"), "is not a GGUF file"),
    "version 0": (build(version=0), "GGUF version 0"),
    "version 1": (build(version=1), "GGUF version 1"),
    "version 4": (build(version=4), "GGUF version 4"),
    "version -1": (build(version=2**32 - 1), "GGUF version 4294967295"),
    "big endian": (build(version=3 << 24), "big-endian"),
    "tensor count -1": (build(num_tensors=HUGE), f"claims {HUGE} tensors"),
    "tensor count 2^60": (build(num_tensors=2**60), "claims 1152921504606846976 tensors"),
    "one tensor too many": (build(num_tensors=2, data=0, alignment=1), "damaged"),
    "more tensors than bytes allow": (build(num_tensors=1000), "claims 1000 tensors"),
    "key count -1": (build(num_keys=HUGE), f"claims {HUGE} keys"),
    "key count 2^32": (build(num_keys=2**32), "claims 4294967296 keys"),
    "one key too many": (build(num_keys=1), "damaged"),
    "key length -1": (build(keys=(u64(HUGE),)), f"a key has {HUGE} bytes, more than 65535"),
    "key length beyond the file": (build(keys=(u64(60000),)), "a key takes 60000 bytes"),
    "key too long": (build(keys=(key("k" * 65536, U8, b"\0"),)), "65536 bytes, more than 65535"),
    "key without a name": (build(keys=(key("", U8, b"\0"),)), "key number 1 has no name"),
    "key not UTF-8": (build(keys=(text(b"\xff\xfe") + u32(U8) + b"\0",)), "a key is not UTF-8"),
    "key twice": (build(keys=(ARCHITECTURE, ARCHITECTURE)), "'general.architecture' is there twice"),
    "type 13": (build(keys=(key("x", 13, b""),)), "unknown type 13"),
    "type -1": (build(keys=(key("x", 2**32 - 1, b""),)), "unknown type 4294967295"),
    "bool 2": (build(keys=(key("x", BOOL, b"\2"),)), "x is 2, neither false (0) nor true (1)"),
    "bool 255": (build(keys=(key("x", BOOL, b"\xff"),)), "x is 255"),
    "bools with a 3": (build(keys=(array("x", BOOL, 3, b"\0\1\3"),)), "x is 3"),
    "string length -1": (build(keys=(key("x", STRING, u64(HUGE)),)), f"x has {HUGE} bytes"),
    "string length 2^40": (build(keys=(key("x", STRING, u64(2**40)),)), "x has 1099511627776 bytes"),
    "string length 2^63": (build(keys=(key("x", STRING, u64(2**63)),)), "x has 9223372036854775808 bytes"),
    "string beyond the file": (build(keys=(key("x", STRING, u64(100000)),)), "x takes 100000 bytes"),
    "string not UTF-8": (build(keys=(key("x", STRING, text(b"a\xc3")),)), "x is not UTF-8"),
    "surrogate": (build(keys=(key("x", STRING, text(b"\xed\xa0\x80")),)), "x is not UTF-8"),
    "array type 13": (build(keys=(array("x", 13, 1),)), "an array of the type 13"),
    "array of arrays": (build(keys=(array("x", ARRAY, 1, u32(U8) + u64(1) + b"\0"),)), "type 9"),
    "arrays 5,000 deep": (build(keys=(key("x", ARRAY, (u32(ARRAY) + u64(1)) * 5000),)), "type 9"),
    "array count -1": (build(keys=(array("x", U8, HUGE),)), f"claims {HUGE} elements of x"),
    "array count 2^60": (build(keys=(array("x", U8, 2**60),)), "claims 1152921504606846976 elements"),
    "array bytes overflow": (build(keys=(array("x", U64, 2**61),)), "elements of x, and there is room for"),
    "array beyond the file": (build(keys=(array("x", U32, 1000),)), "claims 1000 elements of x"),
    "strings beyond the file": (build(keys=(array("x", STRING, 1000),)), "claims 1000 elements of x"),
    "strings count 2^60": (build(keys=(array("x", STRING, 2**60),)), "elements of x"),
    "strings cut": (
        build(keys=(array("x", STRING, 3, text("a" * 60)),), tensors=(), data=5, alignment=1),
        "text 1 of x",
    ),
    "a text's length 2^40": (build(keys=(array("x", STRING, 2, text("a") + u64(2**40)),)), "text 1 of x"),
    "a text's length -1": (build(keys=(array("x", STRING, 1, u64(HUGE)),)), "text 0 of x"),
    "a text not UTF-8": (build(keys=(array("x", STRING, 1, text(b"\xff")),)), "a text of x is not UTF-8"),
    "alignment 0": (build(keys=(key("general.alignment", U32, u32(0)),)), "general.alignment is 0"),
    "alignment 1": (build(keys=(key("general.alignment", U32, u32(1)),)), "general.alignment is 1"),
    "alignment 48": (build(keys=(key("general.alignment", U32, u32(48)),)), "general.alignment is 48"),
    "alignment 2^31": (build(keys=(key("general.alignment", U32, u32(2**31)),)), "is 2147483648, not"),
    "alignment -32": (build(keys=(key("general.alignment", 5, struct.pack("<i", -32)),)), "is -32"),
    "alignment a text": (build(keys=(key("general.alignment", STRING, text("32")),)), "is 32, not"),
    "alignment true": (build(keys=(key("general.alignment", BOOL, b"\1"),)), "is True"),
    "alignment 32.0": (build(keys=(key("general.alignment", F32, struct.pack("<f", 32)),)), "is 32.0"),
    "alignment a list": (build(keys=(array("general.alignment", U32, 1, u32(32)),)), "is [32]"),
    "tensor without a name": (build(tensors=(tensor(""),)), "tensor number 1 has no name"),
    "tensor name of 65 bytes": (build(tensors=(tensor("a" * 65),)), "65 bytes, more than 64"),
    "tensor name length -1": (build(tensors=(u64(HUGE) + bytes(40),)), f"{HUGE} bytes, more than 64"),
    "tensor name not UTF-8": (build(tensors=(text(b"\x80") + tensor()[9:],)), "a tensor's name is not UTF-8"),
    "tensor twice": (
        build(tensors=(tensor(), tensor(offset=256)), data=512),
        "the tensor 'a' is there twice",
    ),
    "no dimensions": (build(tensors=(tensor(dims=()),)), "0 dimensions, not 1 to 4"),
    "5 dimensions": (build(tensors=(tensor(dims=(1,) * 5),)), "5 dimensions, not 1 to 4"),
    "2^32 - 1 dimensions": (
        build(tensors=(text("a") + u32(2**32 - 1) + bytes(40),)),
        "4294967295 dimensions",
    ),
    "dimension 0": (build(tensors=(tensor(dims=(32, 0)),)), "the dimensions [32, 0]"),
    "row of 0": (build(tensors=(tensor(dims=(0, 32)),)), "the dimensions [0, 32]"),
    "dimension -1": (build(tensors=(tensor(dims=(32, HUGE)),)), f"the dimensions [32, {HUGE}]"),
    "dimension 2^63": (build(tensors=(tensor(dims=(2**63,)),)), "the dimensions [9223372036854775808]"),
    "product overflows to 0": (build(tensors=(tensor(dims=(2**32, 2**32)),)), "ends at byte"),
    "product overflows to 64": (build(tensors=(tensor(dims=(2**62, 4, 2, 8)),)), "ends at byte"),
    "exabytes": (build(tensors=(tensor(dims=(2**58,)),)), "ends at byte 1152921504606847040"),
    "type -1 of a tensor": (build(tensors=(tensor(kind=2**32 - 1),)), "unknown type 4294967295"),
    "type removed": (build(tensors=(tensor(kind=4),)), "unknown type 4"),
    "type after the last": (build(tensors=(tensor(kind=1000),)), "unknown type 1000"),
    "rows not whole blocks": (
        build(tensors=(tensor(dims=(33, 2), kind=2),)),
        "33 values, which blocks of 32",
    ),
    "rows not whole super-blocks": (build(tensors=(tensor(dims=(32, 8), kind=12),)), "blocks of 256"),
    "offset not aligned": (build(tensors=(tensor(offset=8),)), "offset 8, no multiple of 32"),
    "offset not aligned to 64": (
        build(keys=(key("general.alignment", U32, u32(64)),), tensors=(tensor(offset=32),), data=512),
        "offset 32, no multiple of 64",
    ),
    "offset beyond the file": (
        build(tensors=(tensor(offset=2**20),)),
        "ends at byte 1048928, the file at 352",
    ),
    "offset -32": (build(tensors=(tensor(offset=2**64 - 32),)), "ends at byte 18446744073709551936"),
    "data one byte short": (build(data=255), "ends at byte 352, the file at 351"),
    "no data": (build(data=0), "ends at byte 352, the file at 96"),
    "same place": (build(tensors=(tensor(), tensor("b"))), "tensor b begins at"),
    "overlap": (build(tensors=(tensor(), tensor("b", offset=224)), data=512), "before a ends at"),
    "inside another": (
        build(tensors=(tensor(dims=(256,)), tensor("b", (8,), 0, 512)), data=1024),
        "before a",
    ),
    "overlap in another order": (
        build(tensors=(tensor("b", offset=32), tensor()), data=512),
        "tensor b begins",
    ),
}
