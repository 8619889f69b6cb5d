"""Whether what somebody wrote as settings is of the kind that each takes; if not, a sentence that says so.

The kinds are those of a dataclass's fields. What a value may be within its kind, the dataclass says itself;
BOUNDS are narrower than the engine's: with less no chat can be had. What a file holds below them is raised;
what somebody writes there now is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from engine import LEAST_CONTEXT, LIMITS

from .errors import BadSettings

LONGEST_TEXT = 20_000  # characters: what a model reads again for each new chat
LEAST = {"context_length": LEAST_CONTEXT, "kv_pool_bytes": 2**24}  # with less, no model of today can answer
BOUNDS = {name: (least, LIMITS[name][1]) for name, least in LEAST.items()}
# how a field's annotation is spelled -> (types taken, in words)
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text in quotes"),
    "int": ((int,), "a whole number"),
    "int | None": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "tuple[str, ...]": ((list,), "a list of texts in quotes"),
}

log = logging.getLogger("octavo.settings")


def check_bounds(name: str, value: Any) -> None:
    """Of what is about to be written, named as in the file. Raises BadSettings."""
    least, most = BOUNDS.get(name.rpartition(".")[2], (0, 0))
    if most and type(value) is int and not least <= value <= most:
        raise BadSettings(f"{name} is {value:,}; it must lie between {least:,} and {most:,}.")


def raised(values: dict[str, Any]) -> dict[str, Any]:
    """What a file holds; what is below its least counts as that, lest the program does not start."""
    low = {key: least for key, (least, _) in BOUNDS.items() if key in values and values[key] < least}
    for key in low:
        _tell_raised(key, values[key])
    return {**values, **low}


@cache
def _tell_raised(key: str, value: int) -> None:
    log.warning(
        "%s is %d; it counts as %d, the least with which a chat can be had.", key, value, BOUNDS[key][0]
    )


def check_kinds(
    holder: type,
    values: Mapping[str, Any],
    prefix: str = "",
    omit: Sequence[str] = (),
    also: Sequence[str] = (),
) -> None:
    """Of `values` for fields of the dataclass `holder`. Raises BadSettings. `prefix`: before their names;
    `omit`: fields that are no settings; `also`: what else there is, where one is not known.
    """
    annotations = {each.name: str(each.type) for each in fields(holder) if each.name not in omit}
    for key, value in values.items():
        name = prefix + (key if key.isidentifier() else repr(key))
        if annotations.get(key) not in KINDS:
            known = [prefix + each for each, spelled in annotations.items() if spelled in KINDS]
            raise BadSettings(
                f"{name:.100} = {value!r:.100} is not a setting. There are {', '.join([*known, *also])}."
            )
        types, words = KINDS[annotations[key]]
        texts = value if isinstance(value, list) else ()
        is_other = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        if is_other or not all(isinstance(text, str) for text in texts):
            raise BadSettings(f"{name} is {value!r:.100}; it must be {words}.")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise BadSettings(f"{name} has {len(value):,} characters; it may have {LONGEST_TEXT:,}.")
