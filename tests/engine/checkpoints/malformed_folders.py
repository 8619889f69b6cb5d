"""A folder made by hand, with a file of every kind, and a table of what can be wrong with each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.engine.checkpoints.malformed_safetensors import GOOD, build, entry

Files = dict[str, bytes | None]
INDEX, FIRST, SECOND = (
    "model.safetensors.index.json",
    "model-00001-of-00002.safetensors",
    "model-2.safetensors",
)
TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "added_tokens": [
        {
            "id": 3,
            "content": "<|end|>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "normalizer": None,
    "pre_tokenizer": {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    },
    "post_processor": None,
    "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<|end|>": 3}, "merges": [["a", "b"]]},
}


def dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def tokenizer(model: dict[str, Any] | None = None, **changes: Any) -> bytes:
    """tokenizer.json with these parts changed; `model` changes parts of the model."""
    return dump(TOKENIZER | changes | {"model": TOKENIZER["model"] | (model or {})})


def index(places: Any) -> bytes:
    return dump({"metadata": {"total_size": 56}, "weight_map": places})


GOOD_FOLDER: Files = {
    "config.json": dump({"model_type": "llama", "vocab_size": 4}),
    "model.safetensors": GOOD,
    "tokenizer.json": tokenizer(),
    "tokenizer_config.json": dump({"eos_token": "<|end|>"}),
    "generation_config.json": dump({"eos_token_id": [3]}),
    "special_tokens_map.json": dump({"eos_token": {"content": "<|end|>"}}),
}
SHARDED: Files = {
    "model.safetensors": None,
    INDEX: index({"a": FIRST, "b": SECOND}),
    FIRST: build({"a": entry()}),
    SECOND: build({"b": entry("BF16", (4,), (0, 8))}, 8),
}


def write_folder(folder: Path, changes: Files) -> Path:
    """The good folder with these files in place of its own; None: without."""
    for name, data in (GOOD_FOLDER | changes).items():
        if data is not None:
            (folder / name).write_bytes(data)
    return folder


def _json_cases(name: str, like: bytes) -> dict[str, tuple[Files, str]]:
    """What can be wrong with any JSON file."""
    cut = like[: len(like) // 2]
    bad = {
        "empty": (b"", "it is not JSON"),
        "cut": (cut, "it is not JSON"),
        "a list": (b"[]", "it holds a list, not an object"),
        "a number": (b"7", "it holds a int, not an object"),
        "null": (b"null", "it holds a NoneType, not an object"),
        "not UTF-8": (b'{"a":"\xff"}', "it is not UTF-8 at byte 6"),
        "a key twice": (b'{"a":1,"a":2}', "the key 'a' is there twice"),
        "a key twice inside": (b'{"x":{"a":1,"b":3,"a":2}}', "the key 'a' is there twice"),
        "NaN": (b'{"a":NaN}', "it holds NaN"),
        "nested deeply": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        "an integer of 5,000 digits": (b'{"a":' + b"1" * 5_000 + b"}", "is damaged"),
        "a million values": (b'{"a":[' + b"0," * 1_000_000 + b"0]}", "holds about 1,000,002 values"),
        "too large": (b'{"a":"' + b"x" * (17 << 20) + b'"}', "bytes; at most"),
        "a pickle": (b"\x80\x04\x95\x1a\0\0\0", "it is not UTF-8 at byte 0"),
        "JavaScript": (b'{"a": alert(1)}', "it is not JSON"),
    }
    return {f"{name}: {kind}": ({name: data}, f"{name}|{text}") for kind, (data, text) in bad.items()}


def _index_case(places: Any, text: str, **more: bytes | None) -> tuple[Files, str]:
    return SHARDED | {INDEX: index(places)} | more, text


# name -> (what is changed, parts of the error's text)
BAD: dict[str, tuple[Files, str]] = {
    **_json_cases("config.json", b'{"model_type": "llama"}'),
    **_json_cases("tokenizer_config.json", b'{"eos_token": "</s>"}'),
    **_json_cases("generation_config.json", b'{"eos_token_id": 2}'),
    **{
        name: (SHARDED | files, text)
        for name, (files, text) in _json_cases(INDEX, index({"a": FIRST})).items()
    },
    "no config and no GGUF": ({"config.json": None}, "neither a config.json nor a GGUF file"),
    "config.json a text_config of 7": (
        {"config.json": b'{"text_config": 7}'},
        "text_config is 7, not a table",
    ),
    "config.json a text_config list": (
        {"config.json": b'{"text_config": []}'},
        "text_config is [], not a table",
    ),
    "no weights": ({"model.safetensors": None}, "has no model.safetensors; the download is incomplete"),
    "only a pickle": (
        {"model.safetensors": None, "pytorch_model.bin": b"PK\3\4"},
        "weights only as pytorch_model.bin|can hold programs",
    ),
    "only a .pt": ({"model.safetensors": None, "model.pt": b"PK\3\4"}, "only as model.pt|never opened"),
    "two files and no index": (
        {"model.safetensors": None, FIRST: SHARDED[FIRST], SECOND: SHARDED[SECOND]},
        f"2 safetensors files and no {INDEX}",
    ),
    "index without a map": (SHARDED | {INDEX: b"{}"}, "it has no weight_map"),
    "index with a list": _index_case(["a"], "it has no weight_map"),
    "index with nothing": _index_case({}, "it has no weight_map"),
    "index with a number": _index_case({"a": 1, "b": SECOND}, "it has no weight_map"),
    "index with null": _index_case({"a": None}, "it has no weight_map"),
    "missing shard": (SHARDED | {SECOND: None}, f"has no {SECOND}; the download is incomplete"),
    "shard without a name": _index_case({"a": ""}, "names a file ''"),
    "shard above": _index_case({"a": "../model.safetensors"}, "names a file '../model.safetensors'"),
    "shard far above": _index_case({"a": "../../../../etc/passwd"}, "which no model file may be called"),
    "shard at an absolute path": _index_case({"a": "/etc/passwd"}, "names a file '/etc/passwd'"),
    "shard on a drive": _index_case({"a": "C:\\model.safetensors"}, "no model file may be called"),
    "shard on a server": _index_case({"a": "\\\\host\\share\\m.safetensors"}, "no model file may be called"),
    "shard at a URL": _index_case({"a": "https://host/m.safetensors"}, "no model file may be called"),
    "shard in a stream": _index_case({"a": "model.safetensors:x"}, "no model file may be called"),
    "shard with NUL": _index_case({"a": "a\0.safetensors"}, "no model file may be called"),
    "shard with a newline": _index_case({"a": "a.safetensors\n"}, "no model file may be called"),
    "shard a device": _index_case({"a": "con.safetensors"}, "no model file may be called"),
    "shard a pickle": _index_case(
        {"a": FIRST, "b": "more.bin"}, "weights in more.bin|can hold programs", **{"more.bin": b"PK\3\4"}
    ),
    "shard a folder": _index_case({"a": "."}, "no model file may be called"),
    "600 shards": _index_case(
        {f"t{i}": f"m{i}.safetensors" for i in range(600)}, "names 600 files; at most 500"
    ),
    "tensor in another shard": _index_case({"a": SECOND, "b": FIRST}, f"tensor a is missing in {SECOND}"),
    "tensor in no shard": _index_case(
        {"a": FIRST, "b": SECOND, "c": FIRST}, f"tensor c is missing in {FIRST}"
    ),
    "tensor not in the index": (
        SHARDED | {FIRST: build({"a": entry(), "x": entry("U8", (4,), (24, 28))}, 28)},
        f"tensor x is not named by the index but in {FIRST}",
    ),
    "tensor in two shards": (
        SHARDED | {SECOND: build({"a": entry()})},
        f"tensor a is not named by the index but in {SECOND}",
    ),
    "damaged shard": (SHARDED | {SECOND: bytes(8)}, f"{SECOND} is damaged"),
    "no tokenizer": ({"tokenizer.json": None}, "has no tokenizer.json"),
    "tokenizer empty": ({"tokenizer.json": b"{}"}, "tokenizer.json is damaged"),
    "tokenizer cut": ({"tokenizer.json": tokenizer()[:300]}, "tokenizer.json is damaged"),
    "tokenizer a list": ({"tokenizer.json": b"[]"}, "tokenizer.json is damaged"),
    "tokenizer not UTF-8": ({"tokenizer.json": b"\xff\xfe{}"}, "tokenizer.json is damaged"),
    "tokenizer nested deeply": (
        {"tokenizer.json": b'{"model":' + b"[" * 100_000},
        "tokenizer.json is damaged",
    ),
    "tokenizer of 4 million values": (
        {"tokenizer.json": b'{"model":[' + b"0," * (1 << 22)},
        "holds about 4,194,306 values; at most 4,194,304",
    ),
    "tokenizer too large": ({"tokenizer.json": b" " * ((64 << 20) + 1)}, "has 67,108,865 bytes; at most"),
    "tokenizer Unigram": (
        {
            "tokenizer.json": dump(
                TOKENIZER | {"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.0]]}}
            )
        },
        "of the kind Unigram; only BPE",
    ),
    "tokenizer WordLevel": (
        {
            "tokenizer.json": dump(
                TOKENIZER | {"model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}}
            )
        },
        "of the kind WordLevel; only BPE",
    ),
    "tokenizer of a type to come": ({"tokenizer.json": tokenizer({"type": "Bytes"})}, "is damaged"),
    "merge of an unknown token": ({"tokenizer.json": tokenizer({"merges": [["a", "z"]]})}, "is damaged"),
    "merge to an unknown token": ({"tokenizer.json": tokenizer({"merges": [["b", "a"]]})}, "is damaged"),
    "merge of one part": ({"tokenizer.json": tokenizer({"merges": ["a"]})}, "is damaged"),
    "token number -1": ({"tokenizer.json": tokenizer({"vocab": {"a": -1}})}, "is damaged"),
    "token number 2^31": (
        {"tokenizer.json": tokenizer({"vocab": {"a": 2**31, "b": 1, "ab": 2}})},
        "ids up to 2147483648",
    ),
    "token number 2^40": ({"tokenizer.json": tokenizer({"vocab": {"a": 2**40}})}, "is damaged"),
    "token number 1.5": ({"tokenizer.json": tokenizer({"vocab": {"a": 1.5}})}, "is damaged"),
    "two tokens of one number": (
        {"tokenizer.json": tokenizer({"vocab": {"a": 0, "b": 1, "ab": 2, "c": 2}})},
        "tokens have ids up to",
    ),
    "no tokens": ({"tokenizer.json": tokenizer({"vocab": {}, "merges": []}, added_tokens=[])}, "0 tokens"),
    "a normalizer that panics": (
        {"tokenizer.json": tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})},
        "by a table (Precompiled), which is not served",
    ),
    "the same, hidden": (
        {
            "tokenizer.json": tokenizer(
                normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}
            ).replace(b"Precompiled", rb"Precompil\u0065d")
        },
        "plain letters as escapes",
    ),
    "rules that multiply": (
        {
            "tokenizer.json": tokenizer(
                normalizer={
                    "type": "Sequence",
                    "normalizers": [{"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}]
                    * 4,
                }
            )
        },
        "1,000,000,000,000 times as long",
    ),
    "a rule that puts megabytes before a text": (
        {"tokenizer.json": tokenizer(normalizer={"type": "Prepend", "prepend": "x" * 2_000_000})},
        "a rule has 2,000,0",
    ),
    "ids put round a text without end": (
        {
            "tokenizer.json": tokenizer(
                post_processor={
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "a", "type_id": 0}}] * 1000,
                    "pair": [
                        {"Sequence": {"id": "A", "type_id": 0}},
                        {"Sequence": {"id": "B", "type_id": 1}},
                    ],
                    "special_tokens": {"a": {"id": "a", "ids": [0] * 20_000, "tokens": ["a"] * 20_000}},
                }
            )
        },
        "a rule has",
    ),
    "a pattern that is none": (
        {
            "tokenizer.json": tokenizer(
                pre_tokenizer={
                    "type": "Split",
                    "pattern": {"Regex": "(((("},
                    "behavior": "Isolated",
                    "invert": False,
                }
            )
        },
        "is damaged",
    ),
    "an unknown pre-tokenizer": (
        {"tokenizer.json": tokenizer(pre_tokenizer={"type": "Python", "code": "import os"})},
        "is damaged",
    ),
    "neither bytes nor pieces": (
        {"tokenizer.json": tokenizer(pre_tokenizer=None)},
        "neither as bytes nor with",
    ),
    "words with an ending": (
        {"tokenizer.json": tokenizer({"end_of_word_suffix": "</w>"})},
        "neither as bytes nor with",
    ),
    "eos 4 of 4": (
        {"generation_config.json": b'{"eos_token_id": 4}'},
        "eos token is number 4|vocabulary has 4",
    ),
    "eos -1": ({"generation_config.json": b'{"eos_token_id": -1}'}, "eos token is number -1"),
    "eos a text": ({"generation_config.json": b'{"eos_token_id": "3"}'}, "eos token is number '3'"),
    "eos true": ({"generation_config.json": b'{"eos_token_id": true}'}, "eos token is number True"),
    "eos a list of lists": (
        {"generation_config.json": b'{"eos_token_id": [[3]]}'},
        "eos token is number [3]",
    ),
    "eos of config.json": (
        {"generation_config.json": None, "config.json": b'{"eos_token_id": 99}'},
        "eos token is number 99|vocabulary has 4",
    ),
    "eos a table of numbers": (
        {"tokenizer_config.json": b'{"eos_token": {"content": 3}}'},
        "eos_token is 3, not a",
    ),
    "eos a list": ({"tokenizer_config.json": b'{"eos_token": ["<|end|>"]}'}, "eos_token is ['<|end|>'], not"),
    "bos a number": ({"tokenizer_config.json": b'{"bos_token": 3}'}, "bos_token is 3, not a token"),
    "template a number": ({"tokenizer_config.json": b'{"chat_template": 7}'}, "template 'default' is 7"),
    "template without a name": (
        {"tokenizer_config.json": b'{"chat_template": [{"template": "x"}]}'},
        "template None is 'x', not a text",
    ),
    "templates, none the default": (
        {
            "tokenizer_config.json": dump(
                {"chat_template": [{"name": "rag", "template": "x"}, {"name": "tools", "template": "y"}]}
            )
        },
        "chat templates named rag, tools, none of them default",
    ),
    "template not UTF-8": ({"chat_template.jinja": b"\xff"}, "chat_template.jinja is not UTF-8"),
    "template too large": ({"chat_template.jinja": b" " * (2 << 20)}, "has 2,097,152 bytes; at most"),
}
