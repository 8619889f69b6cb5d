"""Replies in parts: shown as thoughts and an answer, gone on with, told to the model as it wrote them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine import Message, Request
from engine.text.detokenizer import Detokenizer
from engine.text.harmony import Parts
from engine.text.prompt import build_prompt
from engine.text.reply_start import start_reply
from engine.text.templates import TemplateRenderer
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import tiny_metadata, tiny_tokenizer, tokenizer_of

CONTROLS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>")
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}"
    "<|message|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"
REPLY = f"<|channel|>analysis<|message|>Rayleigh.{FINAL}It scatters."
SHOWN = "<think>Rayleigh.\n</think>\n\nIt scatters."
QUESTION = Message("user", "Why is the sky blue?")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Of 448 tokens, and gpt-oss's marks."""
    metadata = tiny_metadata("smollm") | {"tokenizer.chat_template": TEMPLATE}
    for key, more in (("tokens", CONTROLS), ("token_type", [3] * len(CONTROLS))):
        metadata[f"tokenizer.ggml.{key}"] = [*metadata[f"tokenizer.ggml.{key}"], *more]
    metadata["tokenizer.ggml.eos_token_id"] = len(metadata["tokenizer.ggml.tokens"]) - 1
    return tokenizer_of(metadata)


def shown(tokenizer: Tokenizer, ids: Sequence[int], already: Sequence[int] = ()) -> str:
    detokenizer = Detokenizer(tokenizer, already=already)
    return "".join(map(detokenizer.push, ids)) + detokenizer.finish()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (REPLY, SHOWN),
        ("<|channel|>final<|message|>Yes.<|return|>", "Yes."),
        ("<|message|>Yes.", "Yes."),
        ("<|channel|>analysis<|message|>Hm", "<think>Hm"),
        (
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>B"
            f"{FINAL}C",
            "<think>AB\n</think>\n\nC",
        ),
    ],
)
def test_parts_are_shown_as_thoughts_and_an_answer(tokenizer: Tokenizer, written: str, text: str) -> None:
    assert shown(tokenizer, tokenizer.encode(written, special=True)) == text


def test_a_reply_goes_on_wherever_it_was_cut(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(REPLY, special=True)
    for cut in range(len(ids)):
        assert shown(tokenizer, ids[:cut]) + shown(tokenizer, ids[cut:], already=ids[:cut]) == SHOWN


def test_thoughts_can_be_ended(tokenizer: Tokenizer) -> None:
    """As other models' are: what is begun by </think> is spelled as this one's end of thoughts."""
    ids = tuple(tokenizer.encode("<|channel|>analysis<|message|>Hm", special=True))
    for known in (tokenizer.fingerprint, "another"):
        reply = Message("assistant", "<think>Hm", ids, known)
        asked = Request((QUESTION, reply), continue_last=True, begin="\n</think>\n\n")
        start = start_reply(
            tokenizer, asked, lambda messages: tokenizer.encode("<|start|>assistant", special=True)
        )
        own = start.prompt[len(start.prompt) - start.num_own :]
        assert own == tokenizer.encode(f"<|channel|>analysis<|message|>Hm{FINAL}", special=True)


def test_the_next_prompt_has_what_was_said_with_its_own_ids(tokenizer: Tokenizer) -> None:
    said = tuple(tokenizer.encode("It scatters.", special=False))
    odd = (said[0], *tokenizer.encode("scatters.", special=False))  # other ids than the text alone would have
    head = tokenizer.encode(REPLY.removesuffix("It scatters."), special=True)
    renderer = TemplateRenderer.of(tokenizer)
    try:
        for ids in (said, odd):
            reply = Message("assistant", SHOWN, (*head, *ids, tokenizer.eos_id or 0), tokenizer.fingerprint)
            prompt = build_prompt(tokenizer, renderer, (QUESTION, reply, QUESTION), "2026-11-30", 1000)
            mark = tokenizer.encode("<|start|>assistant<|channel|>final<|message|>", special=True)
            begin = next(i for i in range(len(prompt)) if prompt[i : i + len(mark)] == mark) + len(mark)
            assert tuple(prompt[begin : begin + len(ids)]) == ids
            assert "Rayleigh" not in b"".join(map(tokenizer.piece_bytes, prompt)).decode()
    finally:
        renderer.close()


def test_other_vocabularies_have_no_parts(tokenizer: Tokenizer) -> None:
    assert isinstance(tokenizer.parts, Parts)
    assert tiny_tokenizer("qwen2").parts is None
