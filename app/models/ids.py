"""What models are called where they are stored and typed: an id, or id@variant for one edition.

Only the spelling; what goes by an id here is model_store.py's to know.
"""

from __future__ import annotations


def key(id: str, format: str) -> str:
    """A model's id and the variant: qwen3-0.6b@gguf-q8_0."""
    return f"{id}@{slug(format)}"


def bare(chosen: str) -> str:
    """The model's id of either: qwen3-0.6b."""
    return chosen.partition("@")[0]


def slug(format: str) -> str:
    """A format as a folder's name."""
    return format.lower().replace(" ", "-")


def repo_id(repo: str) -> str:
    """What a model that stands in no catalogue is called here."""
    return repo.lower().replace("/", "--")
