"""The messages of an imported conversation: a tree of nodes, of which some are not kept, made a list in which
each stands after the one above it. It takes time by its length alone, however the tree is grown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine import THINKS, THOUGHT

from .import_files import GivenFile, NotImported


@dataclass(frozen=True, slots=True)
class Said:
    """A message; `parent` is the place of the one above it among its conversation's, which come before."""

    role: str
    text: str
    parent: int | None
    model: str = ""
    finish: str = "stop"
    files: tuple[GivenFile, ...] = ()
    facts: Mapping[str, Any] | None = None  # columns of its row that Octavo's own export has


@dataclass(frozen=True, slots=True)
class Node:
    """What an export has at one place of its tree."""

    parent: str | None
    role: str  # "": nothing that is kept
    text: str
    model: str = ""
    finish: str = "stop"
    thoughts: str = ""  # of an answer that comes below
    files: tuple[GivenFile, ...] = ()
    facts: Mapping[str, Any] | None = None  # as in Said


def in_order(nodes: dict[str, Node]) -> tuple[list[Said], dict[str, int | None]]:
    """The messages that are kept, each after the one above it; and where each node is, or what is above."""
    below: dict[str | None, list[str]] = {}
    for key, node in nodes.items():
        below.setdefault(node.parent if node.parent in nodes else None, []).append(key)
    said: list[Said] = []
    texts: list[list[str]] = []  # of each, what becomes its text
    places: dict[str, int | None] = {}
    waiting: list[tuple[str, list[str]]] = [(key, []) for key in reversed(below.get(None, []))]
    while waiting:
        key, thoughts = waiting.pop()
        node, children = nodes[key], below.get(key, [])
        above = places[node.parent] if node.parent in nodes else None
        thoughts += filter(None, [node.thoughts])
        places[key] = above
        if node.role:
            place = _put(said, node, above, bool(thoughts), len(below.get(node.parent, ())) == 1)
            if place == len(texts):
                texts.append([])
            if thoughts and node.role == "assistant":
                texts[place].append("\n".join((THINKS, "\n\n".join(thoughts), THOUGHT)))
            texts[place].append(node.text)
            places[key], thoughts = place, []
        waiting += [(each, []) for each in reversed(children[1:])]
        waiting += [(each, thoughts) for each in children[:1]]  # once, however many answers stand below
    if len(places) < len(nodes):
        raise NotImported("The messages of a conversation go round in a circle. Nothing was imported.")
    return [replace(each, text="\n\n".join(parts)) for each, parts in zip(said, texts, strict=True)], places


def _put(said: list[Said], node: Node, above: int | None, has_thought: bool, is_alone: bool) -> int:
    """Add a message; what an answer says after a tool of it has run is the same answer. Its place."""
    if above is not None and node.role == said[above].role == "assistant" and is_alone and not has_thought:
        said[above] = replace(said[above], finish=node.finish)
        return above
    said.append(Said(node.role, "", above, node.model, node.finish, node.files, node.facts))
    return len(said) - 1
