"""safetensors files made by hand, byte by byte, and a table of what can be wrong with one."""

from __future__ import annotations

import json
import struct
from typing import Any

HUGE = 2**64 - 1


def entry(dtype: Any = "F32", shape: Any = (2, 3), offsets: Any = (0, 24)) -> dict[str, Any]:
    shape, offsets = (list(v) if isinstance(v, tuple) else v for v in (shape, offsets))
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def build(header: Any, data: int = 24, length: int | None = None) -> bytes:
    """A file of this header, as JSON or as it is, and so much data; `length` is true unless given."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(data)


def one(name: str = "a", **changes: Any) -> bytes:
    return build({name: entry(**changes)})


def twice(text: str) -> bytes:
    """One good tensor, and this text in place of what ends the header."""
    return build(b'{"a":' + json.dumps(entry()).encode() + text.encode())


GOOD = build({"__metadata__": {"format": "pt"}, "a": entry(), "b": entry("BF16", (4,), (24, 32))}, 32)
_A = json.dumps(entry())

# name -> (the file, a part of the error's text). Every number that matters stands in the text.
BAD: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "has 0 bytes"),
    "seven bytes": (bytes(7), "has 7 bytes"),
    "length alone, 0": (bytes(8), "begins with b'', not with {"),
    "length alone, -1": (b"\xff" * 8, f"takes {HUGE} bytes from 8 on, the file ends at 8"),
    "length beyond the file": (build({}, 0, 100), "takes 100 bytes from 8 on, the file ends at 10"),
    "length one too large": (build({"a": entry()}, 0, 10**4), "takes 10000 bytes"),
    "length 2^40": (build({"a": entry()}, length=2**40), "takes 1099511627776 bytes"),
    "length 2^63": (build({"a": entry()}, length=2**63), "takes 9223372036854775808 bytes"),
    "length cuts the JSON": (build({"a": entry()}, length=20), "it is not JSON"),
    "length 0": (build({"a": entry()}, length=0), "begins with b'', not with {"),
    "length 1": (build({"a": entry()}, length=1), "it is not JSON"),
    "length reaches into the data": (build({"a": entry()}, length=80), "it is not JSON"),
    "header too long": (build(b"{" + b" " * (9 << 20) + b"}"), "has 9437186 bytes, more than 8388608"),
    "zip archive": (b"PK\3\4" + bytes(60), "takes"),
    "pickle": (b"\x80\x04\x95\x20\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system", "takes"),
    "pickle behind a length": (build(b"\x80\x04}q\x00."), "begins with b'\\x80\\x04}q\\x00.'"),
    "a script": (b"#!/bin/sh\nrm -rf ~\n" + bytes(40), "takes"),
    "GGUF": (b"GGUF\3\0\0\0" + bytes(60), "takes 14064895815 bytes"),
    "an HTML page": (b"<!doctype html><html>" + bytes(40), "takes"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "takes"),
    "header a list": (build(b"[]"), "begins with b'[]'"),
    "header a text": (build(b'"{}"'), "begins with"),
    "space before the header": (build(b' {"a":' + _A.encode() + b"}"), "begins with b' {"),
    "BOM before the header": (build(b"\xef\xbb\xbf{}"), "begins with"),
    "header not UTF-8": (build(b'{"\xff":1}'), "it is not UTF-8 at byte 2"),
    "header in UTF-16": (build('{"a":1}'.encode("utf-16-le")), "it is not JSON"),
    "NUL in the header": (build(b'{"a\0":1}'), "it is not JSON"),
    "NUL after the header": (twice("}\0"), "it is not JSON"),
    "a key twice, behind 60,000 others": (
        build("{{{}}}".format(",".join(f'"{key}":0' for key in [*range(60_000), 59_999])).encode()),
        "the key '59999' is there twice",
    ),
    "two objects": (twice("}{}"), "it is not JSON"),
    "comma at the end": (twice(",}"), "it is not JSON"),
    "no closing brace": (twice(""), "it is not JSON"),
    "single quotes": (build(b"{'a':1}"), "it is not JSON"),
    "NaN": (build(b'{"a":NaN}'), "it holds NaN"),
    "a number of 5,000 digits": (build(b'{"a":' + b"9" * 5000 + b"}"), "damaged"),
    "nested 100,000 deep": (build(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "objects 100,000 deep": (build(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "nested too deeply"),
    "a million commas": (build(b'{"a":[' + b"1," * 1_000_000 + b"1]}"), "holds about 1,000,002 values"),
    "a million objects": (build(b'{"a":[' + b"{}," * 600_000 + b"1]}"), "holds about 1,200,002 values"),
    "tensor twice": (build(f'{{"a":{_A},"a":{_A}}}'.encode()), "the key 'a' is there twice"),
    "dtype twice": (
        build(b'{"a":{"dtype":"F32","dtype":"F16","shape":[2,3],"data_offsets":[0,24]}}'),
        "the key 'dtype' is there twice",
    ),
    "__metadata__ twice": (
        build(b'{"__metadata__":{},"__metadata__":{}}', 0),
        "'__metadata__' is there twice",
    ),
    "__metadata__ a list": (build({"__metadata__": []}, 0), "__metadata__ is not a table of texts"),
    "__metadata__ with a number": (build({"__metadata__": {"a": 1}}, 0), "not a table of texts"),
    "__metadata__ nested": (build({"__metadata__": {"a": {"b": "c"}}}, 0), "not a table of texts"),
    "tensor a number": (build({"a": 1}), "tensor a is 1, not dtype, shape and data_offsets"),
    "tensor null": (build({"a": None}), "tensor a is None"),
    "tensor a list": (build({"a": ["F32", [2, 3], [0, 24]]}), "tensor a is ["),
    "no dtype": (build({"a": {"shape": [2, 3], "data_offsets": [0, 24]}}), "not dtype, shape"),
    "no shape": (build({"a": {"dtype": "F32", "data_offsets": [0, 24]}}), "not dtype, shape"),
    "no offsets": (build({"a": {"dtype": "F32", "shape": [2, 3]}}), "not dtype, shape"),
    "a key too many": (build({"a": entry() | {"strides": [3, 1]}}), "not dtype, shape"),
    "tensor without a name": (one(""), "a tensor's name has 0 characters, not 1 to 256"),
    "tensor name of 257": (one("a" * 257), "a tensor's name has 257 characters"),
    "unknown dtype": (one(dtype="F128"), "unknown dtype 'F128'"),
    "dtype in small letters": (one(dtype="f32"), "unknown dtype 'f32'"),
    "dtype a number": (one(dtype=0), "unknown dtype '0'"),
    "dtype null": (one(dtype=None), "unknown dtype 'None'"),
    "dtype a list": (one(dtype=["F32"]), "unknown dtype"),
    "dtype of control characters": (one(dtype="\x1b[2J"), "unknown dtype"),
    "shape a number": (one(shape=6), "has the shape 6"),
    "shape null": (one(shape=None), "has the shape None"),
    "shape a text": (one(shape="23"), "has the shape 23"),
    "dimension -1": (one(shape=[-1, 3]), "has the shape [-1, 3]"),
    "two negative dimensions": (one(shape=[-2, -3]), "has the shape [-2, -3]"),
    "dimension 0": (one(shape=[0, 3], offsets=[0, 0]), "has the shape [0, 3]"),
    "dimension 2.0": (one(shape=[2.0, 3]), "has the shape [2.0, 3]"),
    "dimension true": (one(shape=[True, 6]), "has the shape [True, 6]"),
    "dimension '2'": (one(shape=["2", 3]), "has the shape ['2', 3]"),
    "dimension null": (one(shape=[None, 3]), "has the shape [None, 3]"),
    "dimension 1e999": (build(b'{"a":{"dtype":"F32","shape":[1e999],"data_offsets":[0,24]}}'), "[inf]"),
    "dimension 2^64 + 2": (one(shape=[2**64 + 2, 3]), "has the shape [18446744073709551618, 3]"),
    "9 dimensions": (one(shape=[1] * 7 + [2, 3]), "not up to 8 sizes"),
    "1,000 dimensions": (one(shape=[1] * 1000), "not up to 8 sizes"),
    "product overflows to 0": (one(shape=[2**32, 2**32]), "takes 73786976294838206464 bytes and has 24"),
    "product overflows to 24": (one(shape=[2**32, 2**32, 6]), "bytes and has 24"),
    "offsets a number": (one(offsets=24), "has the data_offsets 24"),
    "one offset": (one(offsets=[24]), "has the data_offsets [24]"),
    "three offsets": (one(offsets=[0, 12, 24]), "has the data_offsets [0, 12, 24]"),
    "offset -1": (one(offsets=[-24, 0]), "has the data_offsets [-24, 0]"),
    "offset 0.0": (one(offsets=[0.0, 24]), "has the data_offsets [0.0, 24]"),
    "offset true": (one(dtype="U8", shape=[1], offsets=[False, True]), "data_offsets [False, True]"),
    "offset 2^64": (one(offsets=[0, 2**64]), "has the data_offsets [0, 18446744073709551616]"),
    "offsets backwards": (one(offsets=[24, 0]), "takes 24 bytes and has -24"),
    "offsets too close": (one(offsets=[0, 20]), "takes 24 bytes and has 20"),
    "offsets too far": (one(offsets=[0, 28]), "takes 24 bytes and has 28"),
    "hole at the beginning": (build({"a": entry(offsets=(4, 28))}, 28), "the header ends at"),
    "hole between": (
        build({"a": entry(), "b": entry(offsets=(28, 52))}, 52),
        "tensor b begins at byte",
    ),
    "hole at the end": (build({"a": entry()}, 28), "its tensors end at byte"),
    "data one byte short": (build({"a": entry()}, 23), "its tensors end at byte"),
    "no data": (build({"a": entry()}, 0), "its tensors end at byte"),
    "data without tensors": (build({}, 24), "its tensors end at byte 10, the file at 34"),
    "offset beyond the file": (build({"a": entry(offsets=(2**40, 2**40 + 24))}), "tensor a begins at byte"),
    "same place": (build({"a": entry(), "b": entry()}), "tensor b begins at byte"),
    "overlap": (build({"a": entry(), "b": entry(offsets=(20, 44))}, 44), "a ends at"),
    "inside another": (
        build({"a": entry(), "b": entry("U8", (4,), (8, 12))}, 24),
        "tensor b begins at byte",
    ),
    "terabytes": (build({"a": entry("F32", (2**40,), (0, 2**42))}), "its tensors end at byte"),
    "half a byte": (build({"a": entry("F4", (3,), (0, 2))}, 2), "takes 2 bytes and has 2"),
    "rows of half bytes": (build({"a": entry("F4", (2, 3), (0, 3))}, 3), "rows of 3 F4, which are no whole"),
    "scalar of 4 bits": (build({"a": entry("F4", (), (0, 0))}, 0), "takes 1 bytes and has 0"),
}
