"""`octavo perplexity`: how well a model foretells a text, to compare forms of one model with each other.

The engine computes it, in this process; here a text is read from a file and the figures are written down.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from engine import Perplexity, perplexity

from ..errors import AppError
from ..models.catalogue import read_catalogue
from ..models.model_store import ModelStore
from ..settings import Settings
from .terminal import Meter, show_json


def measure(settings: Settings, text: Path, as_json: bool) -> None:
    """The perplexity of a file's text on the model that the settings name, on stdout."""
    words, meter = read_text(text), Meter()
    model = ModelStore(settings.home, read_catalogue()).find(settings.model, meter)
    try:
        found = perplexity(model.path, words, settings.engine, meter)
    finally:
        meter.clear()
    show_json({"model": model.id, "text": str(text), **asdict(found)}) if as_json else show(found)


def read_text(path: Path) -> str:
    """A file's text. Raises AppError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise AppError(f"{path} can't be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise AppError(f"{path} is not text in UTF-8: it breaks off at byte {error.start:,}.") from error
    if not text.strip():
        raise AppError(f"{path} is empty.")
    return text


def show(found: Perplexity) -> None:
    """Two lines."""
    plural = "" if found.num_windows == 1 else "s"
    print(f"perplexity {found.perplexity:.4f}")
    print(
        f"{found.num_tokens:,} tokens, {found.num_scored:,} of them scored, "
        f"in {found.num_windows:,} window{plural} of up to {found.window:,}"
    )
