"""A chat as rows and notes."""

from __future__ import annotations

import html
import json

import pytest

from app import ChatView, MessageView, ReplyStats
from ui.rows import NOTHING, WAITING, apart, row, summary


def message(role: str = "assistant", text: str = "x", **more: object) -> MessageView:
    facts = {"finish_reason": None, "error": "", "stats": None, "streaming": False, **more}
    return MessageView(id=1, role=role, text=text, **facts)


def shown(each: MessageView) -> str:
    return str(row(each)["content"]["text"])


@pytest.mark.parametrize(
    "text", ["a\n\n    b", "*a* _b_ `c` ~d~ [e](f)", "$5 \\(x\\) $$", "<b>&amp;</b>", "# 1. > -", "é中😀"]
)
def test_what_a_person_wrote_is_shown_letter_by_letter(text: str) -> None:
    rendered = shown(message("user", text))
    assert rendered.count("\n") == 0
    inside = rendered.removeprefix('<div class="said">').removesuffix("</div>")
    assert html.unescape(inside) == text
    assert not set("<>*_`~[]$\\") & set(inside)


def test_answers_are_left_as_they_are() -> None:
    text = "def f():\n    return 1"
    assert row(message(text=text)) == {"role": "assistant", "content": {"type": "text", "text": text}}
    assert shown(message(text="", streaming=True)) == WAITING
    assert shown(message(text="")) == NOTHING


def test_the_last_turn_is_set_apart() -> None:
    said = [
        message("user", "a"),
        message(text="b"),
        message("user", "c"),
        message(text="d"),
        message(text="e"),
    ]
    assert apart(said) == (tuple(said[:2]), tuple(said[2:]))
    assert apart(said[:2]) == ((), tuple(said[:2]))
    assert apart(said[3:]) == ((), tuple(said[3:]))
    assert apart(()) == ((), ())


@pytest.mark.parametrize("mark", [">", "> ", "- ", "1. ", "\t* > "])
def test_what_no_browser_descends_into_is_shown_as_it_was_written(mark: str) -> None:
    deep = mark * 3_000 + "x ```` y"
    assert row(message(text=f"a\n{deep}\nb"))["content"]["text"] == f"`````\na\n{deep}\nb\n`````"
    assert row(message(text=mark * 9 + "x"))["content"]["text"] == mark * 9 + "x"
    ruler = "-" * 3_000 + "\n" + "\t" * 3_000 + "x"
    assert row(message(text=ruler))["content"]["text"] == ruler


def test_the_summary_has_one_note_for_each_message_and_no_text() -> None:
    stats = ReplyStats(tokens=3, tokens_per_s=2.0, first_token_s=0.5, cached_tokens=1, prompt_tokens=9)
    messages = (message("user", "secret"), message(text="secret", finish_reason="stop", stats=stats))
    view = ChatView("c", "t", (message(), *messages), 2, False, 7, "m", 12, 2048, "")
    found = summary(view, True)
    assert (
        found["busy"]
        and found["chat"] == "c"
        and (found["used"], found["limit"], found["earlier"]) == (12, 2048, 2)
    )
    assert len(json.loads(found["before"])) == 1
    notes = json.loads(found["turn"])
    assert [note["finish"] for note in notes] == [None, "stop"]
    assert notes[1]["stats"]["first_token_s"] == 0.5
    assert "secret" not in json.dumps(found)
