"""The vocabulary of a folder: tokenizer.json, read by the library that wrote it, and what lies beside it.

The library's own search for special tokens, its truncation and padding are left out: the model and the rules
that cut text are taken, tokenizer.py does the rest, the same for every source. Only BPE is served, in both
spellings: all decoder families use it.
    eos ids    generation_config.json, config.json, the eos_token of tokenizer_config.json, known end tokens
    add_bos    tokenizer_config.json says so, or else the library's post-processor puts bos first
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import models

from ..checkpoints import TextFiles
from ..errors import BadCheckpoint, UnsupportedModel
from .vocabulary import (
    BYTE,
    CONTROL,
    NORMAL,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    Texts,
    Vocabulary,
    digest,
    from_library,
    named_ends,
)

MAX_VALUES = 1 << 22  # commas and brackets in tokenizer.json; Gemma's has 1.9 million
MAX_GAPS = 1 << 16  # ids without a token
PANICS = re.compile(rb'"type"\s*:\s*"Precompiled"')  # in the library, if the table is damaged
HIDDEN = re.compile(rb"(?<!\\)(?:\\\\)*\\u00(?:[46][1-9a-f]|[57][0-9a])", re.IGNORECASE)  # a plain letter
MOST_GROWTH = 64  # times as long that rules may make a text
MOST_PUT = 1 << 14  # characters of a rule that puts something beside it


def json_vocabulary(text: TextFiles, config: Mapping[str, Any]) -> Vocabulary:
    """Raises UnsupportedModel for a kind of tokenizer not served, BadCheckpoint for a broken one."""
    loaded = _load(text.tokenizer)
    tokens, types = _tokens(loaded)
    rules, first, after_found = _rules(loaded)
    special = _Special(text, config, tokens, loaded)
    added = loaded.get_added_tokens_decoder().items()
    bos_id, eos_id, eos_ids = special.token("bos"), special.token("eos"), special.ends(types, tokens)
    if eos_id is None and eos_ids:
        eos_id = min(eos_ids)
    add_bos = bos_id is not None and special.adds_bos(bos_id)
    return Vocabulary(
        tokens=Texts(tokens),
        types=bytes(types),
        spelling=_spelling(loaded),
        inside=rules,
        first=first,
        space_after_found=after_found,
        bos_id=bos_id,
        add_bos=add_bos,
        eos_id=eos_id,
        eos_ids=eos_ids,
        chat_template=_template(text.templates),
        digest=digest(text.tokenizer, f"{bos_id} {add_bos} {sorted(eos_ids)}"),
        eats_left=frozenset(index for index, token in added if token.lstrip),
        eats_right=frozenset(index for index, token in added if token.rstrip),
    )


def _load(data: bytes) -> tokenizers.Tokenizer:
    if not data:
        raise BadCheckpoint(
            "The model has no tokenizer.json, without which its text cannot be read; older kinds of files "
            "(tokenizer.model, vocab.json) are not served."
        )
    if (values := sum(map(data.count, (b",", b"[", b"{")))) > MAX_VALUES:
        raise BadCheckpoint(f"tokenizer.json holds about {values:,} values; at most {MAX_VALUES:,} are read.")
    if HIDDEN.search(data):
        raise BadCheckpoint("tokenizer.json is damaged: it spells plain letters as escapes.")
    if PANICS.search(data):
        raise UnsupportedModel("The tokenizer normalizes text by a table (Precompiled), which is not served.")
    loaded = from_library(lambda: tokenizers.Tokenizer.from_buffer(data), "tokenizer.json is damaged")
    if not isinstance(loaded.model, models.BPE):
        kind = type(loaded.model).__name__
        raise UnsupportedModel(f"The tokenizer is of the kind {kind}; only BPE is served.")
    _check_growth(loaded)
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def _check_growth(loaded: tokenizers.Tokenizer) -> None:
    """A few rules could make gigabytes of a sentence."""
    rules = _parts(_state(loaded.normalizer)) + _parts(_state(loaded.pre_tokenizer))
    growth = math.prod(map(_growth, rules))
    put = max(len(json.dumps(part)) for part in (*rules, _state(loaded.post_processor)))
    if growth > MOST_GROWTH or put > MOST_PUT:
        raise BadCheckpoint(
            f"tokenizer.json is damaged: a rule has {put:,} characters, and together they make a text "
            f"{growth:,.0f} times as long; at most {MOST_PUT:,} and {MOST_GROWTH} are taken."
        )


def _tokens(loaded: tokenizers.Tokenizer) -> tuple[list[str], list[int]]:
    """Tokens by id, and their types as GGUF has them."""
    vocab = loaded.get_vocab(with_added_tokens=True)
    size = max(vocab.values(), default=-1) + 1
    if not vocab or size > len(vocab) + MAX_GAPS or len(set(vocab.values())) < len(vocab):
        raise BadCheckpoint(f"tokenizer.json is damaged: {len(vocab)} tokens have ids up to {size - 1}.")
    tokens, types = [""] * size, [UNKNOWN] * size
    for token, index in vocab.items():
        tokens[index], types[index] = token, NORMAL
    if loaded.model.byte_fallback:
        for byte in range(256):
            if (found := vocab.get(f"<0x{byte:02X}>")) is not None:
                types[found] = BYTE
    for index, added in loaded.get_added_tokens_decoder().items():
        types[index] = CONTROL if added.special else USER_DEFINED
    return tokens, types


def _growth(rule: dict[str, Any]) -> float:
    """How many times as long a text may become by it."""
    pattern = rule.get("pattern")
    found = pattern.get("String", "") if isinstance(pattern, dict) else ""
    return max(1.0, len(rule.get("content", "")) / max(1, len(found)))


# Part of the rules -> what puts a space before a text: the key that says so, its value that does not.
_PREFIXES: dict[str, tuple[str, Any]] = {
    "Metaspace": ("prepend_scheme", "never"),
    "ByteLevel": ("add_prefix_space", False),
}


def _rules(loaded: tokenizers.Tokenizer) -> tuple[tokenizers.Tokenizer, tokenizers.Tokenizer | None, bool]:
    """What cuts text anywhere, what cuts it with a space put first, and whether whole tokens call for one."""
    normalizer, pre_tokenizer = _state(loaded.normalizer), _state(loaded.pre_tokenizer)
    schemes: list[Any] = []
    inside = _with_rules(loaded, _bare(normalizer, schemes), _bare(pre_tokenizer, schemes))
    first = _with_rules(loaded, normalizer, pre_tokenizer) if schemes else None
    return inside, first, any(scheme != "first" for scheme in schemes)


def _state(part: Any) -> dict[str, Any] | None:
    """A normalizer or pre-tokenizer as tokenizer.json has it."""
    return None if part is None else json.loads(part.__getstate__())


def _parts(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """A rule's own parts, in order, or itself."""
    if part is None:
        return []
    inner = part.get("normalizers", part.get("pretokenizers"))
    return [part] if inner is None else [leaf for each in inner for leaf in _parts(each)]


