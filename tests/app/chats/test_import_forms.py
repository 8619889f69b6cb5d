"""Other programs' conversations as trees of ours: what is kept, what is left out, what is refused."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import pytest

from app.chats.import_forms import Conversation, NotImported, conversation


def node(id: str, parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
    """A node of ChatGPT's mapping."""
    content = {"content_type": more.pop("kind", "text"), "parts": list(parts), **more.pop("content", {})}
    message = {"author": {"role": role}, "content": content, "metadata": more} if role else None
    return {id: {"id": id, "message": message, "parent": parent, "children": []}}


def chatgpt(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for each in nodes:
        mapping |= each
    about = {"title": "T", "update_time": 1_700_000_000.5, "conversation_id": "c1", **more}
    return {**about, "mapping": mapping}


def read(found: Any) -> Conversation:
    made = conversation(found)
    assert made
    return made


def lines(made: Conversation) -> list[tuple[str, str, int | None]]:
    return [(said.role, said.text, said.parent) for said in made.said]


def test_a_tree_of_chatgpt_s() -> None:
    made = read(
        chatgpt(
            node("root", None),
            node("sys", "root", "system", "Be brief."),
            node("q", "sys", "user", "Question"),
            node("a1", "q", "assistant", "One\ue200cite\ue202turn0search1\ue201.", model_slug="gpt-4o"),
            node("a2", "q", "assistant", "Two【4†source】"),
            node("q2", "a2", "user", {"content_type": "image_asset_pointer"}, "What is this?"),
            current_node="q2",
        )
    )
    assert lines(made) == [
        ("user", "Question", None),
        ("assistant", "One.", 0),
        ("assistant", "Two", 0),
        ("user", "[picture]\n\nWhat is this?", 2),
    ]
    assert (made.origin, made.title, made.updated) == ("chatgpt:c1", "T", 1_700_000_000.5)
    assert (made.shown, made.system_prompt, made.model, made.said[1].model) == (
        3,
        "Be brief.",
        "gpt-4o",
        "gpt-4o",
    )


def test_thoughts_tools_and_hidden_messages_of_chatgpt_s() -> None:
    made = read(
        chatgpt(
            node("h", None, "user", "about me", is_visually_hidden_from_conversation=True),
            node("q", "h", "user", "How much is it?"),
            node("t", "q", "assistant", kind="thoughts", content={"thoughts": [{"content": "Let me see."}]}),
            node("a", "t", "assistant", "I look it up."),
            node("c", "a", "assistant", kind="code", content={"text": "search()"}),
            node("r", "c", "tool", "a page"),
            node("b", "r", "assistant", "It is 3."),
            current_node="r",
        )
    )
    answer = "<think>\nLet me see.\n</think>\n\nI look it up.\n\nIt is 3."
    assert lines(made) == [("user", "How much is it?", None), ("assistant", answer, 0)]
    assert made.shown == 1


def open_webui(messages: Any, **chat: Any) -> dict[str, Any]:
    about = {"title": "W", "history": {"messages": messages, "currentId": "3"}, **chat}
    return {"id": "w1", "chat": about, "updated_at": 1_700_000_000}


def test_a_tree_of_open_webui_s() -> None:
    thought = '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> Hm.\n</details>\nYes'
    messages = {
        "1": {"id": "1", "parentId": None, "role": "user", "content": "Is it?"},
        "2": {"id": "2", "parentId": "1", "role": "assistant", "content": "No", "model": "llama3"},
        "3": {"id": "3", "parentId": "1", "role": "assistant", "content": thought, "model": "qwen3"},
    }
    made = read(open_webui(messages, params={"system": "Doubt."}))
    assert lines(made) == [
        ("user", "Is it?", None),
        ("assistant", "No", 0),
        ("assistant", "<think>\nHm.\n</think>\n\nYes", 0),
    ]
    assert (made.origin, made.title, made.shown, made.system_prompt) == ("openwebui:w1", "W", 2, "Doubt.")
    assert made.said[2].model == made.model == "qwen3"


def test_an_old_open_webui_has_only_the_branch() -> None:
    listed = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    made = read({"id": "w", "chat": {"title": "W", "messages": listed}})
    assert lines(made) == [("user", "a", None), ("assistant", "b", 0)] and made.shown == 1


def test_nothing_was_said() -> None:
    assert conversation(chatgpt(node("root", None))) is None
    assert conversation({"id": "w", "chat": {}}) is None
    assert conversation({"messages": []}) is None


UNKNOWN: list[Any] = [
    None,
    7,
    "x",
    [],
    {},
    {"mapping": []},
    {"chat": []},
    {"messages": {}},
    {"mapping": None},
]


@pytest.mark.parametrize("found", UNKNOWN)
def test_what_is_none(found: Any) -> None:
    with pytest.raises(NotImported, match="Nothing was imported"):
        conversation(found)


def test_messages_in_a_circle() -> None:
    for circle in (("a", "b"), ("a", "a")):
        nodes = [node(circle[0], circle[1], "user", "x"), node(circle[1], circle[0], "user", "y")]
        with pytest.raises(NotImported, match="circle"):
            conversation(chatgpt(node("q", None, "user", "fine"), *nodes))


def test_a_very_deep_and_a_too_long_conversation() -> None:
    turns = [node(str(n), str(n - 1) if n else None, "user", "x") for n in range(20_000)]
    made = read(chatgpt(*turns))
    assert len(made.said) == 20_000 and made.said[-1].parent == 19_998
    mapping = {str(number): {"parent": None} for number in range(100_001)}
    with pytest.raises(NotImported, match="100,001 messages; at most 100,000"):
        conversation({"mapping": mapping})


def test_marks_that_are_never_closed_take_no_time() -> None:
    for text in ("\ue200" * 100_000, "【1†" * 50_000):
        assert read(chatgpt(node("q", None, "user", text))).said[0].text == text
    for text in ('<details type="reasoning">' * 20_000, '<details type="reasoning"' * 20_000):
        chat = open_webui({"1": {"parentId": None, "role": "assistant", "content": text}})
        assert read(chat).said[0].text == text


def test_thoughts_stand_once_however_many_answers_are_below() -> None:
    long = {"thoughts": [{"content": "x" * 10_000}]}
    thoughts = node("t", None, "assistant", kind="thoughts", content=long)
    answers = [node(str(n), "t", "assistant", "y") for n in range(1_000)]
    made = read(chatgpt(thoughts, *answers))
    assert len(made.said) == 1_000 and sum(len(each.text) for each in made.said) < 20_000
    assert "xxx" in made.said[0].text


def test_an_answer_in_very_many_parts_takes_no_time() -> None:
    parts = [node(str(n), str(n - 1) if n else None, "assistant", "x" * 1_000) for n in range(20_000)]
    made = read(chatgpt(*parts))
    assert len(made.said) == 1 and len(made.said[0].text) == 20_000 * 1_002 - 2


@pytest.mark.parametrize("when", [math.nan, math.inf, -1, 1e300, 10**400, "2020", None, True, 4_102_444_800])
def test_times_that_can_not_have_been(when: Any) -> None:
    if isinstance(when, int) and when > 10**300:
        when = 1e308
    made = read(chatgpt(node("q", None, "user", "x"), update_time=when))
    assert abs(made.updated - time.time()) < 60


def test_text_that_no_file_can_hold() -> None:
    made = read(chatgpt(node("q", None, "user", "a\0b \ud83d c"), title="t\0 \n\ud83d" * 100))
    assert made.said[0].text == "ab ? c" and len(made.title) == 200
    assert "\0" not in made.title and "\n" not in made.title


ODD: list[Any] = [None, True, 7, -1.5, "", "x", [], ["x"], {}, {"x": 1}, [[]], {"role": {}}, [None]]


def test_values_of_a_wrong_kind_anywhere_are_missing_or_refused() -> None:
    """Every place of each form gets every odd value: an answer, or the one error."""
    forms = [
        chatgpt(node("q", None, "user", "x"), node("a", "q", "assistant", "y", model_slug="m")),
        open_webui(
            {"1": {"parentId": None, "role": "user", "content": "a", "model": "m"}}, params={"system": "s"}
        ),
        {
            "messages": [{"id": 1, "role": "user", "text": "x"}],
            "id": "o",
            "sampling": {"seed": 1},
            "shown": 1,
        },
    ]
    rng = random.Random(0)
    for form in forms:
        for path in places(form):
            for odd in rng.sample(ODD, 6):
                try:
                    conversation(changed(form, path, odd))
                except NotImported as error:
                    assert "Nothing was imported" in str(error)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, each in inner for deeper in places(each, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy
