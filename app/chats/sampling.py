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
from ..setting_kinds import check_kinds

# what a chat may decide
DECIDED = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed")


def sampled(settings: SamplingParams, own: str) -> SamplingParams:
    """The settings, with what a chat decides for itself."""
    return replace(settings, **json.loads(own))


def checked(own: Mapping[str, Any]) -> str:
    """What a chat decides for itself, as it is kept. Raises AppError naming what can't be."""
    for name in own:
        if name not in DECIDED:
            raise AppError(f"A chat can't decide {name!r:.100}; it can decide {', '.join(DECIDED)}.")
    check_kinds(SamplingParams, own)
    try:
        SamplingParams(**own)
    except (BadRequest, ValueError) as error:  # ValueError: thousands of digits can't be said
        raise AppError(str(error)) from error
    return json.dumps(dict(own))