def _bare(part: dict[str, Any] | None, schemes: list[Any]) -> dict[str, Any] | None:
    """The rule without what puts a space before a text; how that would have done it goes to `schemes`."""
    kept = []
    for each in _parts(part):
        key, neutral = _PREFIXES.get(each["type"], ("", None))
        if each["type"] == "Prepend":
            schemes.append("always")
        elif key and each[key] != neutral:
            schemes.append(each[key])
            kept.append(each | {key: neutral})
        else:
            kept.append(each)
    list_name = "normalizers" if part is not None and "normalizers" in part else "pretokenizers"
    if len(kept) == 1:
        return kept[0]
    return {"type": "Sequence", list_name: kept} if kept else None


def _with_rules(
    loaded: tokenizers.Tokenizer, normalizer: dict[str, Any] | None, pre_tokenizer: dict[str, Any] | None
) -> tokenizers.Tokenizer:
    """The model with these rules and nothing else."""
    empty = {"type": "BPE", "vocab": {}, "merges": []}
    layout = {"version": "1.0", "added_tokens": [], "model": empty}
    rules = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}
    built = from_library(
        lambda: tokenizers.Tokenizer.from_str(json.dumps(layout | rules)), "tokenizer.json is damaged"
    )
    built.model = loaded.model
    return built


def _spelling(loaded: tokenizers.Tokenizer) -> Any:
    parts = _parts(_state(loaded.normalizer)) + _parts(_state(loaded.pre_tokenizer))
    model = loaded.model
    if not model.continuing_subword_prefix and not model.end_of_word_suffix:
        if any(part["type"] == "ByteLevel" for part in parts):
            return "bytes"
        if model.byte_fallback or SPACE in json.dumps(parts, ensure_ascii=False):
            return "pieces"
    raise UnsupportedModel(
        f"The tokenizer spells tokens neither as bytes nor with {SPACE!r} for a space; only these are served."
    )


class _Special:
    """Which tokens begin and end texts, from several files that may each leave it out."""

    def __init__(
        self, text: TextFiles, config: Mapping[str, Any], tokens: list[str], loaded: tokenizers.Tokenizer
    ) -> None:
        self.text, self.config, self.size, self.loaded = text, config, len(tokens), loaded

    def token(self, name: str) -> int | None:
        """The id of the "bos" or "eos" token."""
        for table in (self.text.tokenizer_config, self.text.special_tokens):
            if (key := f"{name}_token") in table:
                value = table[key].get("content", "") if isinstance(table[key], dict) else table[key]
                if not isinstance(value, str | None):
                    raise BadCheckpoint(f"The model's {key} is {value!r:.40}, not a token's text.")
                return None if value is None else self.loaded.token_to_id(value)
        return next(iter(self.ids(name)), None)

    def ids(self, name: str) -> list[int]:
        """What generation_config.json or else config.json says."""
        key = f"{name}_token_id"
        value = self.text.generation.get(key, self.config.get(key))
        ids = [] if value is None else value if isinstance(value, list) else [value]
        for token_id in ids:
            if type(token_id) is not int or not 0 <= token_id < self.size:
                number = f"{token_id!r:.40}"
                raise BadCheckpoint(f"The {name} token is number {number}; the vocabulary has {self.size}.")
        return ids

    def ends(self, types: list[int], tokens: list[str]) -> frozenset[int]:
        """All tokens that end an answer."""
        eos = self.token("eos")
        return frozenset({*self.ids("eos"), *named_ends(tokens, types), *([] if eos is None else [eos])})

    def adds_bos(self, bos_id: int) -> bool:
        """Whether a prompt begins with it."""
        said = self.text.tokenizer_config.get("add_bos_token")
        if isinstance(said, bool):
            return said
        empty = from_library(lambda: self.loaded.encode("").ids, "tokenizer.json is damaged")
        return empty[:1] == [bos_id]


def _template(templates: Mapping[str, str]) -> str | None:
    """The template that is called default, or the only one."""
    if len(templates) > 1 and "default" not in templates:
        names = ", ".join(sorted(templates))
        raise UnsupportedModel(f"The model has chat templates named {names:.200}, none of them default.")
    return templates.get("default", next(iter(templates.values()), None))
