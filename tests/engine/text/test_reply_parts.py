"""Replies in parts: shown as thoughts and an answer, gone on with, told to the model as it wrote them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import LLM, Delta, EngineConfig, Finish, Message, Request, SamplingParams, Split
from engine.text.detokenizer import Detokenizer
from engine.text.prompt import build_prompt
from engine.text.reply_start import start_reply
from engine.text.templates import TemplateRenderer
from engine.text.tokenizer import Tokenizer
from tests.engine.models.family_gguf import write_gguf
from tests.engine.models.tiny_families import make_model, save
from tests.engine.text.vocabularies import tiny_metadata, tiny_tokenizer, tokenizer_of
from tests.tiny_models import make_spm

QUESTION = Message("user", "Why is the sky blue?")
SHOWN = "<think>Rayleigh.\n</think>\n\nIt scatters."


@dataclass(frozen=True)
class Family:
    """What its models write, and what its template does, in short."""

    controls: tuple[str, ...]  # the last one ends an answer
    template: str
    asks: str  # what a reply stands after
    thinks: str
    answers: str  # after thoughts
    says: str  # before what is said of a reply of the past

    @property
    def reply(self) -> str:
        return f"{self.thinks}Rayleigh.{self.answers}It scatters."


GPT_OSS = Family(
    ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>"),
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}"
    "<|message|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
    "<|start|>assistant",
    "<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
)
# Its template cuts thoughts out; that of its larger models asks for an answer with empty ones.
GEMMA_4 = Family(
    ("<|turn>", "<|channel>", "<channel|>", "<turn|>"),
    """{%- macro said(text) -%}
        {%- set kept = namespace(text='') -%}
        {%- for part in text.split('<channel|>') -%}
            {%- set kept.text = kept.text + part.split('<|channel>')[0] -%}
        {%- endfor -%}
        {{- kept.text | trim -}}
    {%- endmacro -%}
    {%- for m in messages -%}
        {{- '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' -}}
        {{- said(m.content) if m.role == 'assistant' else m.content | trim -}}
        {{- '<turn|>\n' -}}
    {%- endfor -%}
    {%- if add_generation_prompt -%}{{- '<|turn>model\n' -}}{%- endif -%}""",
    "<|turn>model\n",
    "<|channel>thought\n",
    "\n<channel|>",
    "<|turn>model\n",
)
NO_THOUGHTS = "{%- if add_generation_prompt -%}{{- '<|channel>thought\n<channel|>' -}}{%- endif -%}"
FAMILIES = {"gpt-oss": GPT_OSS, "gemma 4": GEMMA_4}


def make(family: Family, template: str = "", kind: int = 3) -> Tokenizer:
    """448 tokens and the family's; `kind` is theirs, but that of the last."""
    metadata = tiny_metadata("smollm") | {"tokenizer.chat_template": template or family.template}
    kinds = [kind] * (len(family.controls) - 1) + [3]
    for key, more in (("tokens", family.controls), ("token_type", kinds)):
        metadata[f"tokenizer.ggml.{key}"] = [*metadata[f"tokenizer.ggml.{key}"], *more]
    metadata["tokenizer.ggml.eos_token_id"] = len(metadata["tokenizer.ggml.tokens"]) - 1
    return tokenizer_of(metadata)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def tokenizer(family: Family) -> Tokenizer:
    return make(family)


@pytest.fixture
def renderer(tokenizer: Tokenizer) -> Iterator[TemplateRenderer]:
    made = TemplateRenderer.of(tokenizer)
    yield made
    made.close()


def shown(tokenizer: Tokenizer, ids: Sequence[int], already: Sequence[int] = ()) -> str:
    detokenizer = Detokenizer(tokenizer, already=already)
    return "".join(map(detokenizer.push, ids)) + detokenizer.finish()


def by_letters(tokenizer: Tokenizer, text: str) -> list[int]:
    """Control tokens, and every other character by itself."""
    ids: list[int] = []
    done = 0
    for found in tokenizer.control_text.finditer(text):
        ids += [i for letter in text[done : found.start()] for i in tokenizer.encode(letter, special=False)]
        ids += tokenizer.encode(found[0], special=True)
        done = found.end()
    return ids + [i for letter in text[done:] for i in tokenizer.encode(letter, special=False)]


