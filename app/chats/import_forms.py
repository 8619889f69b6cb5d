"""Conversations as programs export them, made trees of our own: Octavo's JSON, ChatGPT's conversations.json,
Open WebUI's chat export.

What Octavo has no place for (pictures, tools and what they found, marks of citations) is left out, and what
stood below it moves up. A value of a wrong kind counts as missing; only a tree that is none is refused.
Knows no files and no store.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from engine import THINKS, THOUGHT

from ..errors import AppError
from .import_files import GivenDocument, NotImported, document, open_webui_files, own_files
from .import_tree import Node, Said, in_order
from .records import NAME_LENGTH, PROMPT_LENGTH, TITLE_LENGTH, ReplyStats
from .sampling import checked
from .typed import sound

MOST_MESSAGES = 100_000  # of one conversation
MODEL_LENGTH, ERROR_LENGTH = 200, 2_000
CITATIONS = re.compile("\ue200[^\ue200\ue201]*\ue201|【\\d+[†:][^【】]*】")
ENDS = ("stop", "length", "cancelled", "error", "interrupted")
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
FIGURES = {field.name for field in fields(ReplyStats)}


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat that is to come in. `shown` is the place of the last message on screen."""

    origin: str
    title: str
    updated: float
    said: tuple[Said, ...]
    shown: int | None
    system_prompt: str = ""
    model: str = ""
    folder: str = ""
    facts: Mapping[str, Any] | None = None  # columns of its row that Octavo's own export has


def conversation(found: Any) -> Conversation | GivenDocument | None:
    """One of an export's conversations or documents; None where nothing was said. Raises NotImported."""
    if isinstance(found, dict):
        if isinstance(found.get("parts"), list):
            return document(found)
        for sign, read in FORMS.items():
            if isinstance(found.get(sign), (dict, list)):
                made = read(found)
                return made if made.said else None
    raise NotImported(
        "This is no export of chats that Octavo knows: it takes its own, ChatGPT's conversations.json "
        "and Open WebUI's. Nothing was imported."
    )


# ---- the forms


def _ours(found: dict[str, Any]) -> Conversation:
    nodes: dict[str, Node] = {}
    for message in found["messages"]:
        if isinstance(message, dict) and type(message.get("id")) is int:
            role = str(message["role"]) if message.get("role") in ("user", "assistant") else ""
            finish = message.get("finish") if message.get("finish") in ENDS else "stop"
            parent = message.get("parent")
            above = str(parent) if type(parent) is int else None
            text, model = _text(message.get("text")), _line(message.get("model"), MODEL_LENGTH)
            files = own_files(message.get("files"))
            own = {"error": _text(message.get("error"))[:ERROR_LENGTH], "stats": _stats(message.get("stats"))}
            nodes[str(message["id"])] = Node(above, role, text, model, str(finish), files=files, facts=own)
    try:
        sampling = checked(found["sampling"])
    except (AppError, KeyError, AttributeError, TypeError):
        sampling = "{}"
    facts = {
        "pinned": int(found.get("pinned") is True),
        "archived": int(found.get("archived") is True),
        "sampling": sampling,
        "own_model": _line(found.get("own_model"), MODEL_LENGTH),
        "preset": _line(found.get("preset"), NAME_LENGTH),
    }
    if DATE.fullmatch(date := _text(found.get("date"))):
        facts["date"] = date
    shown = found.get("shown")
    made = _made("octavo", found, nodes, str(shown) if type(shown) is int else None, found.get("updated"))
    return replace(
        made,
        system_prompt=_text(found.get("system_prompt"))[:PROMPT_LENGTH],
        model=_line(found.get("model"), MODEL_LENGTH),
        folder=_line(found.get("folder"), NAME_LENGTH),
        facts=facts,
    )


def _chatgpt(found: dict[str, Any]) -> Conversation:
    nodes, prompt = {}, ""
    for key, node in found["mapping"].items():
        if not isinstance(node, dict):
            continue
        message = node.get("message")
        message = message if isinstance(message, dict) else {}
        role, content = _of(message, "author").get("role"), _of(message, "content")
        about = _of(message, "metadata")
        kind, text, thoughts = content.get("content_type"), "", ""
        if kind in ("text", "multimodal_text"):
            text = CITATIONS.sub("", "\n\n".join(_parts(content.get("parts")))).strip()
        elif kind == "thoughts":
            thoughts = "\n\n".join(_thoughts(content.get("thoughts")))
        if role == "system" and text and not prompt:
            prompt = text[:PROMPT_LENGTH]
        is_hidden = about.get("is_visually_hidden_from_conversation") is True
        is_kept = role in ("user", "assistant") and bool(text) and not is_hidden
        parent = node.get("parent")
        nodes[key] = Node(
            parent if isinstance(parent, str) else None,
            str(role) if is_kept else "",
            text,
            _line(about.get("model_slug"), MODEL_LENGTH),
            thoughts=thoughts,
        )
    made = _made("chatgpt", found, nodes, found.get("current_node"), found.get("update_time"))
    return replace(made, system_prompt=prompt)


