"""Models on the hub that this program can run, as the catalogue describes models.

Of what the hub finds, that stays whose architecture the engine or transformers' code serves, and that has
files in a format it reads. Sizes are computed until a repository is looked at. What the hub says of itself is
believed for choosing, not for loading.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine import BORROWED, can_borrow

from .catalogue import Model, Variant
from .hub_client import Hub
from .hub_files import GGUF_FORMATS, weights
from .ids import repo_id

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

# how the hub writes a licence -> how the catalogue does
LICENCES = {
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
    "gemma": "Gemma Terms of Use",
    "llama3.1": "Llama 3.1 Community",
    "llama3.2": "Llama 3.2 Community",
    "llama3.3": "Llama 3.3 Community",
}
# (quantization's method, its bits or 0 for any) -> format
QUANTIZED = {
    ("gptq", 4): "GPTQ-Int4",
    ("gptq", 8): "GPTQ-Int8",
    ("awq", 0): "AWQ",
    ("fp8", 0): "FP8",
}
# in a name, where the hub does not say more than that it is compressed-tensors
COMPRESSED = {"fp8": "FP8", "w8a8": "INT8", "w4a16": "GPTQ-Int4", "w8a16": "GPTQ-Int8"}


@dataclass(frozen=True, slots=True)
class Hit:
    """A repository. `gated`: its makers want to be asked first."""

    model: Model
    repo: str
    downloads: int
    gated: bool


def search(hub: Hub, text: str) -> list[Hit]:
    """The most downloaded first. Raises HubFailed."""
    found = [hit(info) for kind in ("gguf", "safetensors") for info in hub.search(text, kind)]
    served = {each.repo: each for each in found if each}
    return sorted(served.values(), key=lambda each: (-each.downloads, each.repo))


def look(hub: Hub, repo: str) -> Hit | None:
    """One repository, the true sizes of its variants; None if nothing in it can be run. Raises HubFailed."""
    info = hub.look(repo)
    if not (found := hit(info)):
        return None
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
    variants = tuple(
        replace(each, bytes=sum(sizes[name] for name in weights(sizes, each)))
        for each in found.model.variants
    )
    return replace(found, model=replace(found.model, variants=variants))


def licence(info: ModelInfo) -> str:
    """As the catalogue writes it, "" where the hub does not say."""
    said = info.card_data.license if info.card_data else None
    return LICENCES.get(str(said), str(said)) if said else ""


def hit(info: ModelInfo) -> Hit | None:
    """What the hub says of a repository; None if nothing in it can be run."""
    names = [file.rfilename for file in info.siblings or ()]
    gguf: dict[str, Any] = info.gguf if isinstance(info.gguf, dict) else {}
    variants: tuple[Variant, ...]
    borrowed = ""
    if gguf:
        served, parameters = _serves(gguf.get("architecture"), "gguf"), gguf.get("total")
        context = gguf.get("context_length")
        each = (Variant(format, repo=info.id) for format in GGUF_FORMATS)
        variants = tuple(variant for variant in each if weights(names, variant))
    else:
        config: dict[str, Any] = info.config or {}
        served, context = _serves(config.get("model_type"), "hf"), config.get("max_position_embeddings")
        parameters = info.safetensors.total if info.safetensors else 0
        format = _format(config.get("quantization_config") or {}, info.id)
        if not served and format == "bf16" and str(config.get("model_type")) in BORROWED:
            served, borrowed = True, str(config["model_type"])
        variants = tuple(
            variant for variant in (Variant(format, repo=info.id),) if format and weights(names, variant)
        )
    if not served or not variants or type(parameters) is not int or parameters < 1:
        return None
    model = Model(
        repo_id(info.id),
        info.id.rpartition("/")[2],
        licence(info),
        context if type(context) is int and context > 0 else 0,
        parameters,
        variants,
        unserved="" if can_borrow() else borrowed,
        borrowed=borrowed,
    )
    return Hit(model, info.id, info.downloads or 0, bool(info.gated))


def _serves(architecture: Any, source: str) -> bool:
    from engine import GGUF_FAMILIES, HF_FAMILIES

    known = GGUF_FAMILIES if source == "gguf" else HF_FAMILIES
    return str(architecture) in known or f"{architecture}_text" in known


def _format(quantization: dict[str, Any], repo: str) -> str:
    """The format of a folder's weights; "" for one that is not read."""
    method, bits = str(quantization.get("quant_method") or ""), quantization.get("bits") or 0
    if not method:
        return "bf16"
    if method == "compressed-tensors":
        return next((format for word, format in COMPRESSED.items() if word in repo.lower()), "")
    return QUANTIZED.get((method, bits), QUANTIZED.get((method, 0), ""))
