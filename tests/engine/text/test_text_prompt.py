"""A bare text becomes its ids, a hole the marks that the model knows; control tokens count where they may."""

from __future__ import annotations

import pytest

from engine import BadRequest, PromptTooLong
from engine.text.prompt import with_bos
from engine.text.text_prompt import MARKS, text_prompt
from engine.text.tokenizer import Tokenizer
from tests.engine.text.test_vocabulary_json import tokenizer_of as json_tokenizer
from tests.engine.text.vocabularies import tiny_metadata, tiny_tokenizer, tokenizer_of
from tests.tiny_tokenizers import KINDS


def with_marks(kind: str, marks: tuple[str, ...]) -> Tokenizer:
    """The tiny tokenizer with these control tokens instead of its last ones."""
    facts = dict(tiny_metadata(kind))
    for key, new in (("tokens", [*marks]), ("token_type", [3] * len(marks))):
        facts[f"tokenizer.ggml.{key}"] = [*facts[f"tokenizer.ggml.{key}"], *new]
    return tokenizer_of(facts)


@pytest.mark.parametrize("kind", ["smollm", "qwen2", "spm"])
def test_a_text_is_itself(kind: str) -> None:
    tokenizer, text = tiny_tokenizer(kind), "The sky is <|im_end|>blue"
    ids = text_prompt(tokenizer, text, None, 100)
    bos = [tokenizer.bos_id] if tokenizer.add_bos else []
    assert ids == bos + tokenizer.encode(text, special=True, before=bos[0] if bos else None)
    (end,) = tokenizer.encode("<|im_end|>", special=True)
    assert end in ids


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_begins_as_a_prompt_does(kind: str) -> None:
    """With the space that some put before a text there, behind the begin token or without one."""
    tokenizer = json_tokenizer(kind)
    plain = tokenizer.encode("blue sky", special=True)
    assert text_prompt(tokenizer, "blue sky", None, 100) == with_bos(tokenizer, [*plain])


def test_a_bos_that_is_written_out_is_not_put_twice() -> None:
    tokenizer = tiny_tokenizer("spm")
    assert tokenizer.add_bos and tokenizer.bos_id is not None
    bare = text_prompt(tokenizer, "blue", None, 100)
    assert text_prompt(tokenizer, tokenizer.text_of(tokenizer.bos_id) + "blue", None, 100)[:1] == bare[:1]
    assert text_prompt(tokenizer, tokenizer.text_of(tokenizer.bos_id) + "blue", None, 100).count(bare[0]) == 1


@pytest.mark.parametrize("marks", MARKS)
def test_a_hole_is_marked_as_the_model_was_taught(marks: tuple[str, str, str]) -> None:
    tokenizer = with_marks("qwen2", marks)
    before, after, middle = (tokenizer.encode(mark, special=True)[0] for mark in marks)
    text, suffix = f"sky {marks[1]}", "blue"
    ids = text_prompt(tokenizer, text, suffix, 100)
    assert ids.count(after) == 1, "what the person wrote is mere text"
    at = ids.index(after)
    assert (ids[0], ids[-1]) == (before, middle)
    assert ids[1:at] == tokenizer.encode(text, special=False) and ids[at + 1 : -1] == tokenizer.encode(
        suffix, special=False
    )
    assert text_prompt(tokenizer, "", "", 100) == [before, after, middle]


def test_what_can_not_be_gone_on_with() -> None:
    tokenizer = tiny_tokenizer("qwen2")
    with pytest.raises(BadRequest, match="The prompt is empty"):
        text_prompt(tokenizer, " \n", None, 100)
    with pytest.raises(BadRequest, match="not made to fill in what is missing"):
        text_prompt(tokenizer, "a", "b", 100)
    with pytest.raises(PromptTooLong, match="3,000,000 characters"):
        text_prompt(tokenizer, "a" * 3_000_000, None, 100)
    with pytest.raises(PromptTooLong, match="more than"):
        text_prompt(tokenizer, "sky " * 200_000, None, 100)
