"""What the page's scripts may ask the server to do: tables of acts, and how one of them is done.

What comes from a browser is not trusted: an act is found by its name in a table, and is given only values of
the types that the table names. Each part of the page has its table, beside what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from app import AppError, Outdated

T = TypeVar("T")
UNKNOWN = {"error": "The page asked for something that does not exist. Reload it."}
WRONG = {"error": "The page sent something of a wrong kind. Reload it."}
UNFIT = {"error": "This can't be kept: it holds half a character or a number of more than 18 digits."}


@dataclass(frozen=True, slots=True)
class Act:
    """`do(page, *values)` with one value for each name in `given`; it may answer with plain data."""

    do: Callable[..., dict[str, Any] | None]
    given: dict[str, type]


def act(do: Callable[..., dict[str, Any] | None], **given: type) -> Act:
    """A row of a table: act(f, chat=str) is asked for with {"do": its name, "chat": "..."}."""
    return Act(do, given)


def perform(acts: Mapping[str, Act], page: Any, asked: Any) -> dict[str, Any]:
    """Do what was asked for. The answer has "error", a sentence, if it could not be done."""
    try:
        wanted = acts[asked["do"]]
        values = [asked[name] for name in wanted.given]
    except (KeyError, TypeError):
        return UNKNOWN
    kinds = wanted.given.values()
    if any(type(value) is not kind for value, kind in zip(values, kinds, strict=True)):
        return WRONG
    if not can_be_kept(values):
        return UNFIT
    try:
        return wanted.do(page, *values) or {}
    except Outdated as error:
        return {"error": str(error), "outdated": True}
    except AppError as error:
        return {"error": str(error)}


def told(asked: Any, name: str, usual: T) -> T:
    """What a page says of something; as usual where it says nothing of that type, or what can't be kept."""
    value = asked.get(name) if isinstance(asked, dict) else None
    return value if type(value) is type(usual) and can_be_kept(value) else usual


def can_be_kept(value: Any) -> bool:
    """Whether SQLite takes it: no half characters, no numbers over 64 bits, at any depth."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)
    if isinstance(value, list):
        return all(map(can_be_kept, value))
    if isinstance(value, dict):
        return all(map(can_be_kept, (*value, *value.values())))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def served(acts: Mapping[str, Act], page: Any) -> list[Callable[[Any], dict[str, Any]]]:
    """The functions of a page's script: `act` out of a table, and `frame`, what there is to see."""

    def act(data: Any) -> dict[str, Any]:  # Gradio marks these functions, which a method does not allow
        return perform(acts, page, data)

    def frame(data: Any) -> dict[str, Any]:
        return dict(page.frame(data))

    return [act, frame]
