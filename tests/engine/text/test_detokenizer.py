"""Streamed text: an answer's parts join to the same text, however it is cut; no stop string is shown."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.text.detokenizer import Detokenizer
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import starter_tokenizer, tiny_tokenizer

# a greeting in each of 44 scripts, and what else takes several bytes or code points
_SCRIPTS = (
    "Hello|Здравейте|Γειά σου|שלום|مرحبا|ܫܠܡܐ|ހެލޯ|नमस्ते|নমস্কার|ਸਤਿ ਸ੍ਰੀ|નમસ્તે|ନମସ୍କାର|வணக்கம்|నమస్తే|"
    "ನಮಸ್ಕಾರ|നമസ്കാരം|ආයුබෝවන්|สวัสดี|ສະບາຍດີ|བཀྲ་ཤིས|မင်္ဂလာပါ|გამარჯობა|안녕하세요|ሰላም|ᎣᏏᏲ|ᐊᐃ|"
    "ᚺᚨᛁᛚᚨ|ជំរាបសួរ|ᠰᠠᠢᠨ|こんにちは|コンニチハ|你好|ㄋㄧˇ|Բարեւ|ⵀⵍⵓ|ꆈꌠ|ꓡꓲꓢꓴ|𐌷𐌰𐌹𐌻𐍃|𐤔𐤋𐤌|𒁲𒈠|𓀀𓂋|"
    "𝔥𝔢𝔩𝔩𝔬|⠓⠊|ߒߞߏ|👍🏽|👨‍👩‍👧‍👦|🏳️‍🌈|🇩🇪🇯🇵|❤️‍🔥|e\u0301ñ|½ € “q” …|\u200bx\u200d|\r\n\t|\x00\x07|\ufffd"
)
SCRIPTS = _SCRIPTS.split("|")


class Bytes:
    """A vocabulary in which token n is the n-th of some byte strings."""

    def __init__(self, pieces: Sequence[bytes], space_prefix: bool = False) -> None:
        self.pieces, self.space_prefix, self.parts = pieces, space_prefix, None

    def piece_bytes(self, token_id: int) -> bytes:
        return self.pieces[token_id]


def stream(tokenizer: Any, ids: Sequence[int], stops: Sequence[str] = ()) -> tuple[list[str], bool]:
    """What is shown by each push and at the end; whether a stop string came."""
    detokenizer = Detokenizer(tokenizer, stops)
    shown = [detokenizer.push(token_id) for token_id in ids]
    return [*shown, detokenizer.finish()], detokenizer.stopped


def cut(data: bytes, chance: random.Random) -> list[bytes]:
    """The data in pieces of 1 to 9 bytes."""
    borders = [0]
    while borders[-1] < len(data):
        borders.append(borders[-1] + chance.choice((1, 1, 2, 3, 4, 9)))
    return [data[i:j] for i, j in pairwise(borders)]


def stopped_at(text: str, stops: Sequence[str]) -> str:
    """The text up to the stop string that is complete first; character by character, the plain way."""
    for end in range(len(text) + 1):
        ended = [stop for stop in stops if text[:end].endswith(stop)]
        if ended:
            return text[: end - max(map(len, ended))]
    return text


def test_twenty_thousand_random_splits() -> None:
    chance = random.Random(7)
    assert len(SCRIPTS) > 50
    for _ in range(20_000):
        text = chance.choice((" ", "", "\n")).join(chance.choices(SCRIPTS, k=chance.randint(1, 4)))
        pieces = cut(text.encode(), chance)
        parts, stopped = stream(Bytes(pieces), range(len(pieces)))
        assert "".join(parts) == text
        assert not stopped
        assert "\ufffd" in text or not any("\ufffd" in part for part in parts)


def test_stop_strings_are_never_shown() -> None:
    chance = random.Random(8)
    hits = 0
    for _ in range(10_000):
        text = "".join(chance.choices(("a", "b", "ab", "é", "👍🏽", "</s>", "\n", "User:"), k=12))
        stops = chance.sample(("aba", "bb", "</s>", "User:", "\n\n", "é👍", "abab", "b", "s>\n"), k=2)
        pieces = cut(text.encode(), chance)
        parts, stopped = stream(Bytes(pieces), range(len(pieces)), stops)
        expected = stopped_at(text, stops)
        assert "".join(parts) == expected
        assert stopped == (expected != text)
        hits += stopped
    assert 2_000 < hits < 9_500


def test_what_may_become_a_stop_string_is_held_and_then_shown() -> None:
    parts, stopped = stream(Bytes([b"one <", b"/", b"b> two <", b"/s"]), range(4), ["</s>"])
    assert parts == ["one ", "", "</b> two ", "", "</s"]
    assert not stopped
    parts, stopped = stream(Bytes([b"one <", b"/s", b"> two", b"three"]), range(4), ["</s>"])
    assert parts == ["one ", "", "", "", ""]
    assert stopped


def test_text_before_a_stop_string_in_one_token_is_shown() -> None:
    assert stream(Bytes([b"yes.STOP and more"]), [0], ["STOP"]) == (["yes.", ""], True)


def test_invalid_bytes_are_replaced_as_in_one_piece() -> None:
    chance = random.Random(9)
    for _ in range(3_000):
        data = bytearray("".join(chance.choices(SCRIPTS, k=2)).encode())
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data += b"."  # nothing is incomplete at the end
        pieces = cut(bytes(data), chance)
        parts, _ = stream(Bytes(pieces), range(len(pieces)))
        assert "".join(parts) == data.decode("utf-8", "replace")


def test_a_character_cut_by_the_end_is_left_out() -> None:
    for text in ("a👍", "b你", "cé"):
        for missing in range(1, len(text[1:].encode())):
            data = text.encode()[:-missing]
            assert stream(Bytes([data[:2], data[2:]]), range(2))[0] == [text[0], "", ""]


@pytest.mark.parametrize("kind", ["starter", "spm"])
def test_real_tokens_however_chosen(kind: str, starter_model: Path) -> None:
    tokenizer: Tokenizer = starter_tokenizer(starter_model) if kind == "starter" else tiny_tokenizer("spm")
    chance = random.Random(10)
    without_tokens = {"𒁲𒈠", "𓀀𓂋", "\x00\x07", "ހެލޯ"} if kind == "starter" else set()
    texts = [text for text in SCRIPTS if text not in without_tokens]
    for _ in range(1_000):
        text = " ".join(chance.choices(texts, k=3))
        borders = sorted({0, *chance.sample(range(1, len(text)), k=2), len(text)})
        ids: list[int] = []
        for i, j in pairwise(borders):  # tokens that the whole text would not have
            ids += tokenizer.encode(text[i:j], special=False, before=ids[-1] if ids else None)
        parts, _ = stream(tokenizer, ids)
        assert "".join(parts) == text


def test_control_tokens_add_nothing(starter_model: Path) -> None:
    tokenizer = starter_tokenizer(starter_model)
    ids = [2, *tokenizer.encode("Hi", special=False), 0, tokenizer.vocab_size + 5, -1]
    assert "".join(stream(tokenizer, ids, ["H?"])[0]) == "Hi"


def test_only_the_answers_first_space_is_sentencepieces_own() -> None:
    assert stream(Bytes([b"", b" two", b" words"], space_prefix=True), range(3))[0] == [
        "",
        "two",
        " words",
        "",
    ]
    assert stream(Bytes([b" ", b" x"], space_prefix=True), range(2))[0] == ["", " x", ""]
    assert stream(Bytes([b" two"]), range(1))[0] == [" two", ""]
