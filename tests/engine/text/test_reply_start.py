"""Where a reply begins: the template's first word is its own, and an unfinished one goes on from its ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine import LLM, BadRequest, Delta, EngineConfig, Finish, Message, Request, SamplingParams
from engine.text.detokenizer import Detokenizer
from engine.text.reply_start import ReplyStart, start_reply
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import starter_tokenizer, tiny_tokenizer

QUESTION = Message("user", "Why is the sky blue?")


@pytest.fixture(params=["starter", "smollm", "qwen2", "spm"])
def tokenizer(request: pytest.FixtureRequest, starter_model: Path) -> Tokenizer:
    return starter_tokenizer(starter_model) if request.param == "starter" else tiny_tokenizer(request.param)


def start(tokenizer: Tokenizer, template_end: str, *messages: Message, **more: object) -> ReplyStart:
    """The start of a reply with a template that says everything and then `template_end`."""

    def build(said: Sequence[Message]) -> list[int]:
        ids = tokenizer.encode("".join(message.content for message in said) + "\n", special=False)
        return ids + tokenizer.encode(template_end, special=True, before=ids[-1])

    return start_reply(tokenizer, Request(messages, **more), build)  # type: ignore[arg-type]


def spelled(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return b"".join(map(tokenizer.piece_bytes, ids)).decode()


def test_what_the_template_has_written_of_a_reply_is_its_own(tokenizer: Tokenizer) -> None:
    plain = start(tokenizer, "assistant:", QUESTION)
    assert (plain.num_own, plain.new_ids, plain.text) == (0, (), "")
    closed = start(tokenizer, "<think>\n\n</think>\n\n", QUESTION)
    assert (closed.num_own, closed.text) == (0, "")
    for end in ("<think>", "<think>\n"):
        opened = start(tokenizer, "Sure: " + end, QUESTION)
        assert opened.text in (end, "") and len(opened.new_ids) == opened.num_own
        assert spelled(tokenizer, opened.new_ids) == opened.text
        assert opened.prompt == start(tokenizer, "Sure: " + end, QUESTION).prompt


def test_an_unfinished_reply_goes_on_from_its_own_ids(tokenizer: Tokenizer) -> None:
    before = start(tokenizer, "assistant:", QUESTION).prompt
    ids = tuple(tokenizer.encode("It is bl", special=False, before=before[-1]))
    reply = Message("assistant", "It is bl", ids, tokenizer.fingerprint)
    going = start(tokenizer, "assistant:", QUESTION, reply, continue_last=True)
    assert going.prompt == [*before, *ids] and going.num_own == len(ids) and going.new_ids == ()
    edited = start(tokenizer, "assistant:", QUESTION, Message("assistant", "It is bl"), continue_last=True)
    assert spelled(tokenizer, edited.prompt).endswith("It is bl")
    hurried = start(tokenizer, "assistant:", QUESTION, reply, continue_last=True, begin="\n</think>\n\n")
    assert hurried.prompt[: len(going.prompt)] == going.prompt
    assert (hurried.text, spelled(tokenizer, hurried.new_ids)) == ("\n</think>\n\n",) * 2
    assert hurried.num_own == len(ids) + len(hurried.new_ids)


def test_a_thinking_reply_does_not_begin_twice(tokenizer: Tokenizer) -> None:
    opened = start(tokenizer, "assistant:\n<think>\n", QUESTION)
    assert opened.text == "<think>\n"
    ids = (*opened.new_ids, *tokenizer.encode("Light", special=False, before=opened.prompt[-1]))
    for known in (tokenizer.fingerprint, "another"):
        reply = Message("assistant", "<think>\nLight", ids, known)
        going = start(tokenizer, "assistant:\n<think>\n", QUESTION, reply, continue_last=True)
        assert spelled(tokenizer, going.prompt).count("<think>") == 1
        assert spelled(tokenizer, going.prompt).endswith("<think>\nLight")
        if known == tokenizer.fingerprint:
            assert going.prompt == [*opened.prompt, *ids[len(opened.new_ids) :]]


@pytest.mark.parametrize("last", [QUESTION, Message("assistant", "")])
def test_only_a_reply_that_was_begun_can_go_on(tokenizer: Tokenizer, last: Message) -> None:
    with pytest.raises(BadRequest, match="begun"):
        start(tokenizer, "", QUESTION, last, continue_last=True)


def test_a_character_that_was_cut_in_two_is_whole_again(tokenizer: Tokenizer) -> None:
    text = "né 你好 🙂 x"
    ids = tokenizer.encode(text, special=False)
    for cut in range(1, len(ids)):
        first, second = Detokenizer(tokenizer), Detokenizer(tokenizer, already=ids[:cut])
        parts = "".join(map(first.push, ids[:cut])), "".join(map(second.push, ids[cut:]))
        assert "".join(parts) == text.removeprefix(" ")


@pytest.fixture(scope="module")
def starter(starter_model: Path) -> Iterator[LLM]:
    llm = LLM.load(starter_model, EngineConfig(num_chats=2, threads=2))
    yield llm
    llm.close()


def listen(llm: LLM, request: Request) -> tuple[str, tuple[int, ...], Finish]:
    *deltas, finish = llm.submit(request)
    assert isinstance(finish, Finish)
    parts = [delta for delta in deltas if isinstance(delta, Delta)]
    return "".join(part.text for part in parts), sum((part.token_ids for part in parts), ()), finish


def test_the_starter_model_goes_on_as_if_it_had_never_stopped(starter: LLM) -> None:
    def greedy(tokens: int) -> SamplingParams:
        return SamplingParams(temperature=0, max_tokens=tokens)

    whole, whole_ids, _ = listen(starter, Request((QUESTION,), greedy(24)))
    begun, ids, finish = listen(starter, Request((QUESTION,), greedy(10)))
    reply = Message("assistant", begun, ids, finish.tokenizer)
    stream = starter.submit(Request((QUESTION, reply), greedy(14), continue_last=True))
    assert stream.prompt_tokens == len(starter.prompt((QUESTION,)))  # what stands before the reply
    *deltas, end = stream
    rest = "".join(delta.text for delta in deltas if isinstance(delta, Delta))
    assert begun + rest == whole
    assert ids + sum((delta.token_ids for delta in deltas if isinstance(delta, Delta)), ()) == whole_ids
    assert isinstance(end, Finish) and end.usage.cached_tokens > 0
    text, _, _ = listen(starter, Request((QUESTION,), greedy(4), begin="In short:"))
    assert text.startswith("In short:") and len(text) > len("In short:")
