"""`octavo chat`: one question, one answer, in this process.

There is no server, no page, and nothing is stored.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from engine import Delta, EngineError, Finish, FinishReason, Message, Request, Stream

from ..access.keys import Keys
from ..api.api_types import usage
from ..errors import AppError
from ..memory.loading import Loader, find_and_load, load_llm
from ..models.catalogue import read_catalogue
from ..models.model_store import ModelStore
from ..settings import Settings
from .terminal import Meter, show_json


def ask(
    settings: Settings, prompt: str, given: dict[str, Any], as_json: bool, load: Loader = load_llm
) -> None:
    """Answer `prompt` on stdout, as text while it comes or as one JSON object.

    `given`: what of the sampling is not as in the settings.
    """
    if not prompt.strip():
        raise AppError("The prompt is empty.")
    sampling = replace(settings.sampling, **given)
    meter, models = Meter(), ModelStore(settings.home, read_catalogue())
    model = find_and_load(settings, models, Keys(settings.home).prefix_secret, meter, load)
    meter.clear()
    system = (Message("system", settings.system_prompt),) if settings.system_prompt else ()
    try:
        request = Request((*system, Message("user", prompt)), sampling, shorten="max_tokens" not in given)
        stream = model.submit(request)
        try:
            text, finish = _collect(stream, echo=not as_json)
        except BaseException:  # Ctrl-C, or nobody reads on
            stream.cancel()
            raise
    finally:
        model.close()
    if as_json:
        show_json({"model": models.id_of(settings.model), "text": text, **_facts(finish)})


def _collect(stream: Stream, echo: bool) -> tuple[str, Finish]:
    texts: list[str] = []
    for part in stream:
        if isinstance(part, Delta):
            texts.append(part.text)
            if echo:
                print(part.text, end="", flush=True)
            continue
        if echo:
            print(flush=True)
        if part.reason is FinishReason.ERROR:
            raise EngineError(part.error)
        if echo and not "".join(texts).strip():
            print("The model gave no words.", file=sys.stderr)
        return "".join(texts), part
    raise EngineError("The answer ended without saying why.")


def _facts(finish: Finish) -> dict[str, Any]:
    cost = finish.usage
    return {
        "finish_reason": str(finish.reason),
        "usage": usage(cost),
        "first_token_s": round(cost.first_token_s, 4),
        "tokens_per_s": round(cost.tokens_per_s, 2),
    }