@pytest.mark.parametrize(
    ("name", "written", "text"),
    [
        ("gpt-oss", GPT_OSS.reply, SHOWN),
        ("gpt-oss", "<|channel|>final<|message|>Yes.<|return|>", "Yes."),
        ("gpt-oss", "<|message|>Yes.", "Yes."),
        ("gpt-oss", "<|channel|>analysis<|message|>Hm", "<think>Hm"),
        (
            "gpt-oss",
            "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>B"
            f"{GPT_OSS.answers}C",
            "<think>AB\n</think>\n\nC",
        ),
        ("gemma 4", GEMMA_4.reply, SHOWN.replace(".\n<", ".\n\n<")),
        ("gemma 4", "Yes.<turn|>", "Yes."),
        ("gemma 4", "<|channel>thought\n<channel|>Yes.", "<think>\n</think>\n\nYes."),
        ("gemma 4", "<|channel>thought\n\nOne.\nTwo", "<think>\nOne.\nTwo"),
        ("gemma 4", "<|channel>thought<channel|>Yes.", "Yes."),
        ("gemma 4", "<channel|>Yes.", "Yes."),
    ],
)
def test_parts_are_shown_as_thoughts_and_an_answer(name: str, written: str, text: str) -> None:
    tokenizer = make(FAMILIES[name])
    assert shown(tokenizer, tokenizer.encode(written, special=True)) == text
    assert shown(tokenizer, by_letters(tokenizer, written)) == text


def test_a_reply_goes_on_wherever_it_was_cut(family: Family, tokenizer: Tokenizer) -> None:
    ids = by_letters(tokenizer, family.reply)
    whole = shown(tokenizer, ids)
    assert Split.of(whole) == Split("Rayleigh.", "It scatters.", False)
    for cut in range(len(ids)):
        assert shown(tokenizer, ids[:cut]) + shown(tokenizer, ids[cut:], already=ids[:cut]) == whole


def test_thoughts_can_be_ended(family: Family, tokenizer: Tokenizer) -> None:
    """As other models' are: what is begun by </think> is spelled as this one's end of thoughts."""
    ids = tuple(tokenizer.encode(f"{family.thinks}Hm", special=True))
    for known in (tokenizer.fingerprint, "another"):
        reply = Message("assistant", "<think>Hm", ids, known)
        asked = Request((QUESTION, reply), continue_last=True, begin="\n</think>\n\n")
        start = start_reply(tokenizer, asked, lambda messages: tokenizer.encode(family.asks, special=True))
        own = start.prompt[len(start.prompt) - start.num_own :]
        assert own == tokenizer.encode(f"{family.thinks}Hm{family.answers}", special=True)


@pytest.mark.parametrize("said", ["Write <think> and </think> yourself.", "Yes.\n</think>\n\nNo."])
def test_what_is_no_begin_of_thoughts_is_spelled_as_words(
    family: Family, tokenizer: Tokenizer, said: str
) -> None:
    """An answer that speaks of the marks, edited or another model's, and goes on."""
    asked = Request((QUESTION, Message("assistant", said)), continue_last=True)
    start = start_reply(tokenizer, asked, lambda messages: tokenizer.encode(family.asks, special=True))
    head = tokenizer.encode(tokenizer.parts.form.says if tokenizer.parts else "", special=True)
    own = start.prompt[len(start.prompt) - start.num_own :]
    assert own[: len(head)] == head and not {*own[len(head) :]} & {
        *(tokenizer.parts.follows if tokenizer.parts else ())
    }


def test_the_next_prompt_has_what_was_said_with_its_own_ids(
    family: Family, tokenizer: Tokenizer, renderer: TemplateRenderer
) -> None:
    said = tuple(tokenizer.encode("It scatters.", special=False))
    odd = (said[0], *tokenizer.encode("scatters.", special=False))  # other ids than the text alone would have
    head = tokenizer.encode(family.reply.removesuffix("It scatters."), special=True)
    for ids in (said, odd):
        reply = Message("assistant", SHOWN, (*head, *ids, tokenizer.eos_id or 0), tokenizer.fingerprint)
        prompt = build_prompt(tokenizer, renderer, (QUESTION, reply, QUESTION), "2026-11-30", 1000)
        mark = tokenizer.encode(family.says, special=True)
        begin = next(i for i in range(len(prompt)) if prompt[i : i + len(mark)] == mark) + len(mark)
        assert tuple(prompt[begin : begin + len(ids)]) == ids
        assert "Rayleigh" not in b"".join(map(tokenizer.piece_bytes, prompt)).decode()


def test_thoughts_without_an_end_are_not_sent_back(
    family: Family, tokenizer: Tokenizer, renderer: TemplateRenderer
) -> None:
    ids = tuple(tokenizer.encode(f"{family.thinks}Rayleigh", special=True))
    reply = Message("assistant", "<think>Rayleigh", ids, tokenizer.fingerprint)
    prompt = build_prompt(tokenizer, renderer, (QUESTION, reply, QUESTION), "2026-11-30", 1000)
    assert "Rayleigh" not in b"".join(map(tokenizer.piece_bytes, prompt)).decode()


