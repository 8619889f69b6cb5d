"""Which files of a repository make a variant: weights in one format, and what is read beside them.

Their names, sizes and hashes are the hub's, at the one revision that was looked at. A name may be anything:
only the last part of it is kept, and only if any system takes it as a file's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine import FORMATS

from ..errors import PullFailed
from .catalogue import Variant
from .hub_client import Hub
from .transfer import Part

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

GGUF_FORMATS = tuple(format for format in FORMATS if format.startswith("GGUF "))
SPLIT = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")
# what is read beside safetensors
BESIDE = re.compile(
    r"[a-z_]*config\.json|tokenizer.*\.json|.*\.index\.json|special_tokens_map\.json|"
    r"chat_template\.(json|jinja)|vocab\.(json|txt)|merges\.txt|tokenizer\.model|LICENSE.*"
)
DIGEST = re.compile(r"[0-9a-f]{64}|[0-9a-f]{40}")


def is_weights(name: str, variant: Variant) -> bool:
    """A GGUF file, or the parts of one, whose name holds the format as a word of its own; else safetensors.
    Left out: what images need, and other forms of the same weights, in folders and in Mistral's own.
    """
    if variant.gguf:
        word = rf"(?<![A-Za-z0-9_]){re.escape(variant.gguf)}(?![A-Za-z0-9_])"
        found = name.endswith(".gguf") and re.search(word, name, re.IGNORECASE)
        return bool(found) and not name.rpartition("/")[2].startswith("mmproj")
    return name.endswith(".safetensors") and "/" not in name and not name.startswith("consolidated")


def weights(names: Iterable[str], variant: Variant) -> list[str]:
    """The files of one edition: of several GGUF that fit, the shortest name, in all its parts."""
    found = sorted(name for name in names if is_weights(name, variant))
    if not variant.gguf or not found:
        return found
    whole = min({SPLIT.sub("", name) for name in found}, key=lambda name: (len(name), name))
    return [name for name in found if SPLIT.sub("", name) == whole]


def parts(hub: Hub, info: ModelInfo, variant: Variant) -> tuple[Part, ...]:
    """What is to be fetched. Raises PullFailed where the repository does not hold the variant."""
    from engine import is_safe_name  # of a part that loads numpy

    files = {file.rfilename: file for file in info.siblings or ()}
    names = weights(files, variant)
    if not names:
        raise PullFailed(f"{info.id} has no {variant.gguf or 'safetensors'} file at the hub.")
    if not variant.gguf:
        names += sorted(name for name in files if BESIDE.fullmatch(name))
    made = []
    for name in names:
        file, last = files[name], name.rpartition("/")[2]
        digest = (file.lfs.sha256 if file.lfs else file.blob_id) or ""
        if not is_safe_name(last):
            raise PullFailed(f"{info.id} has a file {name[:80]!r}, which no model file may be called.")
        if file.size is None or file.size < 0 or not DIGEST.fullmatch(digest) or not info.sha:
            raise PullFailed(
                f"The hub does not say what {last} of {info.id} must be, so it can't be checked."
            )
        made.append(Part(last, hub.address(info.id, info.sha, name), file.size, digest))
    if len({part.name.lower() for part in made}) < len(made):
        raise PullFailed(f"{info.id} has files of the same name in several folders.")
    return tuple(made)
