"""A folder's tokenizer gives the ids that the tokenizers library gives for a whole text, of every kind."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Library

from engine.checkpoints import TextFiles
from engine.text.prompt import build_prompt
from engine.text.templates import TemplateRenderer
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary_json import json_vocabulary
from engine.types import Message
from tests.engine.text.test_tokenizer import mixtures
from tests.tiny_tokenizers import KINDS, SPECIAL, make_tokenizer, write_tokenizer

BYTES = ("llama3", "qwen2", "prefix")


@cache
def tokenizer_of(kind: str, **config: object) -> Tokenizer:
    settings = {"bos_token": "<s>", "eos_token": "<|im_end|>"} | config
    return Tokenizer(json_vocabulary(TextFiles(make_tokenizer(kind).to_str().encode(), settings), {}))


def texts() -> list[str]:
    """Texts with control tokens and words that only look like them anywhere."""
    chance = random.Random(5)
    marks = [*SPECIAL, "<tool_call>", "<tool", "<|im_", "<mask>", " <mask> ", "\n", "  ", "▁", "Ġ", "<0x41>"]
    parts = mixtures(300) + marks * 12
    return ["".join(chance.choices(parts, k=chance.randint(1, 5))) for _ in range(800)] + ["", " ", "a", " a"]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_the_librarys(kind: str) -> None:
    ours, theirs = tokenizer_of(kind), make_tokenizer(kind)
    for text in texts():
        assert ours.encode(text, special=True) == theirs.encode(text, add_special_tokens=False).ids, text


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_mere_text_are_the_librarys(kind: str) -> None:
    ours, theirs = tokenizer_of(kind), Library.from_str(make_tokenizer(kind).to_str())
    theirs.encode_special_tokens = True
    for text in texts():
        ids = ours.encode(text, special=False)
        assert ids == theirs.encode(text, add_special_tokens=False).ids, text
        assert not ours.control_ids - {0} & set(ids)  # 0 is <unk>


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_of_pieces_are_the_text(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    for text in texts():
        pieces = b"".join(map(tokenizer.piece_bytes, tokenizer.encode(text, special=False)))
        if kind == "qwen2" or "▁" in text or "<tool" in text:
            continue  # composed, or a space to every tokenizer of pieces, or followed by one
        assert pieces in (text.encode(), b" " + text.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_text_in_the_middle_gets_no_space(kind: str) -> None:
    tokenizer = tokenizer_of(kind)
    ids = tokenizer.encode("the", special=False, before=tokenizer.encode("x", special=False)[-1])
    assert b"".join(map(tokenizer.piece_bytes, ids)) == b"the"
    assert tokenizer.space_prefix == (kind in ("prefix", "llama2", "phi3", "mistral", "always"))


def test_special_tokens() -> None:
    tokenizer = tokenizer_of("llama3")
    end = tokenizer.encode("<|im_end|>", special=True)[0]
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.add_bos) == (1, end, True)
    assert {tokenizer.text_of(i) for i in tokenizer.eos_ids} == {"<|im_end|>", "</s>"}
    assert not tokenizer_of("qwen2").add_bos
    assert not tokenizer_of("llama3", add_bos_token=False).add_bos
    assert tokenizer_of("qwen2", add_bos_token=True).add_bos
    assert tokenizer_of("qwen2", bos_token=None, add_bos_token=True).bos_id is None
    assert not tokenizer_of("qwen2", bos_token=None, add_bos_token=True).add_bos
    assert tokenizer_of("qwen2", eos_token="not a token").eos_id == 2


def test_ends_come_from_every_file() -> None:
    data = make_tokenizer("qwen2").to_str().encode()

    def ends(config: dict[str, object], **files: dict[str, object]) -> set[str]:
        tokenizer = Tokenizer(json_vocabulary(TextFiles(data, **files), config))
        return {tokenizer.text_of(i) for i in tokenizer.eos_ids} - {"</s>", "<|im_end|>"}

    mask = make_tokenizer("qwen2").token_to_id("<mask>")
    assert ends({}) == set()
    assert ends({"eos_token_id": mask}) == {"<mask>"}
    assert ends({"eos_token_id": [1, mask]}, generation={"eos_token_id": 1}) == {"<s>"}
    assert ends({}, tokenizer_config={"eos_token": {"content": "<mask>"}}) == {"<mask>"}
    assert ends({}, special_tokens={"eos_token": "<mask>"}) == {"<mask>"}


def test_fingerprint_tells_vocabularies_apart() -> None:
    prints = [tokenizer_of(kind).fingerprint for kind in KINDS]
    prints += [tokenizer_of("llama3", add_bos_token=False).fingerprint]
    prints += [tokenizer_of("llama3", eos_token="<mask>").fingerprint]
    assert len(set(prints)) == len(prints)
    text = TextFiles(
        make_tokenizer("llama3").to_str().encode(), {"bos_token": "<s>", "eos_token": "<|im_end|>"}
    )
    assert Tokenizer(json_vocabulary(text, {})).fingerprint == tokenizer_of("llama3").fingerprint


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_is_transformers_own(kind: str, tmp_path: Path) -> None:
    """What transformers makes of a conversation, from the files it writes itself, is what we make of them."""
    from transformers import PreTrainedTokenizerFast

    write_tokenizer(tmp_path, kind)
    theirs = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    templates = {"default": (tmp_path / "chat_template.jinja").read_text()}
    text = TextFiles((tmp_path / "tokenizer.json").read_bytes(), config, templates=templates)
    tokenizer = Tokenizer(json_vocabulary(text, {}))
    renderer = TemplateRenderer.of(tokenizer)
    try:
        messages = (
            Message("user", "What is hot?"),
            Message("assistant", "Cold."),
            Message("user", "It isn't"),
        )
        ids = build_prompt(tokenizer, renderer, messages, "", 1000)
    finally:
        renderer.close()
    turns = [{"role": message.role, "content": message.content} for message in messages]
    wanted = theirs.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    bos = [tokenizer.bos_id] if tokenizer.add_bos else []
    if kind in ("llama2", "phi3", "always", "prefix"):  # pieces of text are cut apart where contents begin
        assert theirs.decode(ids).split() == theirs.decode(bos + wanted).split()
    else:
        assert ids == bos + wanted
