"""`octavo models check`: does the catalogue still say what the Hugging Face hub says?

Asks the hub about every repository, by its own client, and compares what the entry claims: that it is there
under this name, that it has the file or the weights, their bytes, the licence, the number of parameters.
Downloads nothing and changes nothing: a person reads it and writes `checked`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import in_words

from .catalogue import Catalogue, Model, Variant
from .errors import AppError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import HfApi, ModelInfo

TIMEOUT_S = 20
NEAR = 0.1  # a computed size may be so far from the true one, parameters as well
# how the hub writes a licence -> how the catalogue does
LICENCES = {
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
    "gemma": "Gemma Terms of Use",
    "llama3.1": "Llama 3.1 Community",
    "llama3.2": "Llama 3.2 Community",
    "llama3.3": "Llama 3.3 Community",
}


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


def check(catalogue: Catalogue, endpoint: str | None = None) -> Iterator[Finding]:
    """One finding after another, in the catalogue's order. Raises AppError if the hub can't be asked."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=False)
    for model in catalogue.models:
        for variant in model.variants:
            if variant.repo:
                yield _ask(api, model, variant)


def _ask(api: HfApi, model: Model, variant: Variant) -> Finding:
    from huggingface_hub.errors import HfHubHTTPError

    try:
        info = api.model_info(variant.repo, files_metadata=True, timeout=TIMEOUT_S)
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status not in (401, 403, 404):  # the hub says 401 of what is not there, to those it does not know
            raise AppError(f"The hub answered {status} when it was asked about {variant.repo}.") from error
        return Finding(
            model.id, variant.format, variant.repo, "", 0, False, ("it is not there for everyone",)
        )
    except Exception as error:  # the client's HTTP library has errors of its own, with no base of Python's
        words = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        raise AppError(f"The hub can't be reached: {words.rstrip('.')}.") from error
    size = sum(
        sibling.size or 0 for sibling in info.siblings or () if _is_weights(sibling.rfilename, variant)
    )
    problems = tuple(_compare(info, size, model, variant))
    return Finding(model.id, variant.format, variant.repo, info.sha or "", size, bool(info.gated), problems)


def _is_weights(name: str, variant: Variant) -> bool:
    """A GGUF file, or the parts of one, whose name holds the format as a word of its own; else safetensors.
    Left out: what images need, and other forms of the same weights, in folders and in Mistral's own.
    """
    if variant.gguf:
        word = rf"(?<![A-Za-z0-9_]){re.escape(variant.gguf)}(?![A-Za-z0-9_])"
        found = name.endswith(".gguf") and re.search(word, name, re.IGNORECASE)
        return bool(found) and not name.startswith("mmproj")
    return name.endswith(".safetensors") and "/" not in name and not name.startswith("consolidated")


def _compare(info: ModelInfo, size: int, model: Model, variant: Variant) -> Iterator[str]:
    if info.id != variant.repo:
        yield f"it is called {info.id} now"
    if not size:
        yield f"it has no {variant.gguf or 'safetensors'} file"
    elif variant.bytes and size != variant.bytes:
        yield f"it has {size} bytes, not {variant.bytes}"
    elif not variant.bytes and abs(size - (about := model.facts().bytes_in(variant.format))) > NEAR * size:
        yield f"it has {in_words(size)}, not about {in_words(about)}"
    if (licence := info.card_data.license if info.card_data else None) is not None:
        written = LICENCES.get(str(licence), str(licence))
        if written != model.licence:
            yield f"its licence is {written}, not {model.licence}"
    total = info.safetensors.total if info.safetensors and variant.format == "bf16" else 0
    if total and abs(total - model.parameters) > NEAR * total:
        yield f"it has {total:,} parameters, not {model.parameters:,}"
