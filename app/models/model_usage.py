"""How each model is used where a chat decides nothing: its system prompt, its sampling, its context.

What settings.toml says comes first, then the person's models.toml, then the catalogue. Asked anew for each
model that answers, so that what was just written there counts; other settings stay as they were given.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ..errors import BadSettings
from ..settings import Settings, load_settings
from .catalogue import read_catalogue
from .ids import bare
from .own_models import OwnModels


def settings_for(chosen: str, given: Settings) -> Settings:
    """`given`, which were read for the model that they name, as they are for `chosen`."""
    own, ids = OwnModels(given.home.path), {bare(each) for each in (chosen, given.model)}
    is_another = len(ids) > 1 and (ids & _catalogued() or own.entry(given.model).is_used)
    if not is_another and not own.entry(chosen).is_used:
        return given
    try:
        now = load_settings(given.home, model=chosen)
    except BadSettings:  # the file was damaged meanwhile; the next start says so
        return given
    engine = replace(given.engine, context_length=now.engine.context_length)
    return replace(given, system_prompt=now.system_prompt, sampling=now.sampling, engine=engine)


@cache
def _catalogued() -> frozenset[str]:
    """The models of which the catalogue says how they are best used."""
    return frozenset(model.id for model in read_catalogue().models)
