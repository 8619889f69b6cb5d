"""How a chat's answers are sampled: what it decides for itself, on top of the settings.

Kept as JSON in its row; checked by the engine's own limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine import BadRequest, SamplingParams

from ..errors import AppError

# what a chat may decide -> whether it is a whole number
DECIDED = {
    "temperature": False,
    "top_p": False,
    "top_k": True,
    "min_p": False,
    "repetition_penalty": False,
    "max_tokens": True,
    "seed": True,
}


def sampled(settings: SamplingParams, own: str) -> SamplingParams:
    """The settings, with what a chat decides for itself."""
    return replace(settings, **json.loads(own))


def checked(own: Mapping[str, Any]) -> str:
    """What a chat decides for itself, as it is kept. Raises AppError naming what can't be."""
    for name, value in own.items():
        if name not in DECIDED:
            raise AppError(f"A chat can't decide {name!r}; it can decide {', '.join(DECIDED)}.")
        whole = DECIDED[name]
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise AppError(f"{name} is {value!r}; it must be a {'whole ' if whole else ''}number.")
    try:
        SamplingParams(**own)
    except (BadRequest, ValueError) as error:  # ValueError: thousands of digits can't be said
        raise AppError(str(error)) from error
    return json.dumps(dict(own))
