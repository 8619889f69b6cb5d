"""The tokenizer gives the ids that llama.cpp, tokenizers and sentencepiece give, and refuses the unknown.

tokenizer_ids.json holds llama.cpp's own ids (2026-10) for texts that are easily cut wrongly: the starter
model's file, its pre-tokenizer's name replaced. For qwen2 the texts were composed (NFC) first, which
transformers does and llama.cpp does not.
"""

from __future__ import annotations

import json
import random
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Library, models, normalizers

from engine import BadCheckpoint, UnsupportedModel
from engine.text.vocabulary import named_ends
from engine.text.vocabulary_gguf import PRE_TOKENIZERS
from tests.engine.text.vocabularies import (
    starter_metadata,
    starter_tokenizer,
    tiny_metadata,
    tiny_tokenizer,
    tokenizer_of,
)
from tests.tiny_models import make_bpe, make_spm

LLAMA_CPP = json.loads(Path(__file__).with_name("tokenizer_ids.json").read_text("utf-8"))
TEXTS = [text for text, _ in LLAMA_CPP["smollm"]]
KINDS = ["smollm", "qwen2", "spm"]


def mixtures(count: int) -> list[str]:
    """Texts made of parts of TEXTS, cut and joined anywhere."""
    chance = random.Random(1)
    parts = [text[i:j] for text in TEXTS for i in (0, 3, 7) for j in (9, 12, len(text))]
    return ["".join(chance.choices(parts, k=chance.randint(1, 6))) for _ in range(count)]


@pytest.mark.parametrize("pre", LLAMA_CPP)
def test_ids_are_llama_cpps(starter_model: Path, pre: str) -> None:
    tokenizer = tokenizer_of(starter_metadata(starter_model) | {"tokenizer.ggml.pre": pre})
    for text, ids in LLAMA_CPP[pre]:
        assert tokenizer.encode(text, special=True) == ids, text


def test_every_pre_tokenizer_is_compared() -> None:
    same = {id(PRE_TOKENIZERS[name]) for name in LLAMA_CPP}
    assert {id(pre) for pre in PRE_TOKENIZERS.values()} == same


@pytest.mark.parametrize("pre", ["smollm", "qwen2"])
def test_bpe_ids_are_those_of_the_tokenizers_library(pre: str) -> None:
    _, oracle = make_bpe(pre)
    for text in mixtures(1500):
        assert tiny_tokenizer(pre).encode(text, special=True) == oracle.encode(text).ids, text


def test_gemma_4s_ids_are_those_of_the_tokenizers_library() -> None:
    """Its tokenizer.json has no cuts at newlines, which no piece crosses."""
    facts, _ = make_spm()
    pieces, metadata = facts["tokens"], tiny_metadata("spm")
    vocab, score = (
        {piece: i for i, piece in enumerate(pieces)},
        dict(zip(pieces, facts["scores"], strict=True)),
    )
    joins = [(a, b) for piece in pieces for i in range(1, len(piece)) if (a := piece[:i]) in vocab
             and (b := piece[i:]) in vocab]  # fmt: skip
    joins.sort(key=lambda pair: -score["".join(pair)])
    del metadata["tokenizer.ggml.scores"]
    metadata |= {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.pre": "gemma4",
        "tokenizer.ggml.merges": [" ".join(pair) for pair in joins],
    }
    oracle = Library(models.BPE(vocab, joins, byte_fallback=True, fuse_unk=True, unk_token=pieces[0]))
    oracle.normalizer = normalizers.Replace(" ", "▁")
    ours = tokenizer_of(metadata)
    for text in mixtures(500):
        ids = ours.encode(text, special=False)
        assert ids == oracle.encode(text).ids, text
        assert b"".join(map(ours.piece_bytes, ids)) == text.encode(), text
    assert ours.add_bos


def test_spm_ids_are_sentencepieces() -> None:
    _, oracle = make_spm()
    runs = [char * length for char in " a=." for length in range(1, 70)]
    for text in mixtures(1500) + runs:
        if "<|im_" not in text:
            assert tiny_tokenizer("spm").encode(text, special=False) == oracle.encode(text), text