@pytest.mark.parametrize("kind", [3, 4])
def test_marks_in_a_message_are_text(kind: int) -> None:
    """Files of Gemma 4 have its marks as control tokens or as user-defined ones, which are always found."""
    tokenizer = make(GEMMA_4, kind=kind)
    assert shown(tokenizer, tokenizer.encode(GEMMA_4.reply, special=True)).startswith("<think>Rayleigh.")
    renderer = TemplateRenderer.of(tokenizer)
    try:
        pasted = Message("user", "What does <|channel>thought\n<channel|> mean?")
        prompt = build_prompt(tokenizer, renderer, (pasted,), "2026-11-30", 1000)
    finally:
        renderer.close()
    marks = tokenizer.encode("<|channel><channel|>", special=True)
    assert len(marks) == 2 and not set(marks) & set(prompt)
    assert pasted.content in b"".join(map(tokenizer.piece_bytes, prompt)).decode()


def test_thoughts_that_the_template_begins_belong_to_the_reply() -> None:
    tokenizer = make(GEMMA_4)

    def start(template_end: str, *messages: Message, **more: bool) -> tuple[str, list[int], int]:
        def build(messages: Sequence[Message]) -> list[int]:
            return tokenizer.encode("<|turn>model\n" + template_end, special=True)

        made = start_reply(tokenizer, Request((QUESTION, *messages), **more), build)  # type: ignore[arg-type]
        return made.text, made.prompt, made.num_own

    asked = tokenizer.encode("<|turn>model\n<|channel>thought\n", special=True)
    text, prompt, num_own = start("<|channel>thought\n")
    assert (text, prompt) == ("<think>", asked) and tokenizer.text_of(prompt[-num_own]) == "<|channel>"
    assert start("<|channel>thought\n<channel|>")[::2] == ("", 0)
    ids = (*prompt[-num_own:], *tokenizer.encode("Hm", special=False))
    begun = Message("assistant", "<think>Hm", ids, tokenizer.fingerprint)
    assert start("<|channel>thought\n", begun, continue_last=True)[1] == [*asked, *ids[num_own:]]


def test_a_template_that_asks_for_no_thoughts_finds_the_same_past() -> None:
    tokenizer = make(GEMMA_4, GEMMA_4.template + NO_THOUGHTS)
    renderer = TemplateRenderer.of(tokenizer)
    try:
        ids = tuple(tokenizer.encode("It scatters.", special=False))
        reply = Message("assistant", "It scatters.", ids, tokenizer.fingerprint)
        prompt = build_prompt(tokenizer, renderer, (QUESTION, reply, QUESTION), "2026-11-30", 1000)
    finally:
        renderer.close()
    turn = f"<|turn>user\n{QUESTION.content}<turn|>\n"
    asked = "<|turn>model\n<|channel>thought\n<channel|>"
    assert prompt == tokenizer.encode(f"{turn}<|turn>model\nIt scatters.<turn|>\n{turn}{asked}", special=True)


def test_a_loaded_gemma_4_thinks_as_others_do(tmp_path: Path) -> None:
    """Of random weights: its thoughts are begun for it, it goes on thinking, and its answer forgets them."""
    facts, controls = make_spm()[0], GEMMA_4.controls
    kinds = {"tokens": controls, "types": (3, 4, 4, 3), "scores": (0.0,) * len(controls)}
    own = {key: [*facts[key], *more] for key, more in kinds.items()} | {"template": GEMMA_4.template}
    model = make_model("gemma4-small", vocab_size=len(own["tokens"]),
                       vocab_size_per_layer_input=len(own["tokens"]))  # fmt: skip
    path = write_gguf(model, save(model, tmp_path), tmp_path / "tiny.gguf", facts | own)
    llm = LLM.load(path, EngineConfig(backend="reference", context_length=256, threads=2))
    try:
        sampling = SamplingParams(temperature=1, top_p=1, seed=1, max_tokens=8, ignore_eos=True)
        text, reply = "", Message("assistant", "")
        for begin in ("<think>\nHm", "\n</think>\n\n"):
            messages = (QUESTION, reply) if text else (QUESTION,)
            request = Request(messages, sampling, continue_last=bool(text), begin=begin)
            *deltas, finish = llm.submit(request)
            assert isinstance(finish, Finish) and not finish.error
            parts = [delta for delta in deltas if isinstance(delta, Delta)]
            text += "".join(part.text for part in parts)
            ids = (*reply.token_ids, *(i for part in parts for i in part.token_ids))
            reply = Message("assistant", text, ids, finish.tokenizer)
            assert Split.of(text).thinking == (begin != "\n</think>\n\n")
        opened, closed = llm.tokenizer.encode("<|channel><channel|>", special=True)
        assert reply.token_ids[0] == opened and reply.token_ids.count(closed) == 1
        said = reply.token_ids[reply.token_ids.index(closed) + 1 :]
        prompt = llm.prompt((QUESTION, reply, QUESTION))
        assert not {opened, closed} & set(prompt) and len(said) == 8
        assert any(tuple(prompt[place : place + 8]) == said for place in range(len(prompt)))
    finally:
        llm.close()


def test_other_vocabularies_have_no_parts() -> None:
    assert tiny_tokenizer("qwen2").parts is None
