"""`octavo models check`: does the catalogue still say what the Hugging Face hub says?

Asks the hub about every repository, by its own client, and compares what the entry claims: that it is there
under this name, that it has the file or the weights, their bytes, the licence, the number of parameters.
Downloads nothing and changes nothing: a person reads it and writes `checked`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import in_words

from ..errors import HubFailed
from .catalogue import Catalogue, Model, Variant
from .hub_client import Hub
from .hub_files import weights
from .hub_search import licence

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

NEAR = 0.1  # a computed size may be so far from the true one, parameters as well


@dataclass(frozen=True, slots=True)
class Finding:
    """What the hub says of one variant. `problems`: where it differs from the entry, () if nowhere."""

    id: str
    format: str
    repo: str
    revision: str
    bytes: int
    gated: bool  # its makers want to be asked first
    problems: tuple[str, ...]


def check(catalogue: Catalogue, hub: Hub) -> Iterator[Finding]:
    """One finding after another, in the catalogue's order. Raises HubFailed if the hub can't be asked."""
    for model in catalogue.models:
        for variant in model.variants:
            if variant.repo:
                yield _ask(hub, model, variant)


def _ask(hub: Hub, model: Model, variant: Variant) -> Finding:
    try:
        info = hub.look(variant.repo)
    except HubFailed as error:
        if error.status not in (401, 403, 404):  # 401 is said of what is not there, to those it does not know
            raise
        problems: tuple[str, ...] = ("it is not there for everyone",)
        return Finding(model.id, variant.format, variant.repo, "", 0, False, problems)
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    size = sum(sizes[name] for name in weights(sizes, variant))
    problems = tuple(_compare(info, size, model, variant))
    return Finding(model.id, variant.format, variant.repo, info.sha or "", size, bool(info.gated), problems)


def _compare(info: ModelInfo, size: int, model: Model, variant: Variant) -> Iterator[str]:
    if info.id != variant.repo:
        yield f"it is called {info.id} now"
    if not size:
        yield f"it has no {variant.gguf or 'safetensors'} file"
    elif variant.bytes and size != variant.bytes:
        yield f"it has {size} bytes, not {variant.bytes}"
    elif not variant.bytes and abs(size - (about := model.facts().bytes_in(variant.format))) > NEAR * size:
        yield f"it has {in_words(size)}, not about {in_words(about)}"
    if (written := licence(info)) and written != model.licence:
        yield f"its licence is {written}, not {model.licence}"
    total = info.safetensors.total if info.safetensors and variant.format == "bf16" else 0
    if total and abs(total - model.parameters) > NEAR * total:
        yield f"it has {total:,} parameters, not {model.parameters:,}"