@pytest.mark.parametrize("kind", KINDS)
def test_control_tokens_are_found_on_request_only(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    text = "<|im_start|>user\n<|im_end|><|im_end|>"
    start, end = (tokenizer.encode(token, special=True) for token in ("<|im_start|>", "<|im_end|>"))
    ids = tokenizer.encode(text, special=True)
    assert ids[:1] == start
    assert ids[-2:] == end * 2
    plain = tokenizer.encode(text, special=False)
    assert not tokenizer.control_ids & set(plain)
    assert b"".join(map(tokenizer.piece_bytes, plain)).strip() == text.encode()
    assert b"".join(map(tokenizer.piece_bytes, ids)).strip() == b"user"


def test_spm_puts_its_space_at_the_start_and_after_control_tokens_only() -> None:
    tokenizer = tiny_tokenizer("spm")

    def spelled(text: str, **options: Any) -> list[str]:
        return [tokenizer.text_of(i) for i in tokenizer.encode(text, special=True, **options)]

    assert spelled("the") == ["▁the"]
    assert spelled("the", before=tokenizer.encode("x", special=False)[-1]) == ["th", "e"]
    assert spelled("the", before=tokenizer.bos_id) == ["▁the"]
    assert spelled("<|im_start|>the") == ["<|im_start|>", "▁the"]
    assert spelled("") == []
    bare = tokenizer_of(tiny_metadata("spm") | {"tokenizer.ggml.add_space_prefix": False})
    assert [bare.text_of(i) for i in bare.encode("the", special=True)] == ["th", "e"]


def test_user_defined_tokens_are_text_and_always_found() -> None:
    metadata = tiny_metadata("smollm")
    tokens = [*metadata["tokenizer.ggml.tokens"], "<tool>", "<tool> call"]
    types = [*metadata["tokenizer.ggml.token_type"], 4, 4]
    tokenizer = tokenizer_of(metadata | {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types})
    for special in (True, False):
        assert tokenizer.encode("<tool> call<tool>", special) == [len(tokens) - 1, len(tokens) - 2]
    assert tokenizer.piece_bytes(len(tokens) - 1) == b"<tool> call"
    assert len(tokens) - 1 not in tokenizer.control_ids


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_pieces_are_the_text(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    for text in mixtures(500):
        kept = unicodedata.normalize("NFC", text) if kind == "qwen2" else text
        pieces = b"".join(map(tokenizer.piece_bytes, tokenizer.encode(text, special=False)))
        assert pieces.removeprefix(b" " * tokenizer.space_prefix) == kept.encode()


def test_bytes_of_the_starter_models_pieces(starter_model: Path) -> None:
    tokenizer = starter_tokenizer(starter_model)
    for text in TEXTS:
        if "\x07" not in text and "𒀀" not in text:  # has no tokens for these bytes
            assert b"".join(map(tokenizer.piece_bytes, tokenizer.encode(text, False))) == text.encode()


@pytest.mark.parametrize("kind", KINDS)
def test_odd_input_is_no_crash(kind: str) -> None:
    tokenizer = tiny_tokenizer(kind)
    replaced = tokenizer.encode("a\ufffdb", special=True)
    assert tokenizer.encode("a\ud800b", special=True) == replaced
    assert tokenizer.encode("a\udc00b", special=True) == replaced
    assert tokenizer.encode("\ud83d\ude42", special=True) == tokenizer.encode("🙂", special=True)
    for run in ("a" * 50_000, " " * 50_000 + "x", "\n" * 50_000, "é1" * 20_000, "<|im_" * 10_000, "\x00" * 9):
        assert tokenizer.encode(run, special=False)
    for token_id in (-1, tokenizer.vocab_size, 2**40):
        assert tokenizer.piece_bytes(token_id) == b""
        assert tokenizer.text_of(token_id) == ""


def test_ends_are_what_the_file_names_and_control_tokens_known_to_end(starter_model: Path) -> None:
    tokenizer = starter_tokenizer(starter_model)
    assert {tokenizer.text_of(i) for i in tokenizer.eos_ids} == {"<|im_end|>", "<|endoftext|>"}
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.add_bos) == (1, 2, False)
    assert tiny_tokenizer("spm").add_bos
    metadata = tiny_metadata("smollm")
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    # Qwen2.5 has "</s>" as a plain piece of its vocabulary
    html = metadata | {"tokenizer.ggml.tokens": [*tokens, "</s>"], "tokenizer.ggml.token_type": [*types, 1]}
    assert len(tokens) not in tokenizer_of(html).eos_ids
    assert (
        len(tokens) - 1 in tokenizer_of(metadata | {"tokenizer.ggml.eot_token_id": len(tokens) - 1}).eos_ids
    )


@pytest.mark.parametrize(
    "kinds, ends",
    [
        ({"</s>": 3, "<|im_end|>": 3}, {"</s>", "<|im_end|>"}),
        ({"</s>": 4, "<end_of_turn>": 4}, {"<end_of_turn>"}),  # Gemma: HTML
        ({"<eos>": 3, "<|turn>": 3, "<turn|>": 3}, {"<eos>", "<turn|>"}),  # Gemma 4: its files name <eos>
        ({"<|end|>": 3, "<|return|>": 3, "<|call|>": 3}, {"<|return|>", "<|call|>"}),  # gpt-oss: a part ends
        ({"<|end|>": 3}, {"<|end|>"}),
        ({"</s>": 1, "<eos>": 1}, set()),
    ],
)
def test_tokens_known_to_end_answers(kinds: dict[str, int], ends: set[str]) -> None:
    tokens = list(kinds)
    assert {tokens[i] for i in named_ends(tokens, list(kinds.values()))} == ends


def test_of_a_text_that_stands_there_twice_the_last_is_taken() -> None:
    """Google's own files of Gemma 4, made for 4 bits, have "//", "<?" and "#" twice."""
    metadata = tiny_metadata("smollm")
    tokens, types = list(metadata["tokenizer.ggml.tokens"]), list(metadata["tokenizer.ggml.token_type"])
    place = tokens.index("e")
    twice = metadata | {"tokenizer.ggml.tokens": [*tokens, "e"], "tokenizer.ggml.token_type": [*types, 1]}
    tokenizer, once = tokenizer_of(twice), tokenizer_of(metadata)
    for text in ("e", "be the e", *mixtures(200)):
        ids = [len(tokens) if i == place else i for i in once.encode(text, special=True)]
        assert tokenizer.encode(text, special=True) == ids, text
    assert tokenizer.piece_bytes(place) == tokenizer.piece_bytes(len(tokens)) == b"e"
    assert tokenizer.fingerprint != once.fingerprint
    defined = twice | {
        "tokenizer.ggml.tokens": [*tokens, "<a>", "<a>"],
        "tokenizer.ggml.token_type": [*types, 4, 4],
    }
    assert tokenizer_of(defined).encode("<a>", special=False) == [len(tokens) + 1]


@pytest.mark.parametrize(
    ("more", "kind"), [(["<|im_end|>"], 1), (["<|im_end|>"], 3), (["e"], 3), (["e"] * 5, 1)]
)
def test_doubles_that_leave_open_what_steers_the_model_are_refused(more: list[str], kind: int) -> None:
    """And so are so many that something else is wrong."""
    metadata = tiny_metadata("smollm")
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    metadata["tokenizer.ggml.tokens"] = [*tokens, *more]
    metadata["tokenizer.ggml.token_type"] = [*types, *[kind] * len(more)]
    with pytest.raises(BadCheckpoint, match=f"Of the vocabulary's {len(tokens) + len(more)} tokens only"):
        tokenizer_of(metadata)


def test_pieces_that_would_take_for_ever_are_refused() -> None:
    metadata = tiny_metadata("spm")
    tokens = [*metadata["tokenizer.ggml.tokens"][:-1], "x" * 20_000]
    with pytest.raises(BadCheckpoint, match="pieces are too long"):
        tokenizer_of(metadata | {"tokenizer.ggml.tokens": tokens})


def test_fingerprint_tells_vocabularies_apart_and_nothing_else() -> None:
    metadata = tiny_metadata("smollm")
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    changes: list[dict[str, Any]] = [
        {"tokenizer.ggml.pre": "gpt-2"},
        {"tokenizer.ggml.tokens": [*tokens, "more"], "tokenizer.ggml.token_type": [*types, 1]},
        {"tokenizer.ggml.token_type": [*types[:-1], 4]},
        {"tokenizer.ggml.merges": metadata["tokenizer.ggml.merges"][:-1]},
        {"tokenizer.ggml.eos_token_id": 5},
        {"tokenizer.ggml.add_bos_token": True},
    ]
    prints = [tokenizer_of(metadata | change).fingerprint for change in [{}, *changes]]
    assert len(set(prints)) == len(prints)
    unrelated = {"tokenizer.chat_template": "x", "general.name": "y"}
    assert tokenizer_of(metadata | unrelated).fingerprint == prints[0]
    spm = tiny_metadata("spm")
    scores = [score - 1 for score in spm["tokenizer.ggml.scores"]]
    assert tokenizer_of(spm | {"tokenizer.ggml.scores": scores}).fingerprint != tokenizer_of(spm).fingerprint


@pytest.mark.parametrize(
    ("kind", "change", "word"),
    [
        ("smollm", {"pre": "kimi-k9"}, "kimi-k9"),
        ("smollm", {"pre": None}, "''"),
        ("smollm", {"model": "bert"}, "bert"),
        ("smollm", {"model": None}, "''"),
    ],
)
def test_an_unknown_tokenizer_is_refused_by_name(kind: str, change: dict[str, Any], word: str) -> None:
    with pytest.raises(UnsupportedModel, match=word):
        tokenizer_of(tiny_metadata(kind) | {f"tokenizer.ggml.{key}": value for key, value in change.items()})


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("smollm", {"tokens": []}),
        ("smollm", {"tokens": None}),
        ("smollm", {"tokens": ["a", "a"], "token_type": None}),
        ("smollm", {"tokens": [1, 2]}),
        ("smollm", {"tokens": 7}),
        ("smollm", {"token_type": [1, 1]}),
        ("smollm", {"token_type": ["x"]}),
        ("smollm", {"merges": None}),
        ("smollm", {"merges": ["no such"]}),
        ("smollm", {"merges": ["alone"]}),
        ("smollm", {"bos_token_id": 448}),
        ("smollm", {"eos_token_id": -1}),
        ("smollm", {"eot_token_id": "2"}),
        ("smollm", {"add_bos_token": True, "bos_token_id": None}),
        ("smollm", {"add_bos_token": 1}),
        ("spm", {"scores": None}),
        ("spm", {"scores": [0.0]}),
        ("spm", {"token_type": [6] * 448}),
        ("spm", {"unknown_token_id": 5000}),
    ],
)
def test_a_broken_vocabulary_is_refused(kind: str, change: dict[str, Any]) -> None:
    with pytest.raises(BadCheckpoint):
        tokenizer_of(tiny_metadata(kind) | {f"tokenizer.ggml.{key}": value for key, value in change.items()})


def test_any_thread_may_encode(starter_model: Path) -> None:
    tokenizer = starter_tokenizer(starter_model)
    texts = mixtures(200)
    alone = [tokenizer.encode(text, special=True) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: tokenizer.encode(text, special=True), texts * 4)) == alone * 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_lets_other_threads_run(kind: str) -> None:
    turns, over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not over.wait(0.002):
            turns += 1

    text = "".join(mixtures(20_000))
    thread = threading.Thread(target=count)
    thread.start()
    ids = tiny_tokenizer(kind).encode(text, special=False)
    over.set()
    thread.join()
    assert len(ids) > 100_000
    assert turns > 5  # none at all while the lock is held, which takes a good part of a second