def _open_webui(found: dict[str, Any]) -> Conversation:
    chat, nodes = found["chat"], {}
    history = _of(chat, "history")
    messages = history.get("messages")
    if not isinstance(messages, dict):  # older ones have only the branch
        listed = chat.get("messages")
        branch = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        messages = {str(n): {**each, "parentId": str(n - 1)} for n, each in enumerate(branch)}
        history = {"currentId": str(len(branch) - 1)}
    prompt = ""
    for key, message in messages.items():
        if not isinstance(message, dict):
            continue
        (text, thoughts), role = _reasoned(_text(message.get("content"))), message.get("role")
        if role == "assistant" and thoughts:
            text = f"{THINKS}\n{_unquoted(thoughts)}\n{THOUGHT}\n\n{text}"
        if role == "system" and not prompt:
            prompt = text[:PROMPT_LENGTH]
        parent = message.get("parentId")
        is_kept = role in ("user", "assistant") and bool(text)
        above = parent if isinstance(parent, str) else None
        role, model = str(role) if is_kept else "", _line(message.get("model"), MODEL_LENGTH)
        files = open_webui_files(message.get("files")) if role == "user" else ()
        nodes[key] = Node(above, role, text, model, files=files)
    named = {**found, "title": found.get("title") or chat.get("title")}
    made = _made("openwebui", named, nodes, history.get("currentId"), found.get("updated_at"))
    system = _text(_of(chat, "params").get("system")) or _text(chat.get("system")) or prompt
    return replace(made, system_prompt=system[:PROMPT_LENGTH])


FORMS: dict[str, Callable[[dict[str, Any]], Conversation]] = {  # a key that tells a form -> who reads it
    "mapping": lambda found: _chatgpt(found) if isinstance(found["mapping"], dict) else _none(),
    "chat": lambda found: _open_webui(found) if isinstance(found["chat"], dict) else _none(),
    "messages": lambda found: _ours(found) if isinstance(found["messages"], list) else _none(),
}


# ---- what all have in common


def _made(
    source: str, found: dict[str, Any], nodes: dict[str, Node], shown: Any, updated: Any
) -> Conversation:
    if len(nodes) > MOST_MESSAGES:
        raise NotImported(
            f"A conversation has {len(nodes):,} messages; at most {MOST_MESSAGES:,} are taken. "
            "Nothing was imported."
        )
    said, places = in_order(nodes)
    id = found.get("conversation_id") or found.get("id")
    if not isinstance(id, str) or not id:
        id = hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()
    models = [each.model for each in said if each.model]
    return Conversation(
        origin=f"{source}:{sound(id)[:200]}",
        title=_line(found.get("title"), TITLE_LENGTH),
        updated=_time(updated),
        said=tuple(said),
        shown=places.get(shown) if isinstance(shown, str) else None,
        model=models[-1] if models else "",
    )


def _none() -> Conversation:
    raise NotImported("A conversation in this file is none that Octavo knows. Nothing was imported.")


def _of(found: dict[str, Any], name: str) -> dict[str, Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return sound(value) if isinstance(value, str) else ""


def _line(value: Any, length: int) -> str:
    return " ".join(_text(value).split())[:length]


def _parts(parts: Any) -> Iterator[str]:
    """The texts among a message's parts; a picture is said to have been there."""
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str) and part.strip():
            yield _text(part)
        elif isinstance(part, dict) and "image" in str(part.get("content_type")):
            yield "[picture]"
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield _text(part["text"])


def _thoughts(thoughts: Any) -> Iterator[str]:
    for each in thoughts if isinstance(thoughts, list) else []:
        if isinstance(each, dict) and (text := _text(each.get("content")) or _text(each.get("summary"))):
            yield text


def _reasoned(text: str) -> tuple[str, str]:
    """What Open WebUI wrote of an answer, without its folded thoughts, and these."""
    rest, thoughts = [], []
    *closed, last = text.split("</details>")
    for part in closed:
        before, sign, folded = part.partition('<details type="reasoning"')
        if not sign:
            rest.append(f"{part}</details>")
            continue
        folded = folded.partition(">")[2].lstrip()
        if folded.startswith("<summary>"):
            folded = folded.partition("</summary>")[2]
        rest.append(before)
        thoughts.append(folded.strip())
    return "".join([*rest, last]).strip(), "\n\n".join(thoughts)


def _unquoted(text: str) -> str:
    return "\n".join(line.removeprefix("&gt; ").removeprefix("> ") for line in text.splitlines())


def _stats(found: Any) -> str | None:
    """An answer's figures as they are kept; None where one is missing."""
    given = found.items() if isinstance(found, dict) else ()
    sound = {name: value for name, value in given if name in FIGURES and type(value) in (int, float)}
    try:
        return json.dumps(
            asdict(ReplyStats(**{name: max(0, min(value, 1e12)) for name, value in sound.items()}))
        )
    except TypeError:
        return None


def _time(value: Any) -> float:
    """Seconds since 1970, of a time that can have been; else now."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return time.time()
    return float(value) if 0 < value < time.time() + 86400 else time.time()
